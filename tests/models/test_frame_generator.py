"""A third party's frame generator: two methods, and it can be served."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import keys, prompt
from loop_rig import Rig
from numpy.typing import NDArray

from reverie.engine.emissions import FaultCode, StepFailed
from reverie.models.contract.errors import SpecError
from reverie.models.contract.loop import LoopRequest
from reverie.models.contract.registry import find_family
from reverie.models.frame_generator import FrameGeneratorFamily

PLASMA = Path(__file__).resolve().parents[2] / "examples" / "plasma.py"


class Counter:
    """Edits the state that it is given, which an adapter must survive."""

    name = "counter"
    width, height, rate_hz = 8, 4, 10.0
    keys: tuple[str, ...] = ("up", "left")

    def start(self, seed: int, prompt: str) -> dict[str, Any]:
        return {"seed": seed, "count": 0, "said": [prompt]}

    def frame(
        self, state: dict[str, Any], key: str | None, prompt: str
    ) -> tuple[dict[str, Any], NDArray[Any]]:
        state["count"] += 1
        state["said"].append(prompt)
        frame = np.zeros((self.height, self.width, 3), dtype=np.uint8)
        frame[0, 0] = state["count"], len(key or ""), len(prompt)
        return state, frame


def rig_with(generator: Any) -> Rig:
    rig = Rig(FrameGeneratorFamily(generator))
    rig.open(LoopRequest("s1", 7, "abc"))
    return rig


def pixels(rig: Rig) -> list[list[int]]:
    return [chunk.frames[0, 0, 0].tolist() for chunk in rig.frames("s1")]


def test_keys_and_prompts_reach_the_generator_in_the_next_frame() -> None:
    rig = rig_with(Counter())
    rig.run_chunks("s1", 1)
    rig.drivers["s1"].push([keys("+left"), prompt("hello")])
    rig.run_chunks("s1", 2)
    rig.drivers["s1"].push([keys("-left")])
    rig.run_chunks("s1", 1)
    assert pixels(rig) == [[1, 0, 3], [2, 4, 5], [3, 4, 5], [4, 0, 5]]


def test_a_generator_that_edits_its_state_can_still_be_rewound() -> None:
    rig = rig_with(Counter())
    rig.run_chunks("s1", 4)
    rig.drivers["s1"].rewind(1)
    rig.run_chunks("s1", 2)
    assert [count for count, _, _ in pixels(rig)] == [1, 2, 3, 4, 3, 4]


def test_its_description_is_made_of_its_attributes() -> None:
    family = FrameGeneratorFamily(Counter())
    family.spec.validate()
    [loop] = family.spec.loops
    [stream] = loop.streams
    assert (stream.width, stream.height, stream.rate_hz) == (8, 4, 10.0)
    assert loop.controls[0].keys == ("up", "left")
    assert (family.spec.name, family.spec.title) == ("counter", "counter")


def test_a_generator_without_keys_takes_none() -> None:
    class Still(Counter):
        keys = ()

    family = FrameGeneratorFamily(Still())
    family.spec.validate()
    assert family.spec.loops[0].controls == ()


def test_a_generator_without_a_size_is_refused() -> None:
    class Nowhere(Counter):
        width = 0

    with pytest.raises(SpecError, match="needs width, height and rate_hz"):
        FrameGeneratorFamily(Nowhere()).spec.validate()


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (np.zeros((4, 9, 3), dtype=np.uint8), FaultCode.BAD_SHAPE),
        (np.zeros((4, 8), dtype=np.uint8), FaultCode.BAD_SHAPE),
        (np.full((4, 8, 3), np.nan), FaultCode.NON_FINITE),
        (np.zeros((4, 8, 3), dtype=np.int64), FaultCode.BAD_SHAPE),
        ("no frame", FaultCode.STEP_RAISED),
    ],
)
def test_a_bad_frame_ends_the_session_with_a_reason(frame: Any, code: FaultCode) -> None:
    class Bad(Counter):
        def frame(self, state: Any, key: str | None, prompt: str) -> tuple[Any, Any]:
            return state, frame

    rig = rig_with(Bad())
    rig.run(lambda: rig.drivers["s1"].ended)
    assert {failed.code for failed in rig.heard_of("s1", StepFailed)} == {code}


def test_an_image_turned_on_its_head_is_no_fault() -> None:
    class Flipped(Counter):
        def frame(self, state: Any, key: str | None, prompt: str) -> tuple[Any, Any]:
            state, frame = super().frame(state, key, prompt)
            return state, frame[::-1, :, ::-1]

    rig = rig_with(Flipped())
    [chunk] = rig.run_chunks("s1", 1)
    assert chunk.frames[0, 3, 0].tolist() == [3, 0, 1]


def test_the_example_is_at_most_thirty_lines() -> None:
    lines = [line for line in PLASMA.read_text().splitlines() if line.strip()]
    assert len(lines) <= 30
    assert find_family(f"{PLASMA}:family").spec.licence == "CC0-1.0"
