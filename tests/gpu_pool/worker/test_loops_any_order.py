"""Two loops of one session, whatever is asked of them and in whichever order."""

from collections import Counter
from contextlib import suppress
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from stub_model import Fault
from worker_session_rig import WorkerSessionRig, turn

from reverie.engine.emissions import ControlApplied, ControlSuperseded, FramesOut, TextOut
from reverie.engine.errors import EngineRefusedError
from reverie.engine.inputs import (
    OPENING,
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
)
from reverie.gpu_pool.worker.worker_session import WorkerSession
from reverie.models.contract.controls import KeyEdge

ASKED = (
    "prompt",
    "turn",
    "key",
    "narrate",
    "pause",
    "resume",
    "advance",
    "interrupt",
    "interrupt the world",
    "interrupt the voice",
    "rewind",
    "reset",
    "snapshot",
    "restore",
)


class ScriptedSession:
    """One session under a script."""

    def __init__(self, **parameters: float) -> None:
        self.rig = WorkerSessionRig(sessions=1)
        self.worker_session: WorkerSession = self.rig.open(
            "a", "narrated_world", tell_every=2, **parameters
        )
        self.controls: list[str] = [OPENING]

    def do(self, what: str, number: int) -> None:
        with suppress(EngineRefusedError):  # then nothing has changed
            self._do(what, number)
        self.rig.heard["a"] += self.worker_session.take_emissions()

    def run(self, units: int) -> None:
        for _ in range(units):
            if not self.rig.step():
                self.rig.clock.now_us += 50_000

    def _do(self, what: str, number: int) -> None:
        worker_session = self.worker_session
        control = ControlId(f"c{number}")
        match what:
            case "prompt":
                self._push(PromptInput(control, f"prompt {number}"))
            case "turn":
                self._push(turn(f"turn {number} and more", control))
            case "key":
                self._push(KeysInput(control, "move", (KeyEdge("left", number % 2 == 0),)))
            case "narrate":
                self._push(ParameterInput(control, "narrate", float(number % 2)))
            case "pause":
                worker_session.pause()
            case "resume":
                worker_session.resume()
            case "advance":
                worker_session.advance(1 + number % 2)
            case "interrupt":
                worker_session.interrupt(worker_session.position.chunk - number % 2, None)
            case "interrupt the world":
                worker_session.interrupt(worker_session.position.chunk, "world_model")
            case "interrupt the voice":
                said = [out.chunk for out in self.rig.of("a", TextOut)]
                worker_session.interrupt(None, "ar_decode")
                assert max(said, default=-1) < worker_session.utterances["ar_decode"]
            case "rewind":
                worker_session.rewind(worker_session.position.chunk - number % 3)
            case "reset":
                worker_session.reset(number)
            case "snapshot":
                worker_session.snapshot(f"s{number % 2}")
            case "restore":
                worker_session.restore(f"s{number % 2}")

    def _push(self, item: ControlInput) -> None:
        self.controls.append(item.control)
        self.rig.heard["a"] += self.worker_session.push((item,))

    def check(self) -> None:
        """What holds for every session."""
        fates = Counter(told.control for told in self.told)
        assert set(fates) <= set(self.controls)
        assert max(fates.values(), default=1) == 1, "a control has one receipt"
        assert self.rig.waits.longest <= 1
        chunks = [out.header.chunk for out in self.rig.of("a", FramesOut)]
        assert chunks == sorted(set(chunks)), "chunk numbers are never used twice"
        texts: list[TextOut] = self.rig.of("a", TextOut)
        assert [out.chunk for out in texts] == sorted(out.chunk for out in texts)
        ends = Counter(out.chunk for out in texts if out.final)
        assert max(ends.values(), default=1) == 1
        for one, following in pairwise(texts):
            assert not one.final or following.chunk > one.chunk, "nothing follows the end"
        self.rig.assert_nothing_is_lost()

    @property
    def told(self) -> list[ControlApplied | ControlSuperseded]:
        return self.rig.of("a", ControlApplied, ControlSuperseded)


SCRIPT = st.lists(st.tuples(st.sampled_from(ASKED), st.integers(0, 12)), max_size=20)


@settings(max_examples=60, deadline=None)
@given(script=SCRIPT)
def test_whatever_is_asked_every_control_has_one_receipt_and_no_block_is_lost(
    script: list[tuple[str, int]],
) -> None:
    session = ScriptedSession()
    for number, (what, units) in enumerate(script):
        session.run(units)
        session.do(what, number)
    session.do("resume", 0)
    session.run(500)  # enough for the answers to as many turns as a script may have
    if not session.rig.session_table["a"].leading.ended:
        turns = [told.control for told in session.told]
        assert set(session.controls) == set(turns), "what waits acts in the end"
    session.check()


@settings(max_examples=25, deadline=None)
@given(script=SCRIPT, at=st.integers(0, 3), always=st.booleans())
def test_a_text_loop_that_fails_anywhere_harms_no_other_loop(
    script: list[tuple[str, int]], at: int, always: bool
) -> None:
    session = ScriptedSession(talk_fault=Fault.RAISE, talk_fault_at=at, talk_fault_always=always)
    for number, (what, units) in enumerate(script):
        session.run(units)
        session.do(what, number)
    session.do("resume", 0)
    before = session.rig.chunks()
    session.run(80)
    assert session.rig.chunks() > before
    session.check()
