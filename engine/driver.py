"""The driver: one session's loop, from a merged control to frames that go out.

Plain synchronous code on the worker's step thread. It has no clock and does no I/O: time comes in
as an argument (microseconds of one monotonic clock), and what it has to tell collects until
`take_emissions`.

A chunk is a transaction. It opens with the unit that takes controls and closes with the one that
commits; every unit outside of one (a decode, a context pass) stands by itself. What fails is rolled
back to the last closed one, so nothing that was committed is ever touched.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

from reverie.engine.candidate import Candidate
from reverie.engine.capture import Capture
from reverie.engine.emissions import Emission, FaultCode
from reverie.engine.errors import (
    BadStepError,
    ChunkNotKeptError,
    LoopEndedError,
    NoSnapshotError,
    SnapshotLimitError,
    UnknownSnapshotError,
)
from reverie.engine.history import Moment
from reverie.engine.inputs import ControlInput
from reverie.engine.lead import Lead
from reverie.engine.mailbox import Mailbox
from reverie.engine.making import Making, TakenAt
from reverie.engine.options import DEFAULT_OPTIONS, DriverOptions
from reverie.engine.outlet import Outlet
from reverie.engine.outputs import checked_outputs
from reverie.engine.position import Position
from reverie.engine.states import States
from reverie.models.behavior import BehaviorRecord
from reverie.models.controls import NO_CONTROLS
from reverie.models.instance import ModelInstance
from reverie.models.loop import (
    Durable,
    LoopKernel,
    LoopRequest,
    S,
    StepResult,
    StepUnit,
    WorkPlan,
)

log = logging.getLogger(__name__)


__all__ = ["Candidate", "DriverOptions", "LoopDriver", "Position"]


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
    ) -> None:
        """Begin anew, or go on for a driver that was lost.

        Args:
            kernel: the loop.
            instance: what it runs on.
            request: who asks, and for what.
            options: how to treat them.
            durable: what its last `SnapshotOut` kept; None starts the world anew.
            chunks: chunks that it had put out, so that numbers go on.
            pts_us: media time at which the next frame begins.
        """
        self._kernel = kernel
        self._instance = instance
        self._request = request
        self._options = options
        self._outlet = Outlet(
            request.session, kernel.spec, chunks, pts_us, options.snapshot_every_us
        )
        self._mailbox = Mailbox(request, kernel.spec, self._outlet.tell)
        rates = [stream.rate_hz for stream in kernel.spec.streams if stream.rate_hz > 0]
        self._lead = Lead(options.lead_chunks, round(1e6 / rates[0]) if rates else 0)
        self._capture = Capture(request.session, kernel.spec.name)
        self._making = Making()
        self._planned: WorkPlan | None = None
        self._unit: StepUnit[S] | None = None
        self._step = 0  # number of the next unit
        self._strikes = 0  # failures since anything last closed
        self._allowance = 0  # chunks that may be put out while paused
        self._paused = False
        self._watched = True
        self._ended = False
        self._closed = False
        self._refresh = False  # what was held is planned anew when controls have come
        first = self._revived(durable, chunks - 1) if durable else self._first_moment(request)
        self._states: States[S] = States(
            instance.blocks,
            first,
            history=max(options.history_chunks, options.lead_chunks) + 1,
            snapshots=options.snapshots,
            budget=kernel.spec.blocks_a_session(options.history_chunks),
        )
        if durable or chunks:
            self._jump(first)

    # --- what can be asked ---

    @property
    def session(self) -> str:
        """Whose loop it is."""
        return self._request.session

    @property
    def position(self) -> Position:
        """Where the session stands now."""
        return Position(self._states.now.chunk, self._outlet.next_us)

    @property
    def paused(self) -> bool:
        """Whether it waits for `resume` or `advance`."""
        return self._paused

    @property
    def ended(self) -> bool:
        """Whether the loop has failed for good or was closed: `ready` will only say None."""
        return self._ended

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call, in order, and forget it."""
        return self._outlet.take()

    def take_behavior(self) -> list[BehaviorRecord]:
        """Return records of the chunks since the last call, and forget them; `options.capture`."""
        return self._capture.take()

    # --- what comes from the session ---

    def push(self, inputs: Sequence[ControlInput]) -> None:
        """Put controls into the mailbox; each will have a receipt.

        Raises:
            UnknownControlError: the loop does not take one of them; none was taken.
            LoopEndedError: the loop has ended.
        """
        self._require_alive()
        self._mailbox.push(inputs)

    def release_keys(self) -> None:
        """Let go of every held key."""
        self._mailbox.release_keys()

    def seen(self, chunk: int, now_us: int) -> None:
        """Note that the viewer has seen every frame up to and including `chunk`."""
        self._lead.seen(chunk, now_us)

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while nobody watches."""
        self._watched = watched

    def pause(self) -> Position:
        """Run no further unit; may be repeated."""
        self._paused, self._allowance, self._refresh = True, 0, True
        return self.position

    def resume(self) -> Position:
        """Go on; may be repeated."""
        self._paused, self._allowance = False, 0
        return self.position

    def advance(self, chunks: int) -> Position:
        """Put out `chunks` more chunks, then be paused. They wait for the viewer like any."""
        if not self._paused:
            self.pause()
        self._allowance += chunks
        return self.position

    def interrupt(self, seen: int | None) -> Position:
        """Drop what is unfinished or unseen; go on from `seen`, or from the oldest kept chunk.

        Prompt, parameters and held keys stay as the person last set them.
        """
        self._require_alive()
        moment = self._states.history.at_or_before(-1 if seen is None else seen)
        if moment is self._states.history.newest and (self._making.open or not self._making.begun):
            self._go_to(self._states.safe, moment)  # its context pass need not run again
        else:
            self._go_to(moment, moment)
        return self.position

    def rewind(self, chunk: int) -> Position:
        """Go on from right after `chunk`, sharing its cache blocks.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        self._require_alive()
        moment = self._states.history.find(chunk)
        if moment is None:
            kept = [str(moment.chunk) for moment in self._states.history if moment.chunk >= 0]
            which = f"those kept: {', '.join(kept)}" if kept else "no chunk was put out yet"
            raise ChunkNotKeptError(f"chunk {chunk} is not kept; {which}")
        self._go_to(moment, moment)
        return self.position

    def reset(self, seed: int | None = None) -> Position:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        self._require_alive()
        request = replace(
            self._request,
            seed=self._request.seed if seed is None else seed,
            prompt=self._mailbox.prompt,
            parameters=dict(self._mailbox.parameters),
        )
        moment = self._first_moment(request)
        self._request = request
        self._go_to(moment, moment)
        return self.position

    def snapshot(self, name: str) -> Position:
        """Keep the state after the newest chunk that was put out, under `name`.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        self._require_alive()
        moment = self._states.history.newest
        if moment.chunk < 0:
            raise NoSnapshotError("there is no chunk to keep yet")
        if not self._states.snapshots.has_room(name):
            raise SnapshotLimitError(f"a session keeps at most {self._options.snapshots} snapshots")
        durable = self._kernel.durable(moment.state) if moment.state.blocks else None
        if moment.state.blocks and durable is None:
            raise NoSnapshotError(f"loop {self._kernel.spec.name} has no state that can be kept")
        self._states.snapshots.put(name, moment, durable)
        return Position(moment.chunk, self._outlet.next_us)

    def kept(self, name: str) -> Durable | None:
        """Return what another driver could `keep` of a snapshot; None when nothing of it lasts."""
        snapshot = self._states.snapshots.get(name)
        if snapshot is None or snapshot.durable is not None or snapshot.moment is None:
            return snapshot.durable if snapshot else None
        return self._durable_part(snapshot.moment.state)

    def keep(self, name: str, chunk: int, durable: Durable) -> None:
        """Keep what a driver that was lost had kept under `name`."""
        self._states.snapshots.put_durable(name, chunk, durable)

    def restore(self, name: str) -> Position:
        """Go on from a kept state; prompt and parameters stay as they are.

        Raises:
            UnknownSnapshotError: there is none of that name.
        """
        self._require_alive()
        snapshot = self._states.snapshots.get(name)
        if snapshot is None:
            raise UnknownSnapshotError(f"there is no snapshot called {name!r}")
        moment = snapshot.moment
        if moment is None:
            assert snapshot.durable is not None, "a snapshot keeps one or the other"
            moment = self._revived(snapshot.durable, snapshot.chunk)
        self._go_to(moment, moment)
        return self.position

    def close(self) -> Position:
        """End the loop and give every block back; may be repeated."""
        assert self._unit is None, "a unit is running"
        if not self._closed:
            self._end()
            self._closed = True
            try:
                self._kernel.finalize(self._states.now.state, self._instance)
            except Exception:
                log.exception("session %s: finalize failed", self.session)
            self._states.clear()
        return self.position

    # --- what the step thread does with it ---

    def ready(self, now_us: int) -> Candidate | None:
        """Say which unit could run now; None while held, paused, idle, unwatched or ended.

        Look at `take_emissions` afterwards: planning can fail.
        """
        self._planned = None
        held = self._paused and not self._allowance
        if self._ended or held or not (self._watched or self._making.begun):
            return None
        if self._refresh and self._making.open and self._mailbox.has_news:
            self._roll_back()
        deadline_us = self._lead.deadline_us(now_us)
        plan = self._plan()
        if plan is not None and plan.commits and self._lead.full:
            plan = self._plan_anew(now_us, deadline_us)
        self._planned = plan
        if plan is None:
            return None
        return Candidate(self.session, plan, deadline_us, running=self._making.begun)

    def begin(self) -> StepUnit[S]:
        """Take controls and blocks for the unit that `ready` named.

        Raises:
            OutOfBlocksError: the pool is empty; nothing was taken.
        """
        plan = self._planned
        assert plan is not None, "begin comes right after a ready that named a unit"
        assert self._unit is None, "a unit is running"
        self._planned = None
        blocks = self._states.reserve(plan.writes)
        controls = NO_CONTROLS
        making = self._making
        if plan.takes_controls:
            taken = self._mailbox.take()
            controls = taken.controls
            making.taken.append(TakenAt(taken, self._step))
            making.open = True
        making.begun = making.begun or plan.takes_controls or plan.commits or plan.shows
        self._refresh = False
        self._step += 1
        self._unit = StepUnit(plan, self._states.now.state, controls, blocks)
        return self._unit

    def complete(self, result: StepResult[S], started_us: int, ended_us: int, batch: int) -> None:
        """Check what the unit returned, then adopt it or roll it back.

        Args:
            result: the kernel's answer.
            started_us: when the batch began.
            ended_us: when it ended.
            batch: how many units ran in it.
        """
        unit = self._unit
        assert unit is not None, "complete answers a begin"
        closes = unit.plan.commits or unit.plan.shows
        try:
            if result.outputs and self._making.open and not closes:
                raise BadStepError(FaultCode.BAD_SHAPE, "an output before its chunk is committed")
            outputs = checked_outputs(unit, result, self._kernel.spec)
        except BadStepError as error:
            self._fault(error.code, str(error))
            return
        self._adopt(unit, result)
        if unit.plan.commits and self._options.capture:
            self._record()
        self._making.spent_us += ended_us - started_us
        if closes:
            self._making.open = False
        if not self._making.open:
            self._states.settle()
            self._strikes = 0
        step = self._step - 1
        self._outlet.outputs(outputs, self._making, step)
        if self._options.trace:
            self._outlet.traced(unit.plan, step, started_us, ended_us, batch)
        if unit.plan.shows:
            self._show(ended_us)

    def fail(self, error: Exception) -> None:
        """Roll back after `begin` or the kernel raised; the second time in a row ends the loop."""
        self._fault(FaultCode.STEP_RAISED, f"{type(error).__name__}: {error}")

    # --- planning ---

    def _plan(self) -> WorkPlan | None:
        try:
            plan = self._kernel.plan_step(self._states.now.state, self._mailbox.peek())
        except Exception as error:
            log.exception("session %s: plan_step failed", self.session)
            # It is pure: asking again would give the same answer.
            self._strikes += 1
            self.fail(error)
            return None
        return plan if isinstance(plan, WorkPlan) else None

    def _plan_anew(self, now_us: int, deadline_us: int) -> WorkPlan | None:
        """At the full lead: take up controls that came, once a chunk and when there is time."""
        making = self._making
        # Long past the deadline the viewer is away, and there is time as well.
        has_time = abs(deadline_us - now_us) >= making.spent_us
        if not (making.open and self._mailbox.has_news and has_time) or making.refreshed:
            return None
        self._roll_back()
        self._making.refreshed = True
        plan = self._plan()
        return None if plan is None or plan.commits else plan

    # --- the end of a unit ---

    def _adopt(self, unit: StepUnit[S], result: StepResult[S]) -> None:
        now = self._states.now
        prompt, parameters = now.prompt, now.parameters
        if unit.controls.prompt is not None:
            prompt = unit.controls.prompt
        if unit.controls.parameters:
            parameters = {**parameters, **unit.controls.parameters}
        moment = Moment(result.state, now.chunk, prompt, parameters)
        self._states.adopt(moment, unit.blocks)
        self._making.notes = result.notes or self._making.notes
        self._unit = None

    def _show(self, now_us: int) -> None:
        chunk = self._outlet.chunk
        self._outlet.receipts(self._making)
        self._capture.shown(chunk)
        self._states.show(chunk)
        media_us = self._outlet.shown(self._durable)
        self._lead.put_out(chunk, media_us, now_us)
        self._making = Making()
        self._allowance = max(0, self._allowance - 1)

    def _record(self) -> None:
        now = self._states.now
        self._capture.committed(
            self._request.seed,
            self._instance.weights_version,
            now.parameters,
            [entry.taken.controls for entry in self._making.taken],
            self._kernel.behavior(now.state),
        )

    # --- going back ---

    def _fault(self, code: FaultCode, message: str) -> None:
        self._strikes += 1
        fatal = self._strikes > 1
        self._outlet.failed(code, max(0, self._step - 1), message, fatal)
        self._roll_back()
        if fatal:
            self._end()

    def _roll_back(self) -> None:
        reserved = self._unit.blocks if self._unit else ()
        self._unit = self._planned = None
        self._states.roll_back(reserved)
        if self._making.open:
            self._put_back_controls()
            self._making = Making(refreshed=self._making.refreshed)

    def _put_back_controls(self) -> None:
        for entry in reversed(self._making.taken):
            self._mailbox.put_back(entry.taken)
        self._making.taken.clear()

    def _go_to(self, moment: Moment[S], kept: Moment[S]) -> None:
        assert self._unit is None, "a unit is running"
        self._put_back_controls()
        self._states.go_to(moment, kept)
        self._jump(moment)
        self._making = Making()
        self._planned = None
        self._strikes = self._allowance = 0
        self._lead.skip()

    def _jump(self, moment: Moment[S]) -> None:
        self._outlet.jump(self._making)
        self._capture.drop()
        self._mailbox.want(moment.prompt, moment.parameters)

    def _first_moment(self, request: LoopRequest) -> Moment[S]:
        state = self._kernel.init_state(request, self._instance)
        return Moment(state, -1, request.prompt, request.parameters)

    def _revived(self, durable: Durable, chunk: int) -> Moment[S]:
        state = self._kernel.revive(durable, self._request, self._instance)
        return Moment(state, chunk, None, {})

    def _durable(self) -> Durable | None:
        return self._durable_part(self._states.now.state)

    def _durable_part(self, state: S) -> Durable | None:
        try:
            return self._kernel.durable(state)
        except Exception:
            log.exception("session %s: its state cannot be saved", self.session)
            return None

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._put_back_controls()
            self._mailbox.abandon()

    def _require_alive(self) -> None:
        if self._ended:
            raise LoopEndedError("the loop has ended")
