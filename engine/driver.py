"""The driver: one loop of one session, from a merged control to frames or words that go out.

Plain synchronous code on the worker's step thread. It has no clock and does no I/O: time comes in
as an argument (microseconds of one monotonic clock), and what it has to tell collects until
`take_emissions`.

A chunk is a transaction. It opens with the unit that takes controls and closes with the one that
commits; every unit outside of one (a decode, a context pass) is on its own. What fails is rolled
back to the last closed one, so nothing that was committed is ever touched.

Its parts are in `loop_context.py`, which `loop_start.py` makes; `planner.py` says what could run
and `stepper.py` begins and ends units. Its base classes are `rollback.py`, which goes back, and
`loop_status.py`, which tells where it is.
"""

from collections.abc import Sequence

from reverie.engine.checkpoints import Checkpoint
from reverie.engine.emissions import Emission, FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.inputs import ControlInput
from reverie.engine.lead_time import LineTiming
from reverie.engine.loop_start import LoopStart, new_context
from reverie.engine.loop_status import Position
from reverie.engine.mailbox import Mailbox
from reverie.engine.options import DEFAULT_OPTIONS, DriverOptions
from reverie.engine.pacing import SeenUntil
from reverie.engine.planner import Planner
from reverie.engine.rollback import Rollback
from reverie.engine.scheduler import Candidate
from reverie.engine.stepper import Stepper
from reverie.models.contract.behavior import BehaviorRecord
from reverie.models.contract.errors import DeviceMemoryError
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    LoopKernel,
    LoopRequest,
    S,
    StepResult,
    StepUnit,
)

__all__ = ["Candidate", "DriverOptions", "LoopDriver", "LoopStart", "Position"]


