"""States that a session can go back to, and the cache blocks that they hold."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.errors import OutOfBlocksError
from reverie.models.contract.loop import Durable, S

STRETCH = 32
"""How much shorter the chunks of a loop may be than those of the one that leads."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint(Generic[S]):
    """A state and the place in the session that it belongs to. Equal only to itself.

    Attributes:
        chunk: the last chunk that was put out before it; -1 before the first.
        prompt: the prompt in effect; None when only the kernel knows.
        parameters: likewise, those that are known.
        shown: whether the frames of `chunk` came out of this very state; False for one that was
            only begun or revived, of which parts may still have to be made.
        media_us: media time at which `chunk` ended; 0 for one that was begun.
    """

    state: S
    chunk: int
    prompt: str | None
    parameters: Mapping[str, float]
    shown: bool = False
    media_us: int = 0


class BlockHolder:
    """The references of one session to blocks of the pool: one for each checkpoint it keeps."""

    def __init__(self, pool: BlockPool | None) -> None:
        """Hold nothing of `pool`; None for an instance without a cache."""
        self._pool = pool
        self._held: Counter[BlockId] = Counter()

    def __len__(self) -> int:
        """How many different blocks are held."""
        return len(self._held)

    def reserve(self, count: int) -> tuple[BlockId, ...]:
        """Take fresh blocks.

        Raises:
            OutOfBlocksError: there are fewer; nothing was taken.
        """
        if not count:
            return ()
        if self._pool is None:
            raise OutOfBlocksError(f"{count} blocks asked for of an instance that has no pool")
        blocks = self._pool.reserve(count)
        self._held.update(blocks)
        return blocks

    def retain(self, blocks: Iterable[BlockId]) -> None:
        """Add one reference to each block."""
        if self._pool is not None:
            kept = tuple(blocks)
            self._pool.retain(kept)
            self._held.update(kept)

    def release(self, blocks: Iterable[BlockId]) -> None:
        """Drop one reference to each block."""
        if self._pool is not None:
            dropped = tuple(blocks)
            self._pool.release(dropped)
            self._held.subtract(dropped)
            self._held = +self._held


class CheckpointHistory(Generic[S]):
    """The checkpoints after the newest chunks, oldest first."""

    def __init__(
        self, holder: BlockHolder, capacity: int, since: Callable[[], int] | None = None
    ) -> None:
        """Keep at most `capacity` checkpoints; the oldest goes first.

        Args:
            holder: keeps their blocks.
            capacity: 1 or more.
            since: the media time that the loop which leads can go back to; up to `STRETCH` times
                as many moments are kept, so that this one can go back as far.
        """
        assert capacity > 0, "a history without a moment has nothing to go back to"
        self._holder = holder
        self._capacity = capacity
        self._since = since
        self._checkpoints: deque[Checkpoint[S]] = deque()

    def __len__(self) -> int:
        return len(self._checkpoints)

    def __iter__(self) -> Iterator[Checkpoint[S]]:
        return iter(self._checkpoints)

    @property
    def newest(self) -> Checkpoint[S]:
        """The checkpoint after the last chunk that was put out."""
        return self._checkpoints[-1]

    def push(self, checkpoint: Checkpoint[S]) -> None:
        """Keep a checkpoint."""
        self._holder.retain(checkpoint.state.blocks)
        self._checkpoints.append(checkpoint)
        while len(self._checkpoints) > self._capacity and not self._is_needed():
            self.drop_oldest()

    def find(self, chunk: int) -> Checkpoint[S] | None:
        """Return the checkpoint right after `chunk`; None when it is not kept."""
        return next(
            (checkpoint for checkpoint in self._checkpoints if checkpoint.chunk == chunk), None
        )

    def at_or_before(self, chunk: int) -> Checkpoint[S]:
        """Return the newest checkpoint not after `chunk`; the oldest when all are after it."""
        earlier = [checkpoint for checkpoint in self._checkpoints if checkpoint.chunk <= chunk]
        return earlier[-1] if earlier else self._checkpoints[0]

    def until(self, media_us: int) -> Checkpoint[S]:
        """Return the newest checkpoint that ended by `media_us`; the oldest when none had."""
        earlier = [
            checkpoint for checkpoint in self._checkpoints if checkpoint.media_us <= media_us
        ]
        return earlier[-1] if earlier else self._checkpoints[0]

    def drop_oldest(self) -> bool:
        """Drop the oldest checkpoint, unless it is the only one; return whether it was dropped."""
        if len(self._checkpoints) < 2:
            return False
        self._holder.release(self._checkpoints.popleft().state.blocks)
        return True

    def restart_at(self, checkpoint: Checkpoint[S]) -> None:
        """Make `checkpoint` the newest; what came after it goes, and all if it is not kept here."""
        self._holder.retain(checkpoint.state.blocks)
        kept = list(self._checkpoints)
        before = kept[: kept.index(checkpoint)] if checkpoint in kept else []
        for dropped in kept[len(before) :]:
            self._holder.release(dropped.state.blocks)
        self._checkpoints = deque([*before, checkpoint])

    def _is_needed(self) -> bool:
        """Tell whether the oldest checkpoint is the only one as old as what can be gone back to."""
        if self._since is None or len(self._checkpoints) > STRETCH * self._capacity:
            return False
        return self._checkpoints[1].media_us > self._since()

    def clear(self) -> None:
        """Drop every checkpoint."""
        for checkpoint in self._checkpoints:
            self._holder.release(checkpoint.state.blocks)
        self._checkpoints.clear()


