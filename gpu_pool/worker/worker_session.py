"""A session in its worker: a driver for each loop of its program. Step thread only.

The first loop leads: chunks, positions and the session's end are its own. The others fail alone:
one that has ended is restarted, a few times, while the first continues.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlSuperseded, Emission, StepFailed, TextOut
from reverie.engine.inputs import ControlInput, TurnInput
from reverie.engine.loop_status import Position
from reverie.engine.scheduler import Candidate
from reverie.gpu_pool.wire.session_messages import OpenSession, PlayheadMoved
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.loop_starts import LoopStarts
from reverie.gpu_pool.worker.prompt_inputs import EffectiveControls
from reverie.gpu_pool.worker.prompt_prefetch import PromptDelivery, failures
from reverie.gpu_pool.worker.session_requests import SessionRequests
from reverie.models.services.device_errors import classify

logger = logging.getLogger(__name__)

RESTARTS = 3
"""Times that a loop which follows is restarted before it has put out an utterance in full."""


class WorkerSession(SessionRequests):
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
        drivers: dict[str, LoopDriver[Any]] = {}
        parted = origin._drivers if origin is not None else None
        self._starts = LoopStarts(model, message, drivers, parted)
        super().__init__(drivers, self._starts.leading, self._starts.timing)
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
    def utterances(self) -> dict[str, int]:
        """The number that the next new utterance of each loop of text will have."""
        return {
            name: driver.next_chunk for name, driver in self._drivers.items() if not driver.is_paced
        }

    @property
    def effective_controls(self) -> EffectiveControls:
        """The prompt and the parameters that were asked for last, of all loops."""
        requests = {name: driver.request for name, driver in self._drivers.items()}
        parameters: dict[str, float] = {}
        for request in reversed(requests.values()):
            parameters.update(request.parameters)
        return EffectiveControls(requests[self._reader].prompt, parameters)

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
        """Return what has happened since the last call; a loop that has ended is restarted."""
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
        unclaimed: list[Emission] = []
        for item in inputs:
            alive = [driver for driver in self._drivers.values() if not driver.ended]
            takers = [driver for driver in alive if driver.takes(item)]
            if not takers:
                unclaimed.append(ControlSuperseded(self.leading.session, item.control, None))
            for number, driver in enumerate(takers[:1] if isinstance(item, TurnInput) else takers):
                driver.push((item,), silent=number > 0)
        return unclaimed

    def deliver(self, delivered: PromptDelivery) -> Sequence[Emission]:
        """Take what was kept back for a prompt; return what there is to say of it."""
        read = delivered.read
        if read.fault is None:
            return self.push(delivered.inputs)
        if read.reading.opening:
            self.leading.refuse(read.fault, read.message)
        return failures(delivered, self.effective_controls)

    def release_keys(self) -> None:
        """Release every held key."""
        for driver in self._drivers.values():
            driver.release_keys()

    def seen(self, moved: PlayheadMoved, now_us: int) -> None:
        """Note that the viewer has seen every frame up to and including a chunk.

        The other loops are told by the media time at which that chunk ends: theirs are of other
        lengths.
        """
        told = self._told(moved.loop)
        seen = told.seen(
            moved.chunk,
            now_us,
            in_time=moved.in_time,
            line=moved.line,
            waited_us=moved.waited_us,
        )
        for driver in self._paced():
            if driver is not told:
                driver.seen_until(seen, now_us)

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundaries while no viewer watches."""
        self._watched = watched
        for driver in self._drivers.values():
            driver.watched(watched)

    def close(self) -> Position:
        """End every loop and give every block back; idempotent."""
        positions = [driver.close() for driver in reversed(self._drivers.values())]
        return positions[-1] if positions else Position(-1, 0)

    # --- inside ---

    def _survived(
        self, name: str, driver: LoopDriver[Any], heard: list[Emission]
    ) -> list[Emission]:
        """Restart a loop that has ended, unless it leads; return what is to be emitted."""
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
        """Return a driver that replaces an ended one; None when it has failed too often."""
        self._restarts[name] += 1
        if self._restarts[name] <= RESTARTS:
            try:
                successor = self._starts.successor(driver)
            except Exception as error:
                classify(error, self._device)
                # The session boundary: a loop that cannot even begin stays ended, alone.
                logger.exception("session %s: %s cannot be restarted", driver.session, name)
            else:
                if self._watched is not None:
                    successor.watched(self._watched)
                return successor
        driver.give_up()
        return None