class LoopDriver(Rollback[S]):
    """Drives one loop of one session. `batch.run_batch` calls `begin`, `complete` and `fail`."""

    def __init__(
        self,
        kernel: LoopKernel[S],
        instance: ModelInstance,
        request: LoopRequest,
        options: DriverOptions = DEFAULT_OPTIONS,
        start: LoopStart[S] | None = None,
    ) -> None:
        """Begin, continue for a driver that was lost, or fork from one that continues.

        Args:
            kernel: the loop.
            instance: what it runs on.
            request: the session and what it asks for.
            options: how to treat it.
            start: from where; None starts from the request.
        """
        super().__init__(new_context(kernel, instance, request, options, start or LoopStart()))
        self._planner = Planner(self._context)
        self._stepper = Stepper(self._context)
        self._closed = False

    # --- what it has to tell ---

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call, in order, and forget it."""
        return self._context.emitter.take()

    def take_behavior(self) -> list[BehaviorRecord]:
        """Return records of the chunks since the last call, and forget them; `options.capture`."""
        return self._context.capture.take()

    # --- what comes from the session ---

    def takes(self, item: ControlInput) -> bool:
        """Tell whether an input is for this loop."""
        return self._context.mailbox.accepted.takes(item)

    def push(self, inputs: Sequence[ControlInput], *, silent: bool = False) -> None:
        """Put controls into the mailbox; each will have a receipt.

        Args:
            inputs: oldest first.
            silent: without receipts: another loop of the session takes them as well, and gives
                them.

        Raises:
            UnknownControlError: the loop does not take one of them; none was taken.
            LoopEndedError: the loop has ended.
        """
        self._context.require_alive()
        self._context.mailbox.push(inputs, silent=silent)

    def release_keys(self) -> None:
        """Release every held key."""
        self._context.mailbox.release_keys()

    def seen(
        self,
        chunk: int,
        now_us: int,
        *,
        in_time: bool = False,
        line: LineTiming | None = None,
        waited_us: int | None = None,
    ) -> SeenUntil:
        """Note that the viewer has seen every frame up to and including `chunk`, of this loop.

        What comes with it is said in `PlayoutLead.seen`.

        Returns:
            What the other loops of the session are told.
        """
        lead = self._context.lead
        if lead is None:
            return SeenUntil(0, in_time)
        newest = min(chunk, self.next_chunk - 1)
        media_us = lead.seen(newest, now_us, in_time=in_time, line=line, waited_us=waited_us)
        return SeenUntil(media_us, in_time, lead.delay_us)

    def seen_until(self, seen: SeenUntil, now_us: int) -> None:
        """Note what was seen by the media time that the viewer of another loop has reached."""
        if self._context.lead is not None:
            self._context.lead.seen_until(seen, now_us)

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while no viewer watches."""
        self._context.gate.watched(watched)

    def pause(self) -> Position:
        """Run no further unit; idempotent."""
        self._context.gate.pause()
        return self.position

    def resume(self) -> Position:
        """Run again; idempotent."""
        self._context.gate.resume()
        return self.position

    def advance(self, chunks: int) -> Position:
        """Put out `chunks` more chunks, then be paused. They wait for the viewer like any."""
        self._context.gate.advance(chunks)
        return self.position

    def follow(self) -> Position:
        """Be paused, but go as far as the loop that leads."""
        self._context.gate.follow()
        return self.position

    def go_on_at(self, media_us: int) -> None:
        """Begin the next frame at `media_us`, which has not passed, as the other loops do."""
        self._context.emitter.go_on_at(media_us)

    def parting(self, until_us: int | None) -> Checkpoint[S]:
        """Return where another driver can fork from this one: by a media time, or the newest chunk.

        It is good for as long as this driver runs no unit; one that was made with it shares the
        cache blocks, and copies none.
        """
        history = self._context.states.history
        return history.newest if until_us is None else history.until(until_us)

    def durable(self) -> Durable | None:
        """Return what of the newest chunk's state outlives the worker; None when nothing does."""
        newest = self._context.states.history.newest
        return self._context.durable_part(newest.state) if newest.chunk >= 0 else None

    def hand_over(self) -> Mailbox:
        """Return what waits, for a driver that replaces this one, which has ended.

        What was being answered is given up: it may be what has failed.
        """
        context = self._context
        assert context.ended, "only what has ended has a successor"
        given_up = [entry.taken for entry in context.open_chunk.taken]
        context.open_chunk.taken.clear()
        context.mailbox.hand_over(given_up, context.emitter.tell)
        return context.mailbox

    def give_up(self) -> None:
        """Answer what waits when no driver replaces this one, which has ended."""
        self._context.put_back_controls()
        self._context.mailbox.abandon()

    def close(self) -> Position:
        """End the loop and give every block back; idempotent."""
        context = self._context
        assert context.unit is None, "a unit is running"
        if not self._closed:
            context.end()
            self._closed = True
            context.states.clear()
        return self.position

    # --- what the step thread does with it ---

    def ready(self, now_us: int) -> Candidate | None:
        """Say which unit could run now; None while held, paused, idle, unwatched or ended.

        Look at `take_emissions` afterwards: planning can fail.
        """
        return self._planner.ready(now_us)

    @property
    def wake_us(self) -> int | None:
        """When to ask `ready` again although nothing comes in meanwhile; None: then only."""
        return self._planner.wake_us

    def begin(self) -> StepUnit[S]:
        """Take controls and blocks for the unit that `ready` named.

        Raises:
            BadStepError: the unit needs more blocks than the session was admitted for.
            OutOfBlocksError: the pool is empty; nothing was taken.
        """
        return self._stepper.begin()

    def complete(self, result: StepResult[S], started_us: int, ended_us: int) -> None:
        """Check what the unit returned, then adopt it or roll it back.

        Args:
            result: the kernel's answer.
            started_us: when the batch began.
            ended_us: when it ended.
        """
        self._stepper.complete(result, started_us, ended_us)

    def refuse(self, code: FaultCode, message: str) -> None:
        """End the loop at once: what it needs to continue cannot be had, however often it tries."""
        self._context.strikes += 1
        self._context.fault(code, message)

    def fail(self, error: Exception) -> None:
        """Roll back after `begin` or the kernel raised; the second time in a row ends the loop."""
        if isinstance(error, BadStepError):
            self._context.fault(error.code, str(error))
        elif isinstance(error, DeviceMemoryError):
            self._context.fault(FaultCode.OUT_OF_MEMORY, str(error))
        else:
            self._context.fault(FaultCode.STEP_RAISED, f"{type(error).__name__}: {error}")
