from dataclasses import replace

import numpy as np
import pytest
from faulty_kernel import FaultyKernel, KernelFault
from fingerprint import fingerprint, random_fingerprint
from narrator_rig import NarratorRig, Pair

from reverie.engine.checkpoints import BlockHolder
from reverie.engine.emissions import StepFailed
from reverie.engine.inputs import ControlId, ParameterInput
from reverie.models.contract.controls import Controls, Turn
from reverie.models.contract.loop import Idle, Output, StepBatch, StepUnit
from reverie.models.pocket.narration.facts import SLOTS
from reverie.models.pocket.narration.vocabulary import END, MOST_SAID, Topic
from reverie.models.pocket.narrator.state import NarratorState
from reverie.models.pocket.narrator.topic_choice import (
    LOOK_EVERY,
    QUIET,
    mark_told,
    note_look,
    should_look,
)
from reverie.models.pocket.spec import POCKET

QUESTION = "what is to the left"


def asked(seed: int = 7, question: str = QUESTION) -> Pair:
    """Return a session that has answered one question."""
    rig = NarratorRig()
    pair = rig.open(seed=seed)
    rig.walk(3)
    pair.ask(question)
    rig.speak_out()
    return pair


# --- what it says, and when ---


def test_it_is_silent_before_the_first_frame() -> None:
    rig = NarratorRig()
    pair = rig.open(narrate=True)
    pair.ask(QUESTION)
    assert rig.speak_out() == 0
    rig.walk(2)
    rig.speak_out()
    assert pair.said[0].answers == "q"


def test_an_answer_names_its_question_and_ends_once() -> None:
    pair = asked()
    assert {out.answers for out in pair.said} == {"q"}
    assert {out.chunk for out in pair.said} == {0}
    assert [out.final for out in pair.said] == [False] * (len(pair.said) - 1) + [True]
    assert [receipt.control for receipt in pair.receipts] == ["q"]


def test_an_answer_that_does_not_end_is_ended() -> None:
    assert len(asked().said) <= MOST_SAID


def test_questions_are_answered_in_their_order() -> None:
    rig = NarratorRig()
    pair = rig.open()
    rig.walk(2)
    pair.ask("which biome is this", "a")
    pair.ask("what time is it", "b")
    rig.speak_out()
    answers = [out.answers for out in pair.said if out.final]
    assert answers == ["a", "b"]


def test_unknown_words_are_in_the_receipt() -> None:
    [receipt] = asked(question="where is the Xanadu").receipts
    assert receipt.unknown_words == ("xanadu",)


def test_it_is_silent_unless_asked_where_narrate_is_0() -> None:
    rig = NarratorRig()
    pair = rig.open(narrate=False)
    rig.walk(4)
    assert rig.speak_out() == 0
    pair.narrator.push([ParameterInput(ControlId("p"), "narrate", 1.0)])
    rig.speak_out()
    assert pair.text
    assert {out.answers for out in pair.said} == {None}


def test_it_speaks_of_the_place_first_and_then_is_quiet_for_a_while() -> None:
    rig = NarratorRig()
    pair = rig.open(narrate=True)
    rig.walk(2)
    rig.speak_out()
    first = len(pair.said)
    assert first
    rig.walk(2)
    assert rig.speak_out() == 0
    state = pair.narrator.state
    assert state.topics[-1] is Topic.PLACE
    assert not any(state.told[2:])


def test_programs_share_one_instance_and_differ_in_what_is_said_unasked() -> None:
    assert POCKET.program("narrated_world").loops == ("world_model", "ar_decode")
    defaults = {p.name: p.default for p in POCKET.program_parameters("narrated_world")}
    quiet = {p.name: p.default for p in POCKET.program_parameters("chat")}
    assert (defaults["narrate"], quiet["narrate"]) == (1.0, 0.0)


# --- which topic is due ---


def glance(**changed: int) -> tuple[int, ...]:
    words = [100 + slot for slot in range(SLOTS)]
    for name, value in changed.items():
        words[int(name[1:])] = value
    return tuple(words)


