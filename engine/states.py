"""The states of one session: the one it works on, the one to fall back to, and those kept."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic

from reverie.engine.checkpoints import BlockHolder, Checkpoint, CheckpointHistory, NamedSnapshots
from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.loop import S


class LoopStates(Generic[S]):
    """Holds the blocks of every state that a session may still need, and of no other.

    Attributes:
        now: the state that the next unit starts from.
        safe: the state after the last unit that closed; a rollback returns to it.
        history: the states after the newest chunks, for an interrupt or a rewind.
        snapshots: states kept by name.
    """

    def __init__(
        self,
        pool: BlockPool | None,
        first: Checkpoint[S],
        history: int,
        snapshots: int,
        budget: int,
        since: Callable[[], int] | None = None,
    ) -> None:
        """Begin at `first`.

        Args:
            pool: where the blocks come from; None for an instance without a cache.
            first: a state before any unit.
            history: how many checkpoints to keep, the first one among them.
            snapshots: how many names to keep.
            budget: blocks that the session was admitted for.
            since: the media time that history should reach back to; see `CheckpointHistory`.
        """
        self._holder = BlockHolder(pool)
        self._budget = budget
        self.now = self.safe = first
        self._holder.retain((*first.state.blocks, *first.state.blocks))
        self.history: CheckpointHistory[S] = CheckpointHistory(self._holder, history, since)
        self.snapshots: NamedSnapshots[S] = NamedSnapshots(self._holder, snapshots)
        self.history.push(first)

    def reserve(self, count: int) -> tuple[BlockId, ...]:
        """Take blocks for a unit; what is kept for convenience is dropped when there is no room.

        Raises:
            BadStepError: even so it would be more than the session was admitted for, and what the
                pool has left is for others; nothing was taken.
            OutOfBlocksError: the pool has fewer; nothing was taken.
        """
        if count:
            self.make_room(count)
            self._require(len(self._holder) + count)
        return self._holder.reserve(count)

    def require_room(self, blocks: Iterable[BlockId]) -> None:
        """Refuse a next state that leaves the session with more than it was admitted for.

        What it cannot let go of counts: the state, the one to fall back to, the newest checkpoint.

        Raises:
            BadStepError: names how many these are, and how many it may hold.
        """
        kept = (*self.safe.state.blocks, *self.history.newest.state.blocks)
        self._require(len({*blocks, *kept}))

    def make_room(self, count: int = 0) -> None:
        """Drop older checkpoints until `count` more blocks are within the budget, if that helps."""
        while len(self._holder) + count > self._budget:
            if not (self.snapshots.give_up_blocks() or self.history.drop_oldest()):
                return

    def adopt(self, checkpoint: Checkpoint[S], reserved: Sequence[BlockId]) -> None:
        """Continue from `checkpoint`; the unit's blocks that it does not refer to are freed."""
        self._holder.retain(checkpoint.state.blocks)
        self._holder.release((*reserved, *self.now.state.blocks))
        self.now = checkpoint

    def settle(self) -> None:
        """Make the present state the one to fall back to."""
        self._holder.retain(self.now.state.blocks)
        self._holder.release(self.safe.state.blocks)
        self.safe = self.now

    def roll_back(self, reserved: Sequence[BlockId]) -> None:
        """Fall back; the unit's blocks are free again."""
        self.adopt(self.safe, reserved)

    def show(self, chunk: int, media_us: int) -> None:
        """Keep the present state as the one after `chunk`, which ended at `media_us`."""
        self.now = replace(self.now, chunk=chunk, shown=True, media_us=media_us)
        self.settle()
        self.history.push(self.now)

    def go_to(self, checkpoint: Checkpoint[S], kept: Checkpoint[S]) -> None:
        """Continue from `checkpoint`, which is right after the chunk of `kept`."""
        self.adopt(checkpoint, ())
        self.settle()
        self.history.restart_at(kept)

    def clear(self) -> None:
        """Release every block."""
        self.history.clear()
        self.snapshots.clear()
        self._holder.release((*self.now.state.blocks, *self.safe.state.blocks))

    def _require(self, count: int) -> None:
        if count > self._budget:
            message = f"the session would hold {count} cache blocks, admitted for {self._budget}"
            raise BadStepError(FaultCode.TOO_MANY_BLOCKS, message)
