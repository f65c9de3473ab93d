"""A loop that puts out text, has several outputs a chunk, and waits for people."""

from dataclasses import replace

from echo_model import EchoFamily, EchoKernel, EchoState
from loop_rig import Rig

from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlApplied, TextOut
from reverie.engine.inputs import ControlId, TurnInput
from reverie.models.contract.loop import LoopRequest, StepResult, StepUnit


def talking() -> tuple[Rig, LoopDriver[EchoState]]:
    rig = Rig(EchoFamily())
    EchoFamily.spec.validate()
    return rig, rig.open(LoopRequest("s1", 7))


def turn(text: str, control: str = "t") -> TurnInput:
    return TurnInput(ControlId(control), text)


def said(rig: Rig) -> str:
    return "".join(out.text for out in rig.heard_of("s1", TextOut))


def test_it_waits_until_a_turn_comes() -> None:
    rig, driver = talking()
    assert rig.run_idle() == 0
    driver.push([turn("hello there")])
    rig.run_idle()
    assert said(rig) == "hello there "
    assert driver.position.chunk == 0


def test_the_receipt_comes_before_the_first_word() -> None:
    rig, driver = talking()
    driver.push([turn("one two three")])
    rig.run_idle()
    kinds = [type(emission) for emission in rig.heard["s1"]]
    assert kinds == [ControlApplied, TextOut, TextOut, TextOut]
    assert {out.chunk for out in rig.heard_of("s1", TextOut)} == {0}


def test_turns_that_come_while_it_speaks_are_all_heard_in_order() -> None:
    rig, driver = talking()
    driver.push([turn("one two", "a")])
    rig.step()
    rig.step()
    driver.push([turn("three", "b"), turn("four", "c")])
    rig.run_idle()
    assert said(rig) == "one two three four "
    spoken = [(out.chunk, out.final) for out in rig.heard_of("s1", TextOut)]
    assert spoken == [(0, False), (0, True), (1, True), (2, True)]
    assert [told.control for told in rig.heard_of("s1", ControlApplied)] == ["a", "b", "c"]


def test_an_interrupt_stops_it_in_the_middle_of_a_sentence() -> None:
    rig, driver = talking()
    driver.push([turn("one two three")])
    rig.step()
    rig.step()
    driver.interrupt(None)
    rig.run_idle()
    assert said(rig) == "one "
    driver.push([turn("four", "u")])
    rig.run_idle()
    assert said(rig) == "one four "
    assert [out.chunk for out in rig.heard_of("s1", TextOut)] == [0, 1]


class SilentEndKernel(EchoKernel):
    """Its last unit has no word: the one before it did not know that it was the last."""

    def _run(self, unit: StepUnit[EchoState]) -> StepResult[EchoState]:
        result = super()._run(unit)
        return replace(result, outputs=()) if unit.plan.shows else result


def test_an_utterance_whose_last_unit_says_nothing_ends_all_the_same() -> None:
    rig, _ = talking()
    rig.kernel = SilentEndKernel(EchoFamily.spec.loops[0], rig.instance)
    driver = rig.open(LoopRequest("s1", 7))
    driver.push([turn("one two END")])
    rig.run_idle()
    spoken = [(out.text, out.final) for out in rig.heard_of("s1", TextOut)]
    assert spoken == [("one ", False), ("two ", False), ("", True)]
