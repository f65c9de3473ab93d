"""Going back: interrupts, rewinds, resets, and states that are kept by name."""

from dataclasses import replace

from reverie.engine.checkpoints import Checkpoint
from reverie.engine.errors import (
    ChunkNotKeptError,
    NoSnapshotError,
    SnapshotLimitError,
    UnknownSnapshotError,
    WeightsChangedError,
)
from reverie.engine.loop_status import LoopStatus, Position
from reverie.models.contract.loop import Durable, S


class Rollback(LoopStatus[S]):
    """The part of a driver that takes its loop to other states. A refusal changes nothing."""

    def interrupt(self, seen: int | None) -> Position:
        """Drop what is unfinished or unseen; continue from `seen`, or from the oldest kept chunk.

        Prompt, parameters and held keys stay as the client last set them.
        """
        self._context.require_alive()
        history = self._context.states.history
        return self._drop_to(history.at_or_before(-1 if seen is None else seen))

    def interrupt_until(self, media_us: int) -> Position:
        """Do the same from the media time that was seen, of whichever loop's chunks."""
        self._context.require_alive()
        return self._drop_to(self._context.states.history.until(media_us))

    def _drop_to(self, checkpoint: Checkpoint[S]) -> Position:
        """Drop what is unfinished or unseen; continue from a checkpoint of the history."""
        context = self._context
        open_chunk = context.open_chunk
        if checkpoint is context.states.history.newest and (
            open_chunk.open or not open_chunk.begun
        ):
            context.go_to(context.states.safe, checkpoint)  # its context pass need not run again
        else:
            context.go_to(checkpoint, checkpoint)
        return self.position

    def cancel(self) -> Position:
        """End the utterance in progress, for a loop of text; waiting turns are still answered."""
        context = self._context
        context.require_alive()
        context.roll_back()
        now, newest = context.states.now, context.states.history.newest
        state = context.kernel.cancel(now.state)
        if state is None:
            context.go_to(newest, newest)
        else:
            checkpoint = replace(now, state=state, chunk=newest.chunk)
            context.go_to(checkpoint, checkpoint)
        return self.position

    def rewind(self, chunk: int) -> Position:
        """Continue from right after `chunk`, sharing its cache blocks.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        context = self._context
        context.require_alive()
        checkpoint = context.states.history.find(chunk)
        if checkpoint is None:
            kept = [
                str(checkpoint.chunk)
                for checkpoint in context.states.history
                if checkpoint.chunk >= 0
            ]
            which = f"those kept: {', '.join(kept)}" if kept else "no chunk was put out yet"
            raise ChunkNotKeptError(f"chunk {chunk} is not kept; {which}")
        context.go_to(checkpoint, checkpoint)
        return self.position

    def rewind_until(self, media_us: int) -> Position:
        """Continue from right after the newest chunk that ended by `media_us`.

        Raises:
            ChunkNotKeptError: nothing as old is kept any more.
        """
        self.require_kept(media_us)
        checkpoint = self._context.states.history.until(media_us)
        self._context.go_to(checkpoint, checkpoint)
        return self.position

    def require_kept(self, media_us: int) -> None:
        """Refuse to go back to a media time of which nothing is kept.

        Raises:
            ChunkNotKeptError: nothing as old is kept any more.
        """
        self._context.require_alive()
        oldest = next(iter(self._context.states.history)).media_us
        if oldest > media_us:
            name = self._context.kernel.spec.name
            kept = f"loop {name} keeps nothing before {oldest / 1e6:.1f} s"
            raise ChunkNotKeptError(f"{kept}, and the chunk ended at {media_us / 1e6:.1f} s")

    def reset(self, seed: int | None = None) -> Position:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        context = self._context
        context.require_alive()
        request = context.wanted_request(seed)
        state = context.kernel.init_state(request, context.instance)
        checkpoint = Checkpoint(state, -1, request.prompt, request.parameters)
        context.request = request
        context.go_to(checkpoint, checkpoint)
        return self.position

    def snapshot(self, name: str, until_us: int | None = None) -> Position:
        """Keep the state after the newest chunk that was put out, or had been by `until_us`.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        context = self._context
        context.require_alive()
        history = context.states.history
        checkpoint = history.newest if until_us is None else history.until(until_us)
        if checkpoint.chunk < 0:
            raise NoSnapshotError("there is no chunk to keep yet")
        if not context.states.snapshots.has_room(name):
            most = context.options.snapshots
            raise SnapshotLimitError(f"a session keeps at most {most} snapshots")
        durable = context.kernel.durable(checkpoint.state) if checkpoint.state.blocks else None
        if checkpoint.state.blocks and durable is None:
            raise NoSnapshotError(f"loop {context.kernel.spec.name} has no state that can be kept")
        context.states.snapshots.put(name, checkpoint, durable)
        return Position(checkpoint.chunk, context.emitter.next_us)

    def kept(self, name: str) -> Durable | None:
        """Return what another driver could `keep` of a snapshot; None when nothing of it lasts."""
        snapshot = self._context.states.snapshots.get(name)
        if snapshot is None or snapshot.durable is not None or snapshot.checkpoint is None:
            return snapshot.durable if snapshot else None
        return self._context.durable_part(snapshot.checkpoint.state)

    def keep(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep what a driver that was lost had kept under `name`."""
        self._context.states.snapshots.put_durable(name, chunk, durable)

    def restore(self, name: str) -> Position:
        """Continue from a kept state; prompt and parameters stay as they are.

        Raises:
            UnknownSnapshotError: there is none of that name.
            WeightsChangedError: it was made by other weights than there are now.
        """
        context = self._context
        context.require_alive()
        snapshot = context.states.snapshots.get(name)
        if snapshot is None:
            raise UnknownSnapshotError(f"there is no snapshot called {name!r}")
        checkpoint = snapshot.checkpoint
        if checkpoint is None:
            assert snapshot.durable is not None, "a snapshot keeps one or the other"
            WeightsChangedError.unless_same(snapshot.durable, context.instance.weights_version)
            state = context.kernel.revive(snapshot.durable, context.request, context.instance)
            checkpoint = Checkpoint(state, snapshot.chunk, None, {})
        context.go_to(checkpoint, checkpoint)
        return self.position