def told_all(at: int = 0) -> NarratorState:
    state = NarratorState(narrate=True, glance=glance(), looked_at=at)
    for topic in Topic:
        state = mark_told(state, topic)
    return state


def test_a_topic_that_was_told_is_not_due() -> None:
    state, topic = note_look(told_all(), glance(), QUIET + 1)
    assert topic is None
    assert state.looked_at == QUIET + 1


def test_a_change_that_is_read_twice_makes_a_topic_due() -> None:
    state, topic = note_look(told_all(), glance(s1=7), QUIET)
    assert topic is None
    state, topic = note_look(state, glance(s1=7), QUIET + LOOK_EVERY)
    assert topic is Topic.PLACE
    assert note_look(mark_told(state, topic), glance(s1=7), 3 * QUIET)[1] is None


def test_a_topic_waits_for_the_pause_between_utterances() -> None:
    state, _ = note_look(told_all(), glance(s4=7), 2)
    assert note_look(state, glance(s4=7), QUIET - 1)[1] is None
    assert note_look(state, glance(s4=7), QUIET)[1] is Topic.LEFT


def test_of_several_topics_the_one_not_told_for_longest_comes_first() -> None:
    state = told_all()
    state = mark_told(state, Topic.LEFT)
    state, _ = note_look(state, glance(s4=7, s7=8), 2 * QUIET)
    assert note_look(state, glance(s4=7, s7=8), 2 * QUIET + 1)[1] is Topic.RIGHT


def test_it_looks_every_few_frames_and_after_a_jump_back() -> None:
    state = NarratorState(narrate=True, looked_at=10)
    assert not should_look(state, 10 + LOOK_EVERY - 1)
    assert should_look(state, 10 + LOOK_EVERY)
    assert should_look(state, 4)
    silent = replace(state, narrate=False)
    assert not should_look(silent, 100)
    assert should_look(replace(silent, asked=(Turn("hm"),)), 10)


# --- the contract of a kernel ---


class Bare:
    """The kernel run by hand, one unit at a time, on one state of a world."""

    def __init__(self) -> None:
        self.rig = NarratorRig()
        self.rig.open()
        self.rig.walk(3)
        world = self.rig.pairs["s1"].world.shown_state
        assert world is not None
        turns = (Turn("what is below", "t1"), Turn("where is the water", "t2"))
        self.controls = Controls(turns=turns, peers={"world_model": world})
        self.seeing = Controls(peers={"world_model": world})
        self.kernel, self.instance = self.rig.kernel, self.rig.instance
        self.holder = BlockHolder(self.instance.blocks)
        self.state = NarratorState(narrate=False)

    def units(self) -> list[tuple[str, tuple[Output, ...]]]:
        """Run until there is nothing to do; return the kind and outputs of every unit."""
        ran: list[tuple[str, tuple[Output, ...]]] = []
        controls = self.controls
        while True:
            before = fingerprint(self.state, self.instance), random_fingerprint()
            plan = self.kernel.plan_step(self.state, controls)
            assert self.kernel.plan_step(self.state, controls) == plan
            if isinstance(plan, Idle):
                return ran
            unit = StepUnit(plan, self.state, controls if plan.takes_controls else Controls())
            [result] = self.kernel.run_step(StepBatch(self.instance, (unit,)))
            assert (fingerprint(self.state, self.instance), random_fingerprint()) == before
            assert bool(result.outputs) <= bool(plan.streams)
            ran.append((plan.kind, result.outputs))
            self.holder.retain(result.state.blocks)
            self.holder.release(self.state.blocks)
            self.state, controls = result.state, self.seeing


def test_units_are_pure_and_edit_nothing() -> None:
    bare = Bare()
    kinds = [kind for kind, _ in bare.units()]
    assert kinds.count("look") == kinds.count("prefill") == kinds.count("end") == 2
    assert set(kinds) == {"look", "prefill", "decode_token", "end"}
    assert bare.state.blocks == ()


