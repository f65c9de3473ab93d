"""Beginning and ending the units of a loop: what they take, and what becomes of their results."""

from typing import Generic

from reverie.engine.checkpoints import Checkpoint
from reverie.engine.emissions import FaultCode, LeadMoved
from reverie.engine.errors import BadStepError
from reverie.engine.loop_context import LoopContext
from reverie.engine.open_chunk import ControlStep, OpenChunk
from reverie.engine.outputs import CheckedOutput, checked_outputs, is_media
from reverie.engine.pacing import PlayoutLead
from reverie.models.contract.controls import NO_CONTROLS, Controls, ParameterRole
from reverie.models.contract.loop import S, StepResult, StepUnit, TextOutput, WorkPlan

LEAD_TOLD_EVERY_US = 1_000_000


class Stepper(Generic[S]):
    """Steps one driver."""

    def __init__(self, context: LoopContext[S]) -> None:
        self._context = context
        self._lead_told_us: int | None = None

    def begin(self) -> StepUnit[S]:
        """Take controls and blocks for the unit that was planned.

        Raises:
            BadStepError: the unit needs more blocks than the session was admitted for.
            OutOfBlocksError: the pool is empty; nothing was taken.
        """
        context, plan = self._context, self._context.planned
        assert plan is not None, "begin comes right after a ready that named a unit"
        assert context.unit is None, "a unit is running"
        context.planned = None
        blocks = context.states.reserve(plan.writes)
        controls = self._take() if plan.takes_controls else NO_CONTROLS
        open_chunk = context.open_chunk
        open_chunk.begun = open_chunk.begun or plan.takes_controls or plan.commits or plan.shows
        context.gate.refresh = False
        context.pace.ran()
        context.step += 1
        context.unit = StepUnit(plan, context.states.now.state, controls, blocks)
        return context.unit

    def complete(self, result: StepResult[S], started_us: int, ended_us: int) -> None:
        """Check what the unit returned, then adopt it or roll it back."""
        context, unit = self._context, self._context.unit
        assert unit is not None, "complete answers a begin"
        plan = unit.plan
        try:
            outputs = self._checked(unit, result)
        except BadStepError as error:
            context.fault(error.code, str(error))
            return
        self._adopt(unit, result)
        if plan.commits and context.options.capture:
            self._record()
        context.open_chunk.spent_us += ended_us - started_us
        if plan.commits or plan.shows:
            context.open_chunk.open = False
        if not context.open_chunk.open:
            context.states.settle()
            context.strikes = 0
        step = context.step - 1
        context.emitter.outputs(outputs, context.open_chunk, step, final=plan.shows)
        if any(isinstance(output, TextOutput) for output in outputs):
            pace = context.kernel.spec.parameter_for(ParameterRole.PACE)
            per_s = context.mailbox.parameters.get(pace, 0.0) if pace is not None else 0.0
            context.pace.spoke(ended_us, per_s)
        self._end_of(plan, unit.controls, ended_us)

    def _take(self) -> Controls:
        context = self._context
        if context.is_between_chunks and not context.open_chunk.taken:
            context.open_chunk = context.open_chunk.emptied()
        taken = context.mailbox.take()
        context.open_chunk.taken.append(ControlStep(taken, context.step))
        context.open_chunk.open = True
        context.open_chunk.acts = context.open_chunk.acts or taken.acts
        return context.seeing(taken.controls)

    def _checked(self, unit: StepUnit[S], result: StepResult[S]) -> tuple[CheckedOutput, ...]:
        closes = unit.plan.commits or unit.plan.shows
        if result.outputs and self._context.open_chunk.open and not closes:
            raise BadStepError(FaultCode.BAD_SHAPE, "an output before its chunk is committed")
        outputs = checked_outputs(
            unit, result, self._context.kernel.spec, self._context.frame_memory
        )
        self._context.states.require_room(result.state.blocks)
        if unit.plan.shows:
            self._require_media(result)
        return outputs

    def _require_media(self, result: StepResult[S]) -> None:
        """Refuse to end a chunk without a picture or a sound: its viewer would wait for ever."""
        context = self._context
        if (
            context.lead is None
            or context.open_chunk.media_out
            or any(map(is_media, result.outputs))
        ):
            return
        raise BadStepError(FaultCode.BAD_SHAPE, "the chunk ends without a frame or a sound")

    def _adopt(self, unit: StepUnit[S], result: StepResult[S]) -> None:
        context, now = self._context, self._context.states.now
        prompt, parameters = now.prompt, now.parameters
        if unit.controls.prompt is not None:
            prompt = unit.controls.prompt
        if unit.controls.parameters:
            parameters = {**parameters, **unit.controls.parameters}
        checkpoint = Checkpoint(result.state, now.chunk, prompt, parameters, media_us=now.media_us)
        context.states.adopt(checkpoint, unit.blocks)
        context.states.make_room()
        context.open_chunk.notes = result.notes or context.open_chunk.notes
        context.open_chunk.turn_notes.update(result.turn_notes)
        context.unit = None

    def _end_of(self, plan: WorkPlan, controls: Controls, now_us: int) -> None:
        context = self._context
        if plan.shows:
            self._show(now_us)
        elif plan.commits and context.lead is None and not controls.turns:
            # The loop may have nothing to say; what it took has acted all the same. A turn
            # has its receipt with the first word of its answer, and until then comes back.
            context.emitter.receipts(context.open_chunk)

    def _show(self, now_us: int) -> None:
        context = self._context
        chunk = context.emitter.chunk
        context.emitter.receipts(context.open_chunk)
        context.capture.shown(chunk)
        end_us = context.emitter.next_us
        if context.open_chunk.acts:
            context.acted_us = end_us
        context.states.show(chunk, end_us)
        media_us = context.emitter.shown(lambda: context.durable_part(context.states.now.state))
        if context.lead is not None:
            context.lead.put_out(chunk, media_us, now_us, end_us=end_us)
            self._tell_lead(context.lead, now_us)
        context.open_chunk = OpenChunk()
        context.gate.shown()

    def _tell_lead(self, lead: PlayoutLead, now_us: int) -> None:
        told_us = self._lead_told_us
        if lead.delay_us is None or (told_us is not None and now_us - told_us < LEAD_TOLD_EVERY_US):
            return
        self._lead_told_us = now_us
        moved = LeadMoved(
            self._context.session,
            self._context.kernel.spec.name,
            lead.allowed_us,
            lead.unseen_us,
            lead.delay_us,
        )
        self._context.emitter.tell(moved)

    def _record(self) -> None:
        context, now = self._context, self._context.states.now
        context.capture.committed(
            context.request.seed,
            context.instance.weights_version,
            now.parameters,
            [entry.taken.controls for entry in context.open_chunk.taken],
            context.kernel.behavior(now.state),
        )
