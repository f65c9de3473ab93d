"""Beginning and ending the units of a loop: what they take, and what becomes of their results."""

from typing import Generic

from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.history import Moment
from reverie.engine.making import Making, TakenAt
from reverie.engine.outputs import CheckedOutput, checked_outputs, is_media
from reverie.engine.parts import Parts
from reverie.models.controls import NO_CONTROLS, Controls
from reverie.models.loop import S, StepResult, StepUnit, TextOutput, WorkPlan
from reverie.models.spec import PACE


class Stepper(Generic[S]):
    """Steps one driver."""

    def __init__(self, parts: Parts[S]) -> None:
        self._parts = parts

    def begin(self) -> StepUnit[S]:
        """Take controls and blocks for the unit that was planned.

        Raises:
            BadStepError: the unit needs more blocks than the session was admitted for.
            OutOfBlocksError: the pool is empty; nothing was taken.
        """
        parts, plan = self._parts, self._parts.planned
        assert plan is not None, "begin comes right after a ready that named a unit"
        assert parts.unit is None, "a unit is running"
        parts.planned = None
        blocks = parts.states.reserve(plan.writes)
        controls = self._take() if plan.takes_controls else NO_CONTROLS
        making = parts.making
        making.begun = making.begun or plan.takes_controls or plan.commits or plan.shows
        parts.gate.refresh = False
        parts.pace.ran()
        parts.step += 1
        parts.unit = StepUnit(plan, parts.states.now.state, controls, blocks)
        return parts.unit

    def complete(
        self, result: StepResult[S], started_us: int, ended_us: int, batch: int, waited: int
    ) -> None:
        """Check what the unit returned, then adopt it or roll it back."""
        parts, unit = self._parts, self._parts.unit
        assert unit is not None, "complete answers a begin"
        plan = unit.plan
        try:
            outputs = self._checked(unit, result)
        except BadStepError as error:
            parts.fault(error.code, str(error))
            return
        self._adopt(unit, result)
        if plan.commits and parts.options.capture:
            self._record()
        parts.making.spent_us += ended_us - started_us
        if plan.commits or plan.shows:
            parts.making.open = False
        if not parts.making.open:
            parts.states.settle()
            parts.strikes = 0
        step = parts.step - 1
        parts.outlet.outputs(outputs, parts.making, step, final=plan.shows)
        if any(isinstance(output, TextOutput) for output in outputs):
            parts.pace.spoke(ended_us, parts.mailbox.parameters.get(PACE, 0.0))
        if parts.options.trace:
            parts.outlet.traced(plan, step, started_us, ended_us, batch, waited)
        self._end_of(plan, unit.controls, ended_us)

    def _take(self) -> Controls:
        parts = self._parts
        if parts.is_between_chunks and not parts.making.taken:
            parts.making = parts.making.anew()
        taken = parts.mailbox.take()
        parts.making.taken.append(TakenAt(taken, parts.step))
        parts.making.open = True
        return parts.seeing(taken.controls)

    def _checked(self, unit: StepUnit[S], result: StepResult[S]) -> tuple[CheckedOutput, ...]:
        closes = unit.plan.commits or unit.plan.shows
        if result.outputs and self._parts.making.open and not closes:
            raise BadStepError(FaultCode.BAD_SHAPE, "an output before its chunk is committed")
        outputs = checked_outputs(unit, result, self._parts.kernel.spec)
        self._parts.states.require_room(result.state.blocks)
        if unit.plan.shows:
            self._require_media(result)
        return outputs

    def _require_media(self, result: StepResult[S]) -> None:
        """Refuse to end a chunk that nobody can see or hear: its viewer would wait for ever."""
        parts = self._parts
        if parts.lead is None or parts.making.media_out or any(map(is_media, result.outputs)):
            return
        raise BadStepError(FaultCode.BAD_SHAPE, "the chunk ends without a frame or a sound")

    def _adopt(self, unit: StepUnit[S], result: StepResult[S]) -> None:
        parts, now = self._parts, self._parts.states.now
        prompt, parameters = now.prompt, now.parameters
        if unit.controls.prompt is not None:
            prompt = unit.controls.prompt
        if unit.controls.parameters:
            parameters = {**parameters, **unit.controls.parameters}
        moment = Moment(result.state, now.chunk, prompt, parameters, media_us=now.media_us)
        parts.states.adopt(moment, unit.blocks)
        parts.states.make_room()
        parts.making.notes = result.notes or parts.making.notes
        parts.making.turn_notes.update(result.turn_notes)
        parts.unit = None

    def _end_of(self, plan: WorkPlan, controls: Controls, now_us: int) -> None:
        parts = self._parts
        if plan.shows:
            self._show(now_us)
        elif plan.commits and parts.lead is None and not controls.turns:
            # It may be that nothing is worth a word; what it took has acted all the same. A turn
            # has its receipt with the first word of its answer, and until then comes back.
            parts.outlet.receipts(parts.making)

    def _show(self, now_us: int) -> None:
        parts = self._parts
        chunk = parts.outlet.chunk
        parts.outlet.receipts(parts.making)
        parts.capture.shown(chunk)
        end_us = parts.outlet.next_us
        parts.states.show(chunk, end_us)
        media_us = parts.outlet.shown(lambda: parts.durable_part(parts.states.now.state))
        if parts.lead is not None:
            parts.lead.put_out(chunk, media_us, now_us, end_us=end_us)
        parts.making = Making()
        parts.gate.shown()

    def _record(self) -> None:
        parts, now = self._parts, self._parts.states.now
        parts.capture.committed(
            parts.request.seed,
            parts.instance.weights_version,
            now.parameters,
            [entry.taken.controls for entry in parts.making.taken],
            parts.kernel.behavior(now.state),
        )
