"""Merging: what a step sees of everything that was asked since the last one."""

from dataclasses import dataclass, field

import pytest
from stub_model import StubFamily, stub_request

from reverie.engine.emissions import ControlSuperseded
from reverie.engine.errors import UnknownControlError
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
    TurnInput,
)
from reverie.engine.mailbox import RECEIPTS, TURNS, Mailbox
from reverie.models.contract.controls import NO_CONTROLS, KeyEdge, Turn
from reverie.models.contract.spec import LoopSpec, StreamKind, StreamSpec


@dataclass
class SupersededLog:
    """What a mailbox tells."""

    superseded: list[ControlSuperseded] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[str, str | None]]:
        return [(told.control, told.by) for told in self.superseded]


def mailbox(loop: LoopSpec | None = None) -> tuple[Mailbox, SupersededLog]:
    heard = SupersededLog()
    loop = loop or StubFamily().spec.loops[0]
    return Mailbox(stub_request(prompt="a lake"), loop, heard.superseded.append), heard


def prompt(control: str, text: str) -> PromptInput:
    return PromptInput(ControlId(control), text)


def slide(control: str, value: float) -> ParameterInput:
    return ParameterInput(ControlId(control), "brightness", value)


def look(control: str, value: float) -> AxisInput:
    return AxisInput(ControlId(control), "look", value)


def tap(control: str, key: str) -> KeysInput:
    edges = (KeyEdge(key, down=True), KeyEdge(key, down=False))
    return KeysInput(ControlId(control), "move", edges)


def test_an_empty_mailbox_gives_no_controls() -> None:
    box, _ = mailbox()
    assert box.peek() == NO_CONTROLS
    assert not box.has_news
    assert box.take().receipts == ()


def test_the_newest_prompt_wins_and_the_older_ones_are_told_so() -> None:
    box, heard = mailbox()
    box.push([prompt("a", "desert"), prompt("b", "city"), prompt("c", "sea")])
    assert heard.pairs == [("a", "b"), ("b", "c")]
    taken = box.take()
    assert taken.controls.prompt == "sea"
    assert (taken.receipts, taken.prompt) == (("c",), "c")
    assert box.peek().prompt is None


def test_of_two_thousand_updates_the_last_wins_and_each_is_answered_once() -> None:
    box, heard = mailbox()
    for index in range(2000):
        box.push([slide(f"s{index}", index / 2000)])
    taken = box.take()
    assert taken.controls.parameters == {"brightness": 1999 / 2000}
    answered = [told.control for told in heard.superseded] + list(taken.receipts)
    assert sorted(answered) == sorted(f"s{index}" for index in range(2000))


def test_movements_add_up_and_all_of_them_are_answered() -> None:
    box, heard = mailbox()
    box.push([look("a", 0.25), look("b", 0.5), look("c", -0.125)])
    taken = box.take()
    assert taken.controls.axes == {"look": 0.625}
    assert taken.receipts == ("a", "b", "c")
    assert heard.pairs == []


def test_a_pile_of_movements_keeps_its_sum_while_receipts_stay_bounded() -> None:
    box, heard = mailbox()
    for index in range(RECEIPTS + 100):
        box.push([look(f"m{index}", 1.0)])
    taken = box.take()
    assert taken.controls.axes == {"look": RECEIPTS + 100.0}
    assert len(taken.receipts) == RECEIPTS
    assert heard.pairs[0] == ("m0", f"m{RECEIPTS}")
    assert len(heard.pairs) == 100


def test_receipts_come_in_the_order_of_the_controls() -> None:
    box, _ = mailbox()
    box.push([tap("k", "up"), prompt("p", "sea"), look("l", 0.1), slide("s", 0.3)])
    assert box.take().receipts == ("k", "p", "l", "s")


def test_nothing_is_merged_when_one_input_of_several_is_unknown() -> None:
    box, _ = mailbox()
    unknown: list[ControlInput] = [
        ParameterInput(ControlId("x"), "contrast", 1.0),
        AxisInput(ControlId("x"), "move", 1.0),
        KeysInput(ControlId("x"), "look", ()),
        tap("x", "jump"),
        TurnInput(ControlId("x"), "hello"),
    ]
    for item in unknown:
        with pytest.raises(UnknownControlError):
            box.push([prompt("p", "sea"), item])
    assert box.take().receipts == ()
    assert box.prompt == "a lake"


