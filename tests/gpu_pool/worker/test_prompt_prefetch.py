"""What waits for a prompt to be read, in which order, and for how long."""

import threading
from collections.abc import Iterator, Mapping, Sequence

import pytest
from loop_rig import Clock
from stub_model import StubFamily

from reverie.engine.emissions import ControlSuperseded, FaultCode
from reverie.engine.inputs import (
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
)
from reverie.gpu_pool.worker.prompt_inputs import EffectiveControls
from reverie.gpu_pool.worker.prompt_prefetch import PromptDelivery, PromptPrefetch, failures
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.instance import LoadOptions

LIMIT_S = 20.0
EFFECT = EffectiveControls("a lake", {"warmth": 0.0, "size": 1.0})


class PrefetchRig:
    """A prefetch whose encoder reads a prompt only when the test says so.

    Attributes:
        asked: what was read, oldest first.
        known: prompts that need no reading.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.asked: list[tuple[str, dict[str, float]]] = []
        self.known: set[str] = set()
        self._begun = threading.Semaphore(0)
        self._may = threading.Semaphore(0)
        self._woken = threading.Semaphore(0)
        self._leaving = False
        instance = StubFamily().load(LoadOptions(sessions=1))
        instance.prepare_prompt = self._read
        instance.knows_prompt = lambda text, _: text in self.known
        instance.prompt_parameters = frozenset({"warmth"})
        self.prefetch = PromptPrefetch(instance, self.clock, self._woken.release, 1000)

    def _read(self, prompt: str, parameters: Mapping[str, float]) -> None:
        if self._leaving:
            return
        self.asked.append((prompt, dict(parameters)))
        self._begun.release()
        assert self._may.acquire(timeout=LIMIT_S)
        if prompt == "broken":
            raise ValueError("it cannot be read")

    def bring(self, *inputs: ControlInput, session: str = "s") -> tuple[ControlInput, ...]:
        """Bring inputs; return those that pass."""
        passed = self.prefetch.bring(session, EFFECT, inputs)
        self.told = list(passed.superseded)
        return passed.inputs

    def begun(self) -> None:
        """Wait until a prompt is being read."""
        assert self._begun.acquire(timeout=LIMIT_S)

    def read(self) -> PromptDelivery:
        """Let the prompt be read that is being read, and take it."""
        self._may.release()
        assert self._woken.acquire(timeout=LIMIT_S)
        [delivered] = self.prefetch.take()
        return delivered

    def leave(self) -> None:
        self._leaving = True
        for _ in range(8):
            self._may.release()
        self.prefetch.close()


@pytest.fixture
def rig() -> Iterator[PrefetchRig]:
    rig = PrefetchRig()
    yield rig
    rig.leave()


def prompt(control: str, text: str = "") -> PromptInput:
    return PromptInput(ControlId(control), text or f"prompt {control}")


def number(control: str, name: str, value: float) -> ParameterInput:
    return ParameterInput(ControlId(control), name, value)


def controls(inputs: Sequence[ControlInput]) -> list[str]:
    return [item.control for item in inputs]


def gave_way(told: Sequence[ControlSuperseded]) -> list[tuple[str, str | None]]:
    return [(one.control, one.by) for one in told]


class TestWhatWaits:
    """A prompt and what it is read under; nothing else."""

    def test_keys_pass_and_the_numbers_of_a_prompts_command_wait_with_it(
        self, rig: PrefetchRig
    ) -> None:
        keys = KeysInput(ControlId("k"), "move", (KeyEdge("up", True),))
        assert rig.bring(number("n", "size", 2.0), keys, prompt("p")) == (keys,)
        rig.begun()
        assert controls(rig.read().inputs) == ["n", "p"]
        assert rig.asked == [("prompt p", {"warmth": 0.0, "size": 2.0})]

    def test_a_number_that_changes_how_prompts_are_read_waits_like_one(
        self, rig: PrefetchRig
    ) -> None:
        assert rig.bring(number("n", "warmth", 1.0)) == ()
        rig.begun()
        assert controls(rig.read().inputs) == ["n"]
        assert rig.asked == [("a lake", {"warmth": 1.0, "size": 1.0})]

    def test_other_numbers_pass(self, rig: PrefetchRig) -> None:
        assert controls(rig.bring(number("n", "size", 2.0))) == ["n"]
        assert rig.prefetch.wake_us is None

    def test_an_instance_that_reads_nothing_ahead_keeps_nothing_back(self) -> None:
        instance = StubFamily().load(LoadOptions(sessions=1))
        prefetch = PromptPrefetch(instance, Clock(), lambda: None, 1000)
        assert controls(prefetch.bring("s", EFFECT, (prompt("p"),)).inputs) == ["p"]
        prefetch.open("s", EFFECT)
        assert (prefetch.holds("s"), prefetch.take(), prefetch.wake_us) == (False, [], None)


class TestKnown:
    """A prompt that needs no reading any more."""

    def test_it_waits_for_no_prompt(self, rig: PrefetchRig) -> None:
        rig.known.add("a lake")
        rig.bring(prompt("x"), session="other")
        rig.begun()
        assert controls(rig.bring(number("n", "warmth", 1.0), prompt("p", "a lake"))) == ["n", "p"]
        rig.prefetch.open("t", EFFECT)
        assert not rig.prefetch.holds("t")

    def test_it_does_not_overtake_what_came_before_it(self, rig: PrefetchRig) -> None:
        rig.known.add("a lake")
        rig.bring(prompt("x"))
        rig.begun()
        assert rig.bring(prompt("p", "a lake")) == ()
        assert controls(rig.read().inputs) == ["x"]
        rig.begun()
        assert controls(rig.read().inputs) == ["p"]


class TestOrder:
    """Nothing that is newer is undone by what is older."""

    def test_of_those_that_wait_the_newest_stays(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.bring(prompt("b"), number("n", "size", 2.0))
        rig.bring(prompt("c"))
        assert gave_way(rig.told) == [("b", "c")]
        assert controls(rig.read().inputs) == ["a"]
        rig.begun()
        assert controls(rig.read().inputs) == ["n", "c"]
        assert [text for text, _ in rig.asked] == ["prompt a", "prompt c"]

    def test_a_flood_does_not_keep_every_prompt_from_acting(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("0"))
        delivered = []
        for count in range(1, 6):
            rig.begun()
            rig.bring(prompt(f"{count}"))
            delivered += controls(rig.read().inputs)
        assert delivered == ["0", "1", "2", "3", "4"]

    def test_what_passes_meanwhile_is_not_undone_by_what_waited(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"), number("n", "size", 2.0))
        rig.begun()
        rig.bring(prompt("b"), number("m", "size", 3.0))
        assert controls(rig.bring(number("o", "size", 4.0))) == ["o"]
        assert gave_way(rig.told) == [("m", "o")]
        rig.bring(prompt("c"), number("q", "size", 5.0))
        first = rig.read()
        assert (controls(first.inputs), gave_way(first.superseded)) == (["a"], [("n", "o")])
        rig.begun()
        assert controls(rig.read().inputs) == ["c", "q"]

    def test_a_number_is_read_under_the_prompt_that_comes_before_it(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.bring(number("n", "warmth", 1.0))
        rig.read()
        rig.begun()
        rig.read()
        assert rig.asked[1] == ("prompt a", {"warmth": 1.0, "size": 1.0})

    def test_sessions_take_turns_and_a_newer_prompt_keeps_the_place(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"), session="one")
        rig.begun()
        rig.bring(prompt("b"), session="two")
        rig.bring(prompt("c"), session="three")
        rig.bring(prompt("d"), session="two")
        order = [rig.read().read.reading.session]
        for _ in range(2):
            rig.begun()
            order.append(rig.read().read.reading.session)
        assert order == ["one", "two", "three"]


class TestOpening:
    """A session begins when its prompt is read."""

    def test_it_waits_until_then(self, rig: PrefetchRig) -> None:
        rig.prefetch.open("s", EFFECT)
        rig.begun()
        assert rig.prefetch.holds("s")
        assert rig.read().inputs == ()
        assert not rig.prefetch.holds("s")

    def test_a_prompt_that_comes_before_is_read_in_its_place(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("x"), session="other")
        rig.begun()
        rig.prefetch.open("s", EFFECT)
        rig.bring(prompt("p"))
        rig.read()
        rig.begun()
        assert rig.prefetch.holds("s")
        assert controls(rig.read().inputs) == ["p"]
        assert not rig.prefetch.holds("s")
        assert [text for text, _ in rig.asked] == ["prompt x", "prompt p"]


class TestReset:
    """What was said before a reset is what the new world begins with."""

    def test_the_session_waits_until_all_of_it_is_read(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.bring(prompt("b"))
        rig.prefetch.begin_again("s")
        rig.read()
        assert rig.prefetch.holds("s")
        rig.begun()
        rig.read()
        assert not rig.prefetch.holds("s")

    def test_with_nothing_under_way_it_waits_for_nothing(self, rig: PrefetchRig) -> None:
        rig.prefetch.begin_again("s")
        assert not rig.prefetch.holds("s")


class TestFailing:
    """What cannot be read, or not in time."""

    def test_every_input_says_what_is_in_effect_instead(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("p", "broken"), number("n", "size", 2.0))
        rig.begun()
        delivered = rig.read()
        told = {one.control: (one.code, one.in_effect) for one in failures(delivered, EFFECT)}
        assert told == {
            "p": (FaultCode.PROMPT_FAILED, "a lake"),
            "n": (FaultCode.PROMPT_FAILED, 1.0),
        }

    def test_what_takes_too_long_is_given_up_and_what_comes_later_is_read(
        self, rig: PrefetchRig
    ) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.clock.now_us = 500
        rig.bring(prompt("b"), session="other")
        assert rig.prefetch.wake_us == 1000
        rig.clock.now_us = 1000
        [late] = rig.prefetch.take()
        assert (late.read.fault, controls(late.inputs)) == (FaultCode.PROMPT_TIMEOUT, ["a"])
        assert rig.prefetch.wake_us == 1500
        rig._may.release()  # what no session waits for any more
        rig.begun()
        assert rig._woken.acquire(timeout=LIMIT_S)
        assert rig.prefetch.take() == []
        assert controls(rig.read().inputs) == ["b"]

    def test_what_waits_behind_a_reading_that_hangs_is_told_as_well(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.bring(prompt("b"))
        rig.clock.now_us = 1000
        late = rig.prefetch.take()
        assert [each.read.reading.prompt for each in late] == ["prompt a", "prompt b"]
        assert rig.prefetch.wake_us is None

    def test_of_a_session_that_has_left_nothing_is_said(self, rig: PrefetchRig) -> None:
        rig.bring(prompt("a"))
        rig.begun()
        rig.bring(prompt("b"))
        rig.prefetch.forget("s")
        rig._may.release()
        assert rig._woken.acquire(timeout=LIMIT_S)
        assert rig.prefetch.take() == []
        rig.bring(prompt("c"))
        rig.begun()
        assert controls(rig.read().inputs) == ["c"]
