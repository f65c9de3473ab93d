"""The units of work of the narrator, each for several sessions at once.

Shapes: B sessions, P cached frames, t tokens so far, V tokens of the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import PromptNotes, StepResult, StepUnit, TextOutput
from reverie.models.pocket.narration.vocabulary import END, MOST_SAID
from reverie.models.pocket.narrator.state import NarratorActivity, NarratorState, without_utterance
from reverie.models.pocket.narrator.topic_choice import mark_told, note_look
from reverie.models.pocket.network.narrator import NarratorOutput, SpokenTokens
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.world.past_rows import joined, read_rows
from reverie.models.pocket.world.state import PocketState

Unit = StepUnit[NarratorState]
Result = StepResult[NarratorState]

WORLD_LOOP = "world_model"
STREAM = "narration"


class NarratorUnits:
    """Run units with equal batch keys on an instance's networks."""

    def __init__(self, nets: PocketNets, instance: ModelInstance) -> None:
        self._nets = nets
        self._instance = instance
        self._unsaid = torch.tensor(nets.narration.unsaid, device=instance.device)

    @torch.inference_mode()
    def run(self, units: Sequence[Unit]) -> list[Result]:
        """Run exactly the planned units."""
        match units[0].plan.kind:
            case "look":
                return self._look(units)
            case "prefill":
                return self._prefill(units)
            case "decode_token":
                return self._decode(units)
            case "end":
                return [self._end(unit.state) for unit in units]
        raise AssertionError(f"the narrator has no unit called {units[0].plan.kind}")

    def _look(self, units: Sequence[Unit]) -> list[Result]:
        """Read every slot of the cached frames, and choose a turn or a topic."""
        assert self._instance.blocks is not None, "pocket keeps a cache"
        worlds = [_world_state(unit.controls) for unit in units]
        rows = read_rows(self._nets.world, self._instance.blocks, [s.blocks for s in worlds])
        output = self._nets.narrator.look(self._nets.world, rows[0].past)
        results = []
        glances = self._likeliest(output.scores_BRTV[:, 0]).tolist()
        for index, (unit, world) in enumerate(zip(units, worlds, strict=True)):
            state, glance = with_controls(unit.state, unit.controls), tuple(glances[index])
            state, topic = note_look(state, glance, world.frame)
            if state.asked:
                turn, *waiting = state.asked
                asked = self._nets.narration.encode_question(turn.text)
                state = replace(
                    state, asked=tuple(waiting), answers=turn.id, opening=(*glance, *asked.ids)
                )
            elif topic is not None:
                state = mark_told(state, topic)
                state = replace(state, opening=(*glance, self._nets.narration.topic_id(topic)))
            if state.opening:
                state = replace(
                    state,
                    activity=NarratorActivity.OPENING,
                    blocks=world.blocks,
                    past=rows[index],
                    said=_row(output.said, index),
                    utterances=state.utterances + 1,
                )
            checks = (output.scores_BRTV[index],)
            results.append(StepResult(state, checks=checks, turn_notes=self._notes(unit)))
        return results

    def _notes(self, unit: Unit) -> dict[str, PromptNotes]:
        """Return the unknown words of the new turns."""
        asked = {
            turn.id: self._nets.narration.encode_question(turn.text) for turn in unit.controls.turns
        }
        return {key: PromptNotes(q.unknown_words, q.truncated_at) for key, q in asked.items()}

    def _prefill(self, units: Sequence[Unit]) -> list[Result]:
        """Read topics or questions; choose the first token of the utterance."""
        output = self._read(units, [unit.state.opening for unit in units])
        return [
            self._found(
                replace(unit.state, opening=(), activity=NarratorActivity.SPEAKING), output, index
            )
            for index, unit in enumerate(units)
        ]

    def _decode(self, units: Sequence[Unit]) -> list[Result]:
        """Read the next token, choose the one after it, and emit the first."""
        output = self._read(units, [unit.state.line for unit in units])
        results = []
        for index, unit in enumerate(units):
            [token] = unit.state.line
            found = self._found(unit.state, output, index)
            [after] = found.state.line
            if after == END:  # the unit that ends the utterance emits the last word
                results.append(replace(found, state=replace(found.state, line=(token, END))))
                continue
            text = self._nets.narration.piece(unit.state.before, token, after)
            state = replace(found.state, before=token)
            outputs = (TextOutput(STREAM, text, state.answers),)
            results.append(replace(found, state=state, outputs=outputs))
        return results

    def _end(self, state: NarratorState) -> Result:
        """Emit the last word."""
        text = ""
        if len(state.line) > 1:
            text = self._nets.narration.piece(state.before, state.line[0], END)
        return StepResult(without_utterance(state), (TextOutput(STREAM, text, state.answers),))

    def _read(self, units: Sequence[Unit], tokens: list[tuple[int, ...]]) -> NarratorOutput:
        states = [unit.state for unit in units]
        past = joined([state.past for state in states if state.past is not None])
        said = _joined_said([state.said for state in states if state.said is not None])
        ids_BRT = torch.tensor(tokens, device=self._instance.device)[:, None]
        output: NarratorOutput = self._nets.narrator(self._nets.world, ids_BRT, past, said)
        return output

    def _likeliest(self, scores: Tensor) -> Tensor:
        """Return the likeliest token that can be said, along the last axis."""
        return scores.index_fill(-1, self._unsaid, float("-inf")).argmax(dim=-1)

    def _found(self, state: NarratorState, output: NarratorOutput, index: int) -> Result:
        """Choose the likeliest token; `END` when the utterance has its full length."""
        scores_V = output.scores_BRTV[index, 0, -1]
        spoken = state.spoken + 1
        token = END if spoken >= MOST_SAID else int(self._likeliest(scores_V))
        state = replace(state, said=_row(output.said, index), line=(token,), spoken=spoken)
        return StepResult(state, checks=(scores_V,))


def world_state_of(controls: Controls) -> PocketState | None:
    """Return the newest state of the world's loop whose frames are shown, if there is one."""
    return cast("PocketState | None", controls.peers.get(WORLD_LOOP))


def with_controls(state: NarratorState, controls: Controls) -> NarratorState:
    """Return the state after the controls act."""
    narrate = bool(controls.parameters.get("narrate", state.narrate))
    # After an interrupt before the first word, turns that wait here are delivered again.
    waiting = {turn.id for turn in state.asked if turn.id}
    new = [turn for turn in controls.turns if turn.id not in waiting]
    return replace(state, narrate=narrate, asked=(*state.asked, *new))


def _world_state(controls: Controls) -> PocketState:
    world = world_state_of(controls)
    assert world is not None, "a look is planned only where the world has shown something"
    return world


def _row(said: SpokenTokens, index: int) -> SpokenTokens:
    return SpokenTokens(
        said.tokens, tuple((k[index : index + 1], v[index : index + 1]) for k, v in said.layers)
    )


def _joined_said(texts: Sequence[SpokenTokens]) -> SpokenTokens:
    if len(texts) == 1:
        return texts[0]

    def side(layer: int, part: int) -> Tensor:
        return torch.cat([text.layers[layer][part] for text in texts])

    layers = range(len(texts[0].layers))
    return SpokenTokens(
        texts[0].tokens, tuple((side(layer, 0), side(layer, 1)) for layer in layers)
    )
