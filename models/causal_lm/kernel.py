"""The loop `ar_decode`: reads the conversation in bounded pieces, then draws a token a unit.

An utterance is an answer. The unit that takes the turn commits and reads the first piece; the unit
that draws the last token ends it. The answer can be interrupted between any two units: the text
that was put out stays in the conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from reverie.models.causal_lm.components import ChatComponents
from reverie.models.causal_lm.conversation import DecodedSpan, Message, until_stop
from reverie.models.causal_lm.durable import durable_chat, revived_chat
from reverie.models.causal_lm.sampling import SamplingOptions, draw, seeded_state
from reverie.models.causal_lm.state import ChatState
from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    Idle,
    LoopKernel,
    LoopRequest,
    PlanOptions,
    PromptNotes,
    StepBatch,
    StepResult,
    StepUnit,
    TextOutput,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec

PIECE = 64
"""Tokens that one unit reads at most."""
STREAM = "text"


class ChatKernel(LoopKernel[ChatState]):
    """Answers turns, oldest first."""

    def __init__(self, spec: LoopSpec, components: ChatComponents, instance: ModelInstance) -> None:
        self.spec = spec
        self.components, self._instance = components, instance

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> ChatState:
        """Bind prompt, seed and parameters."""
        sampling, longest = _options(request.parameters, SamplingOptions(), 1)
        mix = self.components.adapters.mix(request.parameters)
        random = seeded_state(request.seed)
        return ChatState(request.prompt, sampling, longest, random, mix=mix, stops=request.stop)

    def plan_step(self, state: ChatState, controls: Controls) -> WorkPlan | Idle:
        """Take a turn, read what leads up to the answer, draw tokens, end."""
        if state.answering is None:
            if not controls.turns:
                return Idle("no turn is waiting")
            return self._plan(state, "listen", takes_controls=True, commits=True)
        if state.done:
            return self._plan(state, "end", streams=(STREAM,), shows=True)
        count = len(_piece(state))
        if len(state.unread) > 1:
            return self._plan(state, "prefill", count)
        return self._plan(state, "decode_token", count, streams=(STREAM,))

    def run_step(self, batch: StepBatch[ChatState]) -> Sequence[StepResult[ChatState]]:
        """Run the units one after another."""
        with torch.no_grad():
            return [self._run(unit) for unit in batch.units]

    def durable(self, state: ChatState) -> Durable | None:
        """Return the conversation."""
        return durable_chat(state, self.spec.name, self._instance.weights_version)

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> ChatState:
        """Continue a conversation; the first answer reads all of it again."""
        mix = self.components.adapters.mix(request.parameters)
        return replace(revived_chat(durable), mix=mix, stops=request.stop)

    def cancel(self, state: ChatState) -> ChatState | None:
        """Keep the part of the answer that was put out, and finish the turn."""
        return _closed(state) if state.answering is not None else None

    def _run(self, unit: StepUnit[ChatState]) -> StepResult[ChatState]:
        match unit.plan.kind:
            case "listen":
                return self._listen(unit.state, unit.controls)
            case "prefill":
                return StepResult(self._read(unit.state, unit.blocks)[0])
            case "decode_token":
                return self._decode(unit.state, unit.blocks)
            case _:
                return self._end(unit.state)

    def _listen(self, state: ChatState, controls: Controls) -> StepResult[ChatState]:
        """Add the turn to the conversation, and find the tokens that the model must read for it."""
        [turn] = controls.turns[:1]
        prompt = state.prompt if controls.prompt is None else controls.prompt
        sampling, longest = _options(controls.parameters, state.sampling, state.longest)
        messages = (*state.messages, Message("user", turn.text))
        system = (Message("system", prompt),) if prompt else ()
        fitted = self.components.conversation.fitted((*system, *messages), longest)
        ids = fitted.ids
        mix = self.components.adapters.mix(controls.parameters, state.mix)
        # Other adapters read the whole conversation again, else only the new tokens are read: the
        # last one always, because the answer is drawn from its logits.
        kept = ids[:-1] if mix == state.mix else ()
        cached = state.cached.common_with(kept)
        after = replace(
            state,
            mix=mix,
            prompt=prompt,
            sampling=sampling,
            longest=longest,
            messages=fitted.messages[len(system) :],  # dropped messages do not return
            forgotten=state.forgotten + fitted.dropped,
            cached=cached,
            unread=ids[len(cached.tokens) :],
            answering=turn.id,
        )
        notes = PromptNotes(truncated_at=fitted.read, dropped_messages=fitted.dropped)
        return StepResult(after, turn_notes={turn.id: notes})

    def _read(self, state: ChatState, reserved: tuple[BlockId, ...]) -> tuple[ChatState, Tensor]:
        """Run the model on the next piece; return the logits after it as well."""
        assert self._instance.blocks is not None, "a language model keeps a cache"
        piece = _piece(state)
        layout, pool = self.components.layout, self._instance.blocks
        working = state.cached.opened(pool, layout)
        with self.components.adapters.applied(state.mix):
            output = self.components.model(
                input_ids=torch.tensor([piece], device=self._instance.device),
                cache=working.cache,
                use_cache=True,
                logits_to_keep=1,
            )
        cached = state.cached.grown(piece, working, layout, reserved, pool)
        state = replace(state, cached=cached, unread=state.unread[len(piece) :])
        return state, output.logits[0, -1]

    def _decode(self, state: ChatState, reserved: tuple[BlockId, ...]) -> StepResult[ChatState]:
        state, logits_V = self._read(state, reserved)
        token, random = draw(logits_V, state.sampling, state.random, state.cached.tokens)
        state = replace(state, random=random)
        if token in self.components.ends:
            return StepResult(replace(state, done=True), checks=(logits_V,))
        answer = (*state.answer, token)
        new, decoded = self.components.conversation.decode(answer, state.decoded)
        pending = state.held + new
        new, stopped = until_stop(pending, (*self.components.stops, *state.stops))
        full = len(state.cached.tokens) >= self.components.conversation.context
        done = stopped or full or len(answer) >= state.longest
        state = replace(
            state,
            answer=answer,
            decoded=decoded,
            unread=(token,),
            said=state.said + new,
            held="" if stopped else pending[len(new) :],
            done=done,
        )
        outputs = (TextOutput(STREAM, new, state.answering or None),) if new else ()
        return StepResult(state, outputs, checks=(logits_V,))

    def _end(self, state: ChatState) -> StepResult[ChatState]:
        """Put out the text that was held back, and wait for the next turn."""
        rest = TextOutput(STREAM, state.held, state.answering or None)
        return StepResult(_closed(replace(state, said=state.said + state.held)), (rest,))

    def _plan(
        self, state: ChatState, kind: str, count: int = 0, **options: Unpack[PlanOptions]
    ) -> WorkPlan:
        """Plan a unit that reads `count` tokens."""
        adapters = self.components.adapters.versions(state.mix)
        options["writes"] = state.cached.pages_filled_by(count)
        return WorkPlan.of(self._instance, self.spec, kind, (count,), adapters, **options)


def _piece(state: ChatState) -> tuple[int, ...]:
    """Return what the next unit reads: a piece, and the last token alone."""
    return state.unread[: min(PIECE, max(1, len(state.unread) - 1))]


def _closed(state: ChatState) -> ChatState:
    answer = (Message("assistant", state.said),) if state.said else ()
    return replace(
        state,
        messages=(*state.messages, *answer),
        unread=(),
        answer=(),
        decoded=DecodedSpan(),
        said="",
        held="",
        done=False,
        answering=None,
    )


def _options(
    parameters: Mapping[str, float], sampling: SamplingOptions, longest: int
) -> tuple[SamplingOptions, int]:
    """Return the options after a change of some."""
    return (
        SamplingOptions(
            temperature=parameters.get("temperature", sampling.temperature),
            top_p=parameters.get("top_p", sampling.top_p),
            top_k=int(parameters.get("top_k", sampling.top_k)),
            min_p=parameters.get("min_p", sampling.min_p),
            repetition_penalty=parameters.get("repetition_penalty", sampling.repetition_penalty),
        ),
        int(parameters.get("longest", longest)),
    )
