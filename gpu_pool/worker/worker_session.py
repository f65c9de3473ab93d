"""A session in its worker: a driver for each loop of its program. Step thread only.

The first loop leads: chunks, positions and the session's end are its own. The others fail alone:
one that has ended is begun anew, a few times, while the first goes on.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reverie.engine.candidate import Candidate
from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlSuperseded, Emission, StepFailed, TextOut
from reverie.engine.errors import (
    NoSnapshotError,
    UnknownLoopError,
    UnknownSnapshotError,
)
from reverie.engine.inputs import ControlInput, TurnInput
from reverie.engine.position import Position
from reverie.gpu_pool.wire.messages import OpenSession
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.loop_starts import LoopStarts
from reverie.gpu_pool.worker.prompt_prefetch import InEffect
from reverie.models.contract.loop import Durable
from reverie.models.services.device_errors import told_apart

logger = logging.getLogger(__name__)

RESTARTS = 3
"""Times that a loop which follows is begun anew before it has put out an utterance in full."""


class WorkerSession:
    """An open session.

    Attributes:
        serial: what the heartbeat calls it.
        alone: never runs in one pass with others.
    """

    def __init__(
        self, model: LoadedModel, message: OpenSession, origin: "WorkerSession | None" = None
    ) -> None:
        """Begin its loops; whatever a model raises then passes through, and nothing is left.

        Args:
            model: what they run on.
            message: what the session is opened with.
            origin: the one that it parts from.
        """
        self.serial = message.request
        self._device = model.instance.device
        self.alone = message.alone
        self._watched: bool | None = None
        self._drivers: dict[str, LoopDriver[Any]] = {}
        parted = origin._drivers if origin is not None else None
        self._starts = LoopStarts(model, message, self._drivers, parted)
        self._restarts: defaultdict[str, int] = defaultdict(int)
        loops = model.loops(message.program)
        self._reader = next((loop.name for loop in loops if loop.prompt_tokens), loops[0].name)
        try:
            for loop in loops:
                self._drivers[loop.name] = self._starts.first(loop)
        except BaseException:
            self.close()
            raise

    @property
    def leading(self) -> LoopDriver[Any]:
        """The driver whose chunks are the session's."""
        return self._drivers[self._starts.leading]

    @property
    def position(self) -> Position:
        """Where the session stands now."""
        return self.leading.position

    @property
    def utterances(self) -> dict[str, int]:
        """The number that the next new utterance of each loop of text will have."""
        return {
            name: driver.next_chunk for name, driver in self._drivers.items() if not driver.is_paced
        }

    @property
    def in_effect(self) -> InEffect:
        """The prompt and the parameters that were asked for last, of all loops."""
        requests = {name: driver.request for name, driver in self._drivers.items()}
        parameters: dict[str, float] = {}
        for request in reversed(requests.values()):
            parameters.update(request.parameters)
        return InEffect(requests[self._reader].prompt, parameters)

    def driver(self, loop: str) -> LoopDriver[Any]:
        """Return the driver of a loop.

        Raises:
            UnknownLoopError: the program runs none of that name.
        """
        if loop not in self._drivers:
            raise UnknownLoopError(f"no loop {loop!r}; known: {', '.join(self._drivers)}")
        return self._drivers[loop]

    def candidates(self, now_us: int) -> list[Candidate]:
        """Return what could run now."""
        found = [driver.ready(now_us) for driver in self._drivers.values()]
        return [candidate for candidate in found if candidate is not None]

    @property
    def wake_us(self) -> int | None:
        """When something can run although nothing comes in meanwhile; None: never."""
        times = [driver.wake_us for driver in self._drivers.values()]
        return min((time_us for time_us in times if time_us is not None), default=None)

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call; a loop that has ended begins anew."""
        emissions: list[Emission] = []
        for name, driver in list(self._drivers.items()):
            heard = driver.take_emissions()
            if any(isinstance(one, TextOut) and one.final for one in heard):
                self._restarts[name] = 0
            if any(isinstance(one, StepFailed) and one.fatal for one in heard):
                heard = self._survived(name, driver, heard)
            emissions += heard
        return emissions

    # --- what it is told ---

    def push(self, inputs: Sequence[ControlInput]) -> list[Emission]:
        """Give each input to the loops that take it; return word of those that none takes.

        The first of them gives the receipt. A turn is for the first alone.
        """
        nobody: list[Emission] = []
        for item in inputs:
            alive = [driver for driver in self._drivers.values() if not driver.ended]
            takers = [driver for driver in alive if driver.takes(item)]
            if not takers:
                nobody.append(ControlSuperseded(self.leading.session, item.control, None))
            for number, driver in enumerate(takers[:1] if isinstance(item, TurnInput) else takers):
                driver.push((item,), silent=number > 0)
        return nobody

    def release_keys(self) -> None:
        """Let go of every held key."""
        for driver in self._drivers.values():
            driver.release_keys()

    def seen(self, chunk: int, now_us: int, loop: str = "", *, in_time: bool = False) -> None:
        """Note that the viewer has seen every frame up to and including `chunk`.

        The other loops are told by the media time at which that chunk ends: theirs are of other
        lengths.

        Args:
            chunk: the newest of them.
            now_us: the time.
            loop: whose chunk it is; empty for the session's.
            in_time: whether that counts only once it can have been played; see `Lead.seen`.
        """
        told = self._told(loop)
        until_us = told.seen(chunk, now_us, in_time=in_time)
        for driver in self._paced():
            if driver is not told:
                driver.seen_until(until_us, now_us, in_time=in_time)

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundaries while nobody watches."""
        self._watched = watched
        for driver in self._drivers.values():
            driver.watched(watched)

    # --- what it is asked ---

    def pause(self) -> Position:
        """Run no further unit."""
        for driver in self._drivers.values():
            driver.pause()
        return self.position

    def resume(self) -> Position:
        """Go on."""
        for driver in self._drivers.values():
            driver.resume()
        return self.position

    def advance(self, chunks: int) -> Position:
        """Put out `chunks` more chunks, then be paused; loops of text beside them stay paused.

        Other loops with media go as far as those chunks do.
        """
        for driver in self._drivers.values():
            if driver is self.leading or driver.loop == self._starts.timing:
                driver.advance(chunks)
            elif driver.is_paced:
                driver.follow()
            else:
                driver.pause()
        return self.position

    def interrupt(self, seen: int | None, loop: str | None, seen_of: str = "") -> Position:
        """Drop what is unfinished or unseen, of one loop or of all.

        Args:
            seen: the last chunk that was seen; None: nothing was.
            loop: the only loop to interrupt.
            seen_of: the loop whose chunk was seen; empty for the session's.

        Returns:
            Where that loop stands; where the session does, if it is all of them.

        Raises:
            UnknownLoopError: the program runs no such loop.
            LoopEndedError: it has ended.
        """
        drivers = [self.driver(loop)] if loop is not None else self._all_alive()
        seen_us = self._told(seen_of).media_us(-1 if seen is None else seen)
        for driver in drivers:
            if driver.is_paced:
                driver.interrupt_until(seen_us)
            else:
                driver.break_off()
        if loop is not None:
            return drivers[0].position
        return self._go_on_together()

    def rewind(self, chunk: int) -> Position:
        """Go on from right after `chunk` of the leading loop; what is refused changes nothing.

        Other loops with media go back to the same media time, and loops of text end what they are
        saying.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        back_us = self.leading.media_us(chunk)
        paced = [driver for driver in self._followers() if driver.is_paced]
        for driver in paced:
            driver.require_kept(back_us)
        self.leading.rewind(chunk)
        for driver in self._followers():
            if driver.is_paced:
                driver.rewind_until(back_us)
            else:
                driver.break_off()
        return self._go_on_together()

    def reset(self, seed: int | None) -> Position:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        for driver in self._all_alive():
            driver.reset(seed)
        return self._go_on_together()

    def snapshot(self, name: str) -> Position:
        """Keep the state after the newest chunk, and those of the other loops that have one.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        position = self.leading.snapshot(name)
        now_us = self.leading.media_us(None)
        for driver in self._followers():
            try:
                driver.snapshot(name, now_us if driver.is_paced else None)
            except NoSnapshotError:
                continue  # it has said nothing yet, and will begin anew
        return position

    @property
    def durables(self) -> tuple[Durable, ...]:
        """What outlives this worker of where it stands now."""
        made = [driver.durable() for driver in self._drivers.values()]
        return tuple(durable for durable in made if durable is not None)

    def kept(self, name: str) -> tuple[Durable, ...]:
        """Return what outlives this worker of a snapshot."""
        found = [driver.kept(name) for driver in self._drivers.values()]
        return tuple(durable for durable in found if durable is not None)

    def restore(self, name: str) -> Position:
        """Go on from a kept state; a loop that had said nothing then begins anew.

        Raises:
            UnknownSnapshotError: there is none of that name.
        """
        self.leading.restore(name)
        for driver in self._followers():
            try:
                driver.restore(name)
            except UnknownSnapshotError:
                driver.reset()
        return self._go_on_together()

    def close(self) -> Position:
        """End every loop and give every block back; may be repeated."""
        positions = [driver.close() for driver in reversed(self._drivers.values())]
        return positions[-1] if positions else Position(-1, 0)

    @property
    def stands(self) -> dict[str, int]:
        """The chunk that the state of each loop with media stands at."""
        return {driver.loop: driver.position.chunk for driver in self._paced()}

    def back_us(self, loop: str | None) -> int:
        """Return when the state was put out that a loop, or else the leading one, stands at."""
        return self._told(loop or "").media_us(None)

    # --- inside ---

    def _paced(self) -> list[LoopDriver[Any]]:
        return [driver for driver in self._drivers.values() if driver.is_paced]

    def _told(self, loop: str) -> LoopDriver[Any]:
        """Return the loop whose chunks are spoken of: the first with media where none is named."""
        return self.driver(loop or self._starts.timing)

    def _go_on_together(self) -> Position:
        """Have every loop with media begin its next frame at the same media time."""
        paced = [driver for driver in self._paced() if not driver.ended]
        next_us = max((driver.position.pts_us for driver in paced), default=0)
        for driver in paced:
            driver.go_on_at(next_us)
        return self.position

    def _followers(self) -> list[LoopDriver[Any]]:
        return [driver for driver in self._all_alive() if driver is not self.leading]

    def _all_alive(self) -> list[LoopDriver[Any]]:
        """Return the drivers that have not ended; the leading one always, for it to say so."""
        return [
            driver
            for driver in self._drivers.values()
            if driver is self.leading or not driver.ended
        ]

    def _survived(
        self, name: str, driver: LoopDriver[Any], heard: list[Emission]
    ) -> list[Emission]:
        """Begin a loop anew that has ended, unless it leads; return what is to be told."""
        if driver is self.leading:
            return heard
        successor = self._successor(name, driver)
        heard = [*heard, *driver.take_emissions()]  # the fates of what was given up
        if successor is None:
            return heard
        self._drivers[name] = successor
        return [
            replace(one, fatal=False, restarted=True)
            if isinstance(one, StepFailed) and one.fatal
            else one
            for one in heard
        ]

    def _successor(self, name: str, driver: LoopDriver[Any]) -> LoopDriver[Any] | None:
        """Return a driver that takes an ended one's place; None when it has failed too often."""
        self._restarts[name] += 1
        if self._restarts[name] <= RESTARTS:
            try:
                successor = self._starts.successor(driver)
            except Exception as error:
                told_apart(error, self._device)
                # The session boundary: a loop that cannot even begin stays ended, alone.
                logger.exception("session %s: %s cannot begin anew", driver.session, name)
            else:
                if self._watched is not None:
                    successor.watched(self._watched)
                return successor
        driver.give_up()
        return None
