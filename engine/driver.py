"""The driver: one loop of one session, from a merged control to frames or words that go out.

Plain synchronous code on the worker's step thread. It has no clock and does no I/O: time comes in
as an argument (microseconds of one monotonic clock), and what it has to tell collects until
`take_emissions`.

A chunk is a transaction. It opens with the unit that takes controls and closes with the one that
commits; every unit outside of one (a decode, a context pass) stands by itself. What fails is rolled
back to the last closed one, so nothing that was committed is ever touched.

What it consists of is in `parts.py`; `planner.py` says what could run, `stepper.py` begins and ends
units, `travel.py` goes back.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from reverie.engine.candidate import Candidate
from reverie.engine.capture import Capture
from reverie.engine.emissions import Emission, FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.history import Moment
from reverie.engine.inputs import ControlInput
from reverie.engine.lead import Lead
from reverie.engine.mailbox import Mailbox
from reverie.engine.making import Making
from reverie.engine.options import DEFAULT_OPTIONS, DriverOptions
from reverie.engine.outlet import Outlet
from reverie.engine.parts import Look, Parts
from reverie.engine.planner import Planner
from reverie.engine.position import Position
from reverie.engine.states import States
from reverie.engine.stepper import Stepper
from reverie.engine.travel import Travel
from reverie.models.behavior import BehaviorRecord
from reverie.models.blocks import LoopState
from reverie.models.instance import ModelInstance
from reverie.models.loop import (
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
) -> Moment[S]:
    if durable:
        return Moment(kernel.revive(durable, request, instance), chunks - 1, None, {})
    state = kernel.init_state(request, instance)
    return Moment(state, -1, request.prompt, request.parameters)


class LoopDriver(Generic[S]):
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
        beside: Callable[[], int] | None = None,
        mailbox: Mailbox | None = None,
        start: Moment[S] | None = None,
    ) -> None:
        """Begin anew, go on for a driver that was lost, or part from one that goes on itself.

        Args:
            kernel: the loop.
            instance: what it runs on.
            request: who asks, and for what.
            options: how to treat them.
            durable: what its last `SnapshotOut` kept; None starts the world anew.
            chunks: chunks that it had put out, so that numbers go on.
            pts_us: media time at which the next frame begins.
            sights: how to see each of the loops that it reads.
            beside: the media time of the session, for a loop that has none of its own.
            mailbox: what waited for the driver whose place it takes; see `hand_over`.
            start: where it parts from another, whose blocks it shares from then on; see `parting`.
        """
        first = start or _first(kernel, instance, request, durable, chunks)
        outlet = Outlet(
            request.session, kernel.spec, chunks, pts_us, options.snapshot_every_us, beside
        )
        rates = [stream.rate_hz for stream in kernel.spec.streams if stream.rate_hz > 0]
        reads_prompt = kernel.spec.prompt_tokens > 0 and bool(request.prompt)
        self._parts: Parts[S] = Parts(
            kernel=kernel,
            instance=instance,
            request=request,
            options=options,
            sights=sights or {},
            outlet=outlet,
            mailbox=mailbox or Mailbox(request, kernel.spec, outlet.tell),
            capture=Capture(request.session, kernel.spec.name),
            states=States(
                instance.blocks,
                first,
                history=max(options.history_chunks, options.lead_chunks) + 1,
                snapshots=options.snapshots,
                budget=kernel.spec.blocks_a_session(options.history_chunks),
            ),
            lead=Lead(options.lead_chunks, round(1e6 / rates[0])) if rates else None,
            making=Making(opening=options.receipt_for_opening and reads_prompt),
        )
        self._planner = Planner(self._parts)
        self._stepper = Stepper(self._parts)
        self._travel = Travel(self._parts)
        self.waited = 0  # `Candidate.waited` of the unit that runs, for its trace
        self._closed = False
        if mailbox is not None:
            mailbox.hand_over((), outlet.tell)
        if durable or chunks or start:
            self._parts.jump(first)

    # --- what can be asked ---

    @property
    def session(self) -> str:
        """Whose loop it is."""
        return self._parts.session

    @property
    def loop(self) -> str:
        """Which loop it is."""
        return self._parts.kernel.spec.name

    @property
    def position(self) -> Position:
        """Where the session stands now."""
        return Position(self._parts.states.now.chunk, self._parts.outlet.next_us)

    @property
    def next_chunk(self) -> int:
        """The number that the next new chunk will have."""
        return self._parts.outlet.chunk + self._parts.making.frames_out

    @property
    def request(self) -> LoopRequest:
        """What a driver that takes this one's place should ask for."""
        return self._parts.wanted_request()

    @property
    def sight(self) -> LoopState | None:
        """The newest state whose frames are out, for loops that read this one; None before one."""
        newest = self._parts.states.history.newest
        return newest.state if newest.shown else None

    @property
    def is_paced(self) -> bool:
        """Whether a viewer's playhead paces it; a loop of text keeps to a pace of its own."""
        return self._parts.lead is not None

    @property
    def paused(self) -> bool:
        """Whether it waits for `resume` or `advance`."""
        return self._parts.gate.paused

    @property
    def held(self) -> bool:
        """Whether it is paused, with no chunk left to advance by."""
        return self._parts.gate.held

    @property
    def state(self) -> S:
        """The state that the next unit starts from."""
        return self._parts.states.now.state

    @property
    def ended(self) -> bool:
        """Whether the loop has failed for good or was closed: `ready` will only say None."""
        return self._parts.ended

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call, in order, and forget it."""
        return self._parts.outlet.take()

    def take_behavior(self) -> list[BehaviorRecord]:
        """Return records of the chunks since the last call, and forget them; `options.capture`."""
        return self._parts.capture.take()

    # --- what comes from the session ---

    def takes(self, item: ControlInput) -> bool:
        """Tell whether an input is for this loop."""
        return self._parts.mailbox.takes(item)

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
        self._parts.require_alive()
        self._parts.mailbox.push(inputs, silent=silent)

    def release_keys(self) -> None:
        """Let go of every held key."""
        self._parts.mailbox.release_keys()

    def seen(self, chunk: int, now_us: int) -> None:
        """Note that the viewer has seen every frame up to and including `chunk`."""
        if self._parts.lead is not None:
            self._parts.lead.seen(min(chunk, self.next_chunk - 1), now_us)

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while nobody watches."""
        self._parts.gate.watched(watched)

    def pause(self) -> Position:
        """Run no further unit; may be repeated."""
        self._parts.gate.pause()
        return self.position

    def resume(self) -> Position:
        """Go on; may be repeated."""
        self._parts.gate.resume()
        return self.position

    def advance(self, chunks: int) -> Position:
        """Put out `chunks` more chunks, then be paused. They wait for the viewer like any."""
        self._parts.gate.advance(chunks)
        return self.position

    def parting(self, seen: int | None) -> Moment[S]:
        """Return where another driver can part from this one: after `seen`, or the newest chunk.

        It is good for as long as this driver runs no unit; one that was made with it shares the
        cache blocks, and copies none.
        """
        history = self._parts.states.history
        return history.newest if seen is None else history.at_or_before(seen)

    def durable(self) -> Durable | None:
        """Return what of the newest chunk's state outlives the worker; None when nothing does."""
        newest = self._parts.states.history.newest
        return self._parts.durable_part(newest.state) if newest.chunk >= 0 else None

    def interrupt(self, seen: int | None) -> Position:
        """Drop what is unfinished or unseen; go on from `seen`, or from the oldest kept chunk.

        Prompt, parameters and held keys stay as the person last set them.
        """
        self._travel.interrupt(seen)
        return self.position

    def break_off(self) -> Position:
        """End the utterance in the making, for a loop of text; what waits is still answered."""
        self._travel.break_off()
        return self.position

    def rewind(self, chunk: int) -> Position:
        """Go on from right after `chunk`, sharing its cache blocks.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        self._travel.rewind(chunk)
        return self.position

    def reset(self, seed: int | None = None) -> Position:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        self._travel.reset(seed)
        return self.position

    def snapshot(self, name: str) -> Position:
        """Keep the state after the newest chunk that was put out, under `name`.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        return self._travel.snapshot(name)

    def kept(self, name: str) -> Durable | None:
        """Return what another driver could `keep` of a snapshot; None when nothing of it lasts."""
        return self._travel.kept(name)

    def keep(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep what a driver that was lost had kept under `name`."""
        self._travel.keep(name, chunk, durable)

    def restore(self, name: str) -> Position:
        """Go on from a kept state; prompt and parameters stay as they are.

        Raises:
            UnknownSnapshotError: there is none of that name.
        """
        self._travel.restore(name)
        return self.position

    def hand_over(self) -> Mailbox:
        """Return what waits, for a driver that takes the place of this one, which has ended.

        What was being answered is given up: it may be what has failed.
        """
        parts = self._parts
        assert parts.ended, "only what has ended has a successor"
        given_up = [entry.taken for entry in parts.making.taken]
        parts.making.taken.clear()
        parts.mailbox.hand_over(given_up, parts.outlet.tell)
        return parts.mailbox

    def give_up(self) -> None:
        """Answer what waits, where nobody takes the place of this one, which has ended."""
        self._parts.put_back_controls()
        self._parts.mailbox.abandon()

    def close(self) -> Position:
        """End the loop and give every block back; may be repeated."""
        parts = self._parts
        assert parts.unit is None, "a unit is running"
        if not self._closed:
            parts.end()
            self._closed = True
            try:
                parts.kernel.finalize(parts.states.now.state, parts.instance)
            except Exception:
                log.exception("session %s: finalize failed", self.session)
            parts.states.clear()
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
        """End the loop at once: what it is to go on with cannot be had, however often it tries."""
        self._parts.strikes += 1
        self._parts.fault(code, message)

    def fail(self, error: Exception) -> None:
        """Roll back after `begin` or the kernel raised; the second time in a row ends the loop."""
        if isinstance(error, BadStepError):
            self._parts.fault(error.code, str(error))
        else:
            self._parts.fault(FaultCode.STEP_RAISED, f"{type(error).__name__}: {error}")
