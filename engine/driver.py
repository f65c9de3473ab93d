"""The driver: one loop of one session, from a merged control to frames or words that go out.

Plain synchronous code on the worker's step thread. It has no clock and does no I/O: time comes in
as an argument (microseconds of one monotonic clock), and what it has to tell collects until
`take_emissions`.

A chunk is a transaction. It opens with the unit that takes controls and closes with the one that
commits; every unit outside of one (a decode, a context pass) is on its own. What fails is rolled
back to the last closed one, so nothing that was committed is ever touched.

Its parts are in `loop_context.py`; `planner.py` says what could run, `stepper.py` begins and ends
units, `rollback.py`, its base class,
goes back.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from reverie.engine.capture import Capture
from reverie.engine.checkpoints import Checkpoint
from reverie.engine.emissions import Emission, FaultCode
from reverie.engine.emitter import Emitter
from reverie.engine.errors import BadStepError, WeightsChangedError
from reverie.engine.inputs import ControlInput
from reverie.engine.loop_context import Course, Look, LoopContext
from reverie.engine.mailbox import Mailbox
from reverie.engine.open_chunk import OpenChunk
from reverie.engine.options import DEFAULT_OPTIONS, DriverOptions
from reverie.engine.outputs import FrameMemory, new_memory
from reverie.engine.pacing import PlayoutLead
from reverie.engine.planner import Planner
from reverie.engine.rollback import Position, Rollback
from reverie.engine.scheduler import Candidate
from reverie.engine.states import LoopStates
from reverie.engine.stepper import Stepper
from reverie.models.contract.behavior import BehaviorRecord
from reverie.models.contract.blocks import LoopState
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

log = logging.getLogger(__name__)


__all__ = ["Candidate", "DriverOptions", "LoopDriver", "Position"]


def _first(
    kernel: LoopKernel[S],
    instance: ModelInstance,
    request: LoopRequest,
    durable: Durable | None,
    chunks: int,
    pts_us: int,
) -> Checkpoint[S]:
    if durable:
        WeightsChangedError.unless_same(durable, instance.weights_version)
        state = kernel.revive(durable, request, instance)
        return Checkpoint(state, chunks - 1, None, {}, media_us=pts_us)
    state = kernel.init_state(request, instance)
    return Checkpoint(state, -1, request.prompt, request.parameters)


class LoopDriver(Rollback[S]):
    """Drives one loop of one session. `batch.run_batch` calls `begin`, `complete` and `fail`."""

    def __init__(
        self,
        kernel: LoopKernel[S],
        instance: ModelInstance,
        request: LoopRequest,
        options: DriverOptions = DEFAULT_OPTIONS,
        *,
        durable: Durable | None = None,
        chunks: int = 0,
        pts_us: int = 0,
        sights: Mapping[str, Look] | None = None,
        peer_us: Callable[[], int] | None = None,
        course: Course = Course(),  # noqa: B008  # frozen
        mailbox: Mailbox | None = None,
        start: Checkpoint[S] | None = None,
        frame_memory: FrameMemory = new_memory,
    ) -> None:
        """Begin, continue for a driver that was lost, or fork from one that continues.

        Args:
            kernel: the loop.
            instance: what it runs on.
            request: the session and what it asks for.
            options: how to treat it.
            durable: what its last `SnapshotOut` kept; None starts from the request.
            chunks: chunks that it had put out, so that numbers continue.
            pts_us: media time at which the next frame begins.
            sights: how to see each of the loops that it reads.
            peer_us: the media time of the session, for a loop that has none of its own.
            course: how far other loops of the session have come.
            mailbox: what waited for the driver that it replaces; see `hand_over`.
            start: a checkpoint of another driver to fork from, sharing its blocks; see `parting`.
            frame_memory: where its frames are written to.
        """
        first = start or _first(kernel, instance, request, durable, chunks, pts_us)
        emitter = Emitter(
            request.session, kernel.spec, chunks, pts_us, options.snapshot_every_us, peer_us
        )
        # What each chunk keeps besides the cache was counted when the session was admitted.
        stretches = (course.kept or course.reported) and not kernel.spec.chunk_bytes
        rates = [stream.rate_hz for stream in kernel.spec.streams if stream.rate_hz > 0]
        reads_prompt = kernel.spec.prompt_tokens > 0 and bool(request.prompt)
        context: LoopContext[S] = LoopContext(
            kernel=kernel,
            instance=instance,
            request=request,
            options=options,
            sights=sights or {},
            emitter=emitter,
            mailbox=mailbox or Mailbox(request, kernel.spec, emitter.tell),
            capture=Capture(request.session, kernel.spec.name),
            states=LoopStates(
                instance.blocks,
                first,
                history=max(options.history_chunks, options.lead_chunks) + 1,
                snapshots=options.snapshots,
                budget=kernel.spec.blocks_a_session(options.history_chunks),
                since=self._needed_us if stretches else None,
            ),
            lead=PlayoutLead(options.lead_chunks, round(1e6 / rates[0])) if rates else None,
            course=course,
            frame_memory=frame_memory,
            open_chunk=OpenChunk(opening=options.receipt_for_opening and reads_prompt),
        )
        super().__init__(context)
        self._planner = Planner(self._context)
        self._stepper = Stepper(self._context)
        self.waited = 0  # `Candidate.waited` of the unit that runs, for its trace
        self._closed = False
        if mailbox is not None:
            mailbox.hand_over((), emitter.tell)
        if durable or chunks or start:
            self._context.jump(first)

    def _needed_us(self) -> int:
        """Return the media time that it has to be able to go back to."""
        lead, kept = self._context.lead, self._context.course.kept
        times = [lead.seen_us] if lead is not None else []
        return min([*times, *([kept()] if kept is not None else [])], default=0)

    # --- what can be asked ---

    @property
    def session(self) -> str:
        """The session that the loop belongs to."""
        return self._context.session

    @property
    def loop(self) -> str:
        """Which loop it is."""
        return self._context.kernel.spec.name

    @property
    def next_chunk(self) -> int:
        """The number that the next new chunk will have."""
        return self._context.emitter.chunk + self._context.open_chunk.frames_out

    @property
    def request(self) -> LoopRequest:
        """The request for a driver that replaces this one."""
        return self._context.wanted_request()

    @property
    def sight(self) -> LoopState | None:
        """The newest state whose frames are out, for loops that read this one; None before one."""
        newest = self._context.states.history.newest
        return newest.state if newest.shown else None

    @property
    def is_paced(self) -> bool:
        """Whether a viewer's playhead paces it; a loop of text has a rate of its own."""
        return self._context.lead is not None

    @property
    def paused(self) -> bool:
        """Whether it waits for `resume` or `advance`."""
        return self._context.gate.paused

    @property
    def held(self) -> bool:
        """Whether it is paused, with no chunk left to advance by."""
        return self._context.gate.held

    @property
    def state(self) -> S:
        """The state that the next unit starts from."""
        return self._context.states.now.state

    @property
    def ended(self) -> bool:
        """Whether the loop has failed for good or was closed: `ready` will only say None."""
        return self._context.ended

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call, in order, and forget it."""
        return self._context.emitter.take()

    def take_behavior(self) -> list[BehaviorRecord]:
        """Return records of the chunks since the last call, and forget them; `options.capture`."""
        return self._context.capture.take()

    # --- what comes from the session ---

    def takes(self, item: ControlInput) -> bool:
        """Tell whether an input is for this loop."""
        return self._context.mailbox.takes(item)

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

    def seen(self, chunk: int, now_us: int, *, in_time: bool = False) -> int:
        """Note that the viewer has seen every frame up to and including `chunk`.

        Args:
            chunk: one of this loop's.
            now_us: the time.
            in_time: whether that counts only once it can have been played; see `PlayoutLead.seen`.

        Returns:
            The media time up to which that is.
        """
        if self._context.lead is None:
            return 0
        return self._context.lead.seen(min(chunk, self.next_chunk - 1), now_us, in_time=in_time)

    def seen_until(self, media_us: int, now_us: int, *, in_time: bool = False) -> None:
        """Note what was seen by the media time that the viewer of another loop has reached."""
        if self._context.lead is not None:
            self._context.lead.seen_until(media_us, now_us, in_time=in_time)

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

    @property
    def kept_us(self) -> int:
        """The media time that it can go back to."""
        history = self._context.states.history
        return next(iter(history)).media_us if len(history) else 0

    def media_us(self, chunk: int | None) -> int:
        """Return when the newest kept chunk that is not after `chunk` ended; None: the newest."""
        history = self._context.states.history
        if not len(history):  # it was closed
            return self._context.emitter.next_us
        return (history.newest if chunk is None else history.at_or_before(chunk)).media_us

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

    def complete(self, result: StepResult[S], started_us: int, ended_us: int, batch: int) -> None:
        """Check what the unit returned, then adopt it or roll it back.

        Args:
            result: the kernel's answer.
            started_us: when the batch began.
            ended_us: when it ended.
            batch: how many units ran in it.
        """
        self._stepper.complete(result, started_us, ended_us, batch, self.waited)

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