@dataclass(frozen=True, slots=True)
class NamedSnapshot(Generic[S]):
    """A checkpoint that was kept by name.

    Attributes:
        moment: exact, but its blocks count; None once they were needed.
        durable: what is left then; the derived part is rebuilt. None for a state without blocks.
    """

    chunk: int
    checkpoint: Checkpoint[S] | None
    durable: Durable | None


class NamedSnapshots(Generic[S]):
    """What a session keeps by name: exact while there is room, durable for as long as it lives."""

    def __init__(self, holder: BlockHolder, capacity: int) -> None:
        """Keep at most `capacity`."""
        self._holder = holder
        self._capacity = capacity
        self._by_name: dict[str, NamedSnapshot[S]] = {}

    def has_room(self, name: str) -> bool:
        """Tell whether `name` can be kept."""
        return name in self._by_name or len(self._by_name) < self._capacity

    def get(self, name: str) -> NamedSnapshot[S] | None:
        """Return the snapshot called `name`, or None."""
        return self._by_name.get(name)

    def put(self, name: str, checkpoint: Checkpoint[S], durable: Durable | None) -> None:
        """Keep a checkpoint; it replaces an older one of that name."""
        self._holder.retain(checkpoint.state.blocks)
        self._let_go(self._by_name.pop(name, None))
        self._by_name[name] = NamedSnapshot(checkpoint.chunk, checkpoint, durable)

    def put_durable(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep the durable part of a checkpoint; it replaces an older one of that name."""
        self._let_go(self._by_name.pop(name, None))
        self._by_name[name] = NamedSnapshot(chunk, None, durable)

    def give_up_blocks(self) -> bool:
        """Have the oldest exact snapshot keep its durable part only; False when there is none."""
        for name, snapshot in self._by_name.items():
            if snapshot.checkpoint and snapshot.checkpoint.state.blocks and snapshot.durable:
                self._let_go(snapshot)
                self._by_name[name] = NamedSnapshot(snapshot.chunk, None, snapshot.durable)
                return True
        return False

    def clear(self) -> None:
        """Drop every snapshot."""
        for snapshot in self._by_name.values():
            self._let_go(snapshot)
        self._by_name.clear()

    def _let_go(self, snapshot: NamedSnapshot[S] | None) -> None:
        if snapshot is not None and snapshot.checkpoint is not None:
            self._holder.release(snapshot.checkpoint.state.blocks)
