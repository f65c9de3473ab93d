"""Going back: interrupts, rewinds, resets, and states that are kept by name."""

from dataclasses import replace
from typing import Generic

from reverie.engine.errors import (
    ChunkNotKeptError,
    NoSnapshotError,
    SnapshotLimitError,
    UnknownSnapshotError,
    WeightsChangedError,
)
from reverie.engine.history import Moment
from reverie.engine.parts import Parts
from reverie.engine.position import Position
from reverie.models.loop import Durable, S


class Travel(Generic[S]):
    """Takes one driver's loop to other states. What is refused changes nothing."""

    def __init__(self, parts: Parts[S]) -> None:
        self._parts = parts

    def interrupt(self, moment: Moment[S]) -> None:
        """Drop what is unfinished or unseen; go on from a moment of the history."""
        parts = self._parts
        making = parts.making
        if moment is parts.states.history.newest and (making.open or not making.begun):
            parts.go_to(parts.states.safe, moment)  # its context pass need not run again
        else:
            parts.go_to(moment, moment)

    def break_off(self) -> None:
        """End the utterance in the making where it is, for a loop that no viewer paces."""
        parts = self._parts
        parts.require_alive()
        parts.roll_back()
        now, newest = parts.states.now, parts.states.history.newest
        state = parts.kernel.broken_off(now.state)
        if state is None:
            parts.go_to(newest, newest)
        else:
            moment = replace(now, state=state, chunk=newest.chunk)
            parts.go_to(moment, moment)

    def rewind(self, chunk: int) -> None:
        """Go on from right after `chunk`, sharing its cache blocks.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        parts = self._parts
        parts.require_alive()
        moment = parts.states.history.find(chunk)
        if moment is None:
            kept = [str(moment.chunk) for moment in parts.states.history if moment.chunk >= 0]
            which = f"those kept: {', '.join(kept)}" if kept else "no chunk was put out yet"
            raise ChunkNotKeptError(f"chunk {chunk} is not kept; {which}")
        parts.go_to(moment, moment)

    def rewind_until(self, media_us: int) -> None:
        """Go on from right after the newest chunk that ended by `media_us`.

        Raises:
            ChunkNotKeptError: no moment as old is kept any more.
        """
        self.require_kept(media_us)
        moment = self._parts.states.history.until(media_us)
        self._parts.go_to(moment, moment)

    def require_kept(self, media_us: int) -> None:
        """Refuse to go back to a media time of which nothing is kept.

        Raises:
            ChunkNotKeptError: nothing as old is kept any more.
        """
        self._parts.require_alive()
        oldest = next(iter(self._parts.states.history)).media_us
        if oldest > media_us:
            name = self._parts.kernel.spec.name
            kept = f"loop {name} keeps nothing before {oldest / 1e6:.1f} s"
            raise ChunkNotKeptError(f"{kept}, and the chunk ended at {media_us / 1e6:.1f} s")

    def reset(self, seed: int | None) -> None:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        parts = self._parts
        parts.require_alive()
        request = parts.wanted_request(seed)
        state = parts.kernel.init_state(request, parts.instance)
        moment = Moment(state, -1, request.prompt, request.parameters)
        parts.request = request
        parts.go_to(moment, moment)

    def snapshot(self, name: str, until_us: int | None = None) -> Position:
        """Keep the state after the newest chunk that was put out, or had been by `until_us`.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        parts = self._parts
        parts.require_alive()
        history = parts.states.history
        moment = history.newest if until_us is None else history.until(until_us)
        if moment.chunk < 0:
            raise NoSnapshotError("there is no chunk to keep yet")
        if not parts.states.snapshots.has_room(name):
            most = parts.options.snapshots
            raise SnapshotLimitError(f"a session keeps at most {most} snapshots")
        durable = parts.kernel.durable(moment.state) if moment.state.blocks else None
        if moment.state.blocks and durable is None:
            raise NoSnapshotError(f"loop {parts.kernel.spec.name} has no state that can be kept")
        parts.states.snapshots.put(name, moment, durable)
        return Position(moment.chunk, parts.outlet.next_us)

    def kept(self, name: str) -> Durable | None:
        """Return what another driver could `keep` of a snapshot; None when nothing of it lasts."""
        snapshot = self._parts.states.snapshots.get(name)
        if snapshot is None or snapshot.durable is not None or snapshot.moment is None:
            return snapshot.durable if snapshot else None
        return self._parts.durable_part(snapshot.moment.state)

    def keep(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep what a driver that was lost had kept under `name`."""
        self._parts.states.snapshots.put_durable(name, chunk, durable)

    def restore(self, name: str) -> None:
        """Go on from a kept state; prompt and parameters stay as they are.

        Raises:
            UnknownSnapshotError: there is none of that name.
            WeightsChangedError: it was made by other weights than there are now.
        """
        parts = self._parts
        parts.require_alive()
        snapshot = parts.states.snapshots.get(name)
        if snapshot is None:
            raise UnknownSnapshotError(f"there is no snapshot called {name!r}")
        moment = snapshot.moment
        if moment is None:
            assert snapshot.durable is not None, "a snapshot keeps one or the other"
            WeightsChangedError.unless_same(snapshot.durable, parts.instance.weights_version)
            state = parts.kernel.revive(snapshot.durable, parts.request, parts.instance)
            moment = Moment(state, snapshot.chunk, None, {})
        parts.go_to(moment, moment)