def test_it_shares_the_blocks_of_what_it_sees_and_gives_them_back() -> None:
    rig = NarratorRig()
    pair = rig.open()
    rig.walk(3)
    before = rig.blocks_in_use
    pair.ask(QUESTION)
    rig.speak_out(until=lambda: bool(pair.said))
    assert set(pair.narrator.state.blocks) <= set(pair.world.state.blocks)
    assert rig.blocks_in_use == before
    rig.walk(8)
    assert not set(pair.narrator.state.blocks) & set(pair.world.state.blocks)
    rig.speak_out()
    assert pair.narrator.state.blocks == ()
    rig.close()
    assert rig.blocks_in_use == 0


def test_what_it_says_does_not_depend_on_what_the_world_does_meanwhile() -> None:
    rig = NarratorRig()
    pair = rig.open()
    rig.walk(3)
    pair.ask(QUESTION)
    while rig.speak():
        rig.walk(1)
    assert pair.text == asked().text


def test_the_same_seed_says_the_same_alone_and_in_a_batch() -> None:
    rig = NarratorRig()
    pairs = [rig.open(f"s{n}", seed=7 + n) for n in range(3)]
    rig.walk(3)
    for pair in pairs:
        pair.ask(QUESTION)
    batches = rig.speak_out()
    assert batches < sum(len(pair.said) for pair in pairs)
    for n, pair in enumerate(pairs):
        assert pair.text == asked(seed=7 + n).text


@pytest.mark.parametrize("units", [3, 5])
def test_an_interrupt_drops_the_utterance_and_what_waits_is_answered(units: int) -> None:
    rig = NarratorRig()
    pair = rig.open()
    rig.walk(3)
    pair.ask(QUESTION, "a")
    for _ in range(units):
        rig.speak()
    said = len(pair.said)
    pair.narrator.cancel()
    pair.ask("what time is it", "b")
    rig.speak_out()
    assert {out.answers for out in pair.said[said:]} == {"b"}
    rig.close()
    assert rig.blocks_in_use == 0


@pytest.mark.parametrize("units", [1, 2])
def test_an_interrupt_before_the_first_word_answers_each_question_once(units: int) -> None:
    rig = NarratorRig()
    pair = rig.open()
    rig.walk(3)
    pair.ask(QUESTION, "a")
    pair.ask("what time is it", "b")
    for _ in range(units):
        rig.speak()
    pair.narrator.cancel()
    rig.speak_out()
    assert sorted(str(out.answers) for out in pair.said if out.final) == ["a", "b"]


@pytest.mark.parametrize("fault", list(KernelFault))
def test_a_bad_step_is_rolled_back_wherever_it_happens(fault: KernelFault) -> None:
    expected = asked().text
    for units in range(4):
        rig = NarratorRig()
        rig.kernel = kernel = FaultyKernel(rig.kernel)
        pair = rig.open()
        rig.walk(3)
        pair.ask(QUESTION)
        for _ in range(units):
            rig.speak()
        kernel.spoil(fault)
        rig.speak_out()
        assert pair.text == expected
        [failed] = [e for e in pair.heard if isinstance(e, StepFailed)]
        assert not failed.fatal


def test_a_recovered_narrator_does_not_repeat_itself() -> None:
    rig = NarratorRig()
    pair = rig.open(narrate=True)
    rig.walk(2)
    rig.speak_out()
    kept = rig.kernel.durable(pair.narrator.state)
    assert kept is not None
    other = rig.open("s2", narrate=True, durable=kept)
    assert other.narrator.state.told == pair.narrator.state.told
    assert other.narrator.state.topics == pair.narrator.state.topics


def test_pieces_of_text_join_to_sentences() -> None:
    rng = np.random.default_rng(1)
    vocabulary = NarratorRig().kernel._units._nets.narration  # type: ignore[attr-defined]
    for _ in range(20):
        tokens = [int(rng.integers(30, len(vocabulary))) for _ in range(6)]
        text = vocabulary.text([*tokens, END])
        assert "  " not in text
