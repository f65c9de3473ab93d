"""Guidance in Wan's loop, through the driver: a parameter of the session, in any company."""

from dataclasses import replace

import numpy as np
import pytest
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_wan import TinyWan, tiny_options

from reverie.engine.inputs import ControlId, ParameterInput
from reverie.engine.options import DriverOptions
from reverie.models.contract.loop import LoopRequest

PLAIN = {"on_prompt": 1.0}
GUIDED = {**PLAIN, "guidance": 4.0}
PAST = {**PLAIN, "guidance": 4.0, "past_guidance": 2.0}


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return Rig(TinyWan(), tiny_options())


def opened(rig: Rig, session: str, parameters: dict[str, float]) -> None:
    options = DriverOptions(history_chunks=3)
    rig.open(LoopRequest(session, 7, "a lake", parameters), options)


def pictures(rig: Rig, session: str, chunks: int) -> NDArray[np.int64]:
    made = [frames.frames for frames in rig.run_chunks(session, chunks)]
    return np.concatenate(made).astype(np.int64)


def alone(loaded: Rig, parameters: dict[str, float]) -> NDArray[np.int64]:
    rig = loaded.again()
    opened(rig, "s1", parameters)
    made = pictures(rig, "s1", 2)
    rig.close("s1")
    return made


def test_a_weight_of_one_is_the_video_without_guidance(loaded: Rig) -> None:
    ones = {**PLAIN, "guidance": 1.0, "past_guidance": 1.0}
    assert (alone(loaded, ones) == alone(loaded, PLAIN)).all()


def test_each_weight_makes_another_video(loaded: Rig) -> None:
    videos = [alone(loaded, parameters) for parameters in (PLAIN, GUIDED, PAST)]
    assert (videos[0] != videos[1]).any()
    assert (videos[1] != videos[2]).any()


def test_the_past_has_no_weight_where_there_is_none(loaded: Rig) -> None:
    first = len(alone(loaded, PLAIN)) - 12
    assert (alone(loaded, GUIDED)[:first] == alone(loaded, PAST)[:first]).all()


def test_sessions_of_different_weights_run_together_and_change_nothing(loaded: Rig) -> None:
    rig = loaded.again()
    cases = {"s1": PLAIN, "s2": GUIDED, "s3": PAST}
    for session, parameters in cases.items():
        opened(rig, session, parameters)
    rig.run(lambda: all(len(rig.frames(session)) >= 2 for session in cases))
    together = [unit.batch for unit in rig.units("s1") if unit.kind == "denoise"]
    assert max(together) == 3
    for session, parameters in cases.items():
        made = np.concatenate([each.frames for each in rig.frames(session)[:2]]).astype(np.int64)
        assert np.abs(made - alone(loaded, parameters)).max() <= 1
        rig.close(session)


def test_a_weight_can_be_changed_while_the_video_runs(loaded: Rig) -> None:
    rig = loaded.again()
    opened(rig, "s1", PLAIN)
    rig.run_chunks("s1", 1)
    rig.drivers["s1"].push([ParameterInput(ControlId("p"), "guidance", 4.0)])
    rig.run_chunks("s1", 2)
    assert rig.drivers["s1"].state.guidance == 4.0
    rig.close("s1")


@pytest.mark.parametrize("guidance", ["two_pass", "adaptive"])
def test_the_operator_says_in_how_many_passes(guidance: str) -> None:
    rig = Rig(TinyWan(), replace(tiny_options(), guidance=guidance))
    made = alone(rig, GUIDED)
    if guidance == "two_pass":
        assert np.abs(made - alone(Rig(TinyWan(), tiny_options()), GUIDED)).max() <= 1
    else:
        assert (made != alone(rig, PLAIN)).any()