def test_what_a_failed_step_took_comes_back_before_what_came_since() -> None:
    box, heard = mailbox()
    box.push([tap("k1", "up"), look("l1", 0.5)])
    taken = box.take()
    box.push([tap("k2", "left"), look("l2", 0.25)])
    box.put_back(taken)
    again = box.take()
    assert [edge.key for edge in again.controls.keys["move"].edges] == ["up", "up", "left", "left"]
    assert again.controls.axes == {"look": 0.75}
    assert again.receipts == ("k1", "l1", "k2", "l2")
    assert heard.pairs == []


def test_a_prompt_that_comes_back_gives_way_to_a_newer_one() -> None:
    box, heard = mailbox()
    box.push([prompt("old", "sea"), slide("s1", 0.1)])
    taken = box.take()
    box.push([prompt("new", "city")])
    box.put_back(taken)
    again = box.take()
    assert (again.controls.prompt, again.controls.parameters) == ("city", {"brightness": 0.1})
    assert again.receipts == ("s1", "new")
    assert heard.pairs == [("old", "new")]


def test_a_prompt_that_comes_back_to_an_empty_mailbox_still_acts() -> None:
    box, heard = mailbox()
    box.push([prompt("only", "sea")])
    box.put_back(box.take())
    assert box.take().controls.prompt == "sea"
    assert heard.pairs == []


def test_what_is_in_effect_is_told_again_to_a_state_made_under_something_else() -> None:
    box, _ = mailbox()
    box.push([prompt("p", "sea"), slide("s", 0.9)])
    box.take()
    parameters = dict(stub_request().parameters)
    box.want("a lake", parameters)
    assert box.peek().prompt == "sea"
    assert box.take().receipts == ()
    box.want("sea", {**parameters, "brightness": 0.9})
    assert not box.has_news


def test_a_silent_value_gives_way_to_what_waits() -> None:
    box, heard = mailbox()
    box.push([prompt("p", "sea")])
    box.want("a desert", stub_request().parameters)
    box.push([prompt("q", "city")])
    assert box.take().controls.prompt == "city"
    assert heard.pairs == [("p", "q")]


def test_turns_are_all_seen_in_order_and_the_oldest_fall_out_of_a_full_mailbox() -> None:
    streams = (StreamSpec("text", StreamKind.TEXT),)
    loop = LoopSpec("chat", ("stub",), streams, takes_turns=True)
    box, heard = mailbox(loop)
    box.push([TurnInput(ControlId(f"t{index}"), f"line {index}") for index in range(TURNS + 2)])
    assert heard.pairs == [("t0", None), ("t1", None)]
    box.put_back(box.take())
    seen = [box.take() for _ in range(TURNS)]
    assert [taken.controls.turns for taken in seen] == [
        (Turn(f"line {index}", f"t{index}"),) for index in range(2, TURNS + 2)
    ]
    assert [taken.receipts for taken in seen] == [(f"t{index}",) for index in range(2, TURNS + 2)]
    assert not box.has_news


def test_a_loop_without_prompts_refuses_them() -> None:
    loop = LoopSpec("chat", ("stub",), (StreamSpec("text", StreamKind.TEXT),))
    box, _ = mailbox(loop)
    with pytest.raises(UnknownControlError, match="prompt"):
        box.push([prompt("p", "sea")])


def test_when_the_loop_ends_everything_that_waits_is_answered() -> None:
    box, heard = mailbox()
    box.push([prompt("p", "sea"), tap("k", "up"), look("l", 1.0)])
    box.abandon()
    assert sorted(heard.pairs) == [("k", None), ("l", None), ("p", None)]
    assert not box.has_news


def test_what_another_loop_gives_the_receipts_for_acts_silently() -> None:
    box, heard = mailbox()
    box.push([prompt("p", "sea")], silent=True)
    box.push([prompt("q", "city")], silent=True)
    taken = box.take()
    assert (taken.controls.prompt, taken.receipts) == ("city", ())
    box.put_back(taken)
    assert box.take().controls.prompt == "city"
    assert heard.pairs == []
