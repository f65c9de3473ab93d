"""From an action or a parameter to inputs, or to an error at its field."""

from itertools import count
from typing import Any

import pytest
from fake_pool import fake_spec

from reverie.engine.inputs import AxisInput, ControlId, KeysInput
from reverie.models.contract.controls import KeyEdge
from reverie.models.oasis.config import DitConfig, VaeConfig
from reverie.models.oasis.spec import oasis_spec
from reverie.models.pocket.spec import POCKET
from reverie.sessions.protocol.commands import PushAction
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.state.program_controls import ProgramControls


@pytest.fixture
def controls() -> ProgramControls:
    return ProgramControls(fake_spec(), "world")


NUMBERS = count()


def new_id() -> ControlId:
    return ControlId(str(next(NUMBERS)))


def action(edge: str = "tap", **values: Any) -> PushAction:
    return PushAction.model_validate({"id": "1", "action": values, "edge": edge})


@pytest.mark.parametrize(
    ("edge", "downs"), [("tap", (True, False)), ("press", (True,)), ("release", (False,))]
)
def test_an_edge_of_a_key_becomes_its_moves(
    controls: ProgramControls, edge: str, downs: tuple[bool, ...]
) -> None:
    (keys,) = controls.action_inputs(action(edge, move="left"), new_id)
    assert isinstance(keys, KeysInput)
    assert keys.edges == tuple(KeyEdge("left", down) for down in downs)


def test_an_action_of_two_controls_becomes_two_inputs_with_ids_of_their_own(
    controls: ProgramControls,
) -> None:
    inputs = controls.action_inputs(action(move="left", look=-1.5), new_id)
    assert [type(each) for each in inputs] == [KeysInput, AxisInput]
    assert len({each.control for each in inputs}) == 2


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"move": "jump"}, "action.move", "unknown_key"),
        ({"move": 1.0}, "action.move", "wrong_type"),
        ({"look": "left"}, "action.look", "wrong_type"),
        ({"look": 2.5}, "action.look", "out_of_range"),
        ({"fly": 1.0}, "action.fly", "unknown_control"),
        ({"move": "left", "fly": 1.0}, "action.fly", "unknown_control"),
    ],
)
def test_a_wrong_action_is_refused_at_its_field(
    controls: ProgramControls, values: dict[str, Any], field: str, code: str
) -> None:
    with pytest.raises(CommandError) as caught:
        controls.action_inputs(action(**values), new_id)
    assert (caught.value.field, caught.value.code) == (field, code)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("speed", 11.0, "out_of_range"),
        ("speed", -1.0, "out_of_range"),
        ("count", 1.5, "out_of_range"),
        ("height", 1.0, "unknown_parameter"),
    ],
)
def test_a_wrong_parameter_is_refused_at_its_field(
    controls: ProgramControls, name: str, value: float, code: str
) -> None:
    with pytest.raises(CommandError) as caught:
        controls.parameter_inputs({name: value}, new_id)
    assert (caught.value.field, caught.value.code) == (f"parameters.{name}", code)


def test_one_wrong_parameter_refuses_all(controls: ProgramControls) -> None:
    with pytest.raises(CommandError):
        controls.parameter_inputs({"speed": 2.0, "height": 1.0}, new_id)


def test_views_show_ranges_and_present_values(controls: ProgramControls) -> None:
    (speed, _) = controls.parameter_views({"speed": 3.0})
    assert (speed.value, speed.default, speed.low, speed.high) == (3.0, 1.0, 0.0, 10.0)
    (move, look) = controls.control_views()
    assert move.keys == ("left", "right", "up", "down")
    assert (look.merge, look.low, look.high) == ("sum", -2.0, 2.0)


def test_a_client_is_told_how_controls_are_pressed_and_dragged_and_what_can_be_said() -> None:
    controls = ProgramControls(POCKET, "narrated_world")
    assert "a frozen lake land at night" in controls.example_prompts
    assert controls.example_turns == ("Where is the water?",)
    streams = {view.name: view.stream for view in controls.parameter_views({})}
    assert streams == dict.fromkeys(streams, "") | {"narrate": "narration"}
    assert controls.barge_in == {"ar_decode": "barge_in"}
    oasis = ProgramControls(oasis_spec(DitConfig(), VaeConfig()), "world")
    (play, *cameras) = oasis.control_views()
    assert play.bindings["attack"] == ("MouseLeft",)
    assert {view.label: view.drag for view in cameras} == {"Yaw": "x", "Pitch": "y"}


def test_a_program_that_only_shows_has_nothing_that_can_be_said() -> None:
    controls = ProgramControls(POCKET, "world")
    assert (controls.example_turns, controls.barge_in) == ((), {})
