"""A language model plays by tools, through a real agent session."""

from collections.abc import Mapping

import pytest
from livekit.agents import Agent, AgentSession, ToolError
from livekit.plugins.reverie_world.tools import key_for, turn_for, world_tools
from scripted_llm import Call, ScriptedLlm


class Meadow:
    """A world that keeps what it is asked."""

    keys: tuple[str, ...] = ("w", "a", "s", "d", "Use")
    axes: Mapping[str, tuple[float, float]] = {"look_x": (-0.5, 0.5), "look_y": (-0.2, 0.2)}

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []

    def describe(self) -> str:
        return "The scene is: a meadow."

    async def set_scene(self, text: str) -> str:
        if text == "a rock concert":
            raise ToolError("The world refuses: too loud.")
        self.asked.append(("set_scene", text))
        return "The scene changes."

    async def hold(self, key: str, seconds: float) -> None:
        self.asked.append((key, seconds))

    async def turn(self, axis: str, amount: float) -> None:
        self.asked.append((axis, amount))


async def played(world: Meadow, *calls: Call) -> ScriptedLlm:
    """Have a model call tools in an agent session; return it."""
    model = ScriptedLlm(*calls)
    async with AgentSession[None](llm=model) as session:
        await session.start(Agent(instructions="Play.", tools=world_tools(world)))
        await session.run(user_input="play")
    return model


async def test_a_model_changes_the_scene_moves_and_looks() -> None:
    world = Meadow()
    model = await played(
        world,
        ("set_scene", {"description": "a meadow"}),
        ("move", {"direction": "forward", "seconds": 0.5}),
        ("look", {"direction": "left"}),
        ("look", {}),
    )
    assert model.offered == ["set_scene", "move", "look"]
    assert sorted(world.asked, key=str) == [
        ("look_x", -0.5),
        ("set_scene", "a meadow"),
        ("w", 0.5),
    ]
    assert "The scene changes." in model.outputs
    assert "Moved forward for 0.5 seconds. The scene is: a meadow." in model.outputs
    assert model.outputs.count("The scene is: a meadow.") == 2


async def test_a_model_is_told_what_cannot_be() -> None:
    world = Meadow()
    model = await played(
        world,
        ("move", {"direction": "northwest"}),
        ("look", {"direction": "inwards"}),
        ("set_scene", {"description": "a rock concert"}),
    )
    said = " ".join(model.outputs)
    assert "w, a, s, d, Use" in said
    assert "around, left, right, up or down" in said
    assert "too loud" in said
    assert world.asked == []


async def test_nobody_walks_for_ever_or_not_at_all() -> None:
    world = Meadow()
    await played(
        world,
        ("move", {"direction": "left", "seconds": 1e9}),
        ("move", {"direction": "right", "seconds": -5}),
    )
    assert sorted(world.asked, key=str) == [("a", 10.0), ("d", 0.1)]


@pytest.mark.parametrize(
    ("direction", "keys", "key"),
    [
        ("left", ("up", "down", "left", "right"), "left"),
        ("forward", ("up", "down", "left", "right"), "up"),
        ("backward", ("w", "a", "s", "d"), "s"),
        (" Forward ", ("w", "a", "s", "d"), "w"),
        ("use", ("w", "Use"), "Use"),
        ("up", ("up", "w", "jump"), "up"),
    ],
)
def test_a_direction_finds_its_key(direction: str, keys: tuple[str, ...], key: str) -> None:
    assert key_for(direction, keys) == key


def test_a_world_without_keys_or_axes_says_so() -> None:
    with pytest.raises(ToolError, match="only its scene"):
        key_for("left", ())
    with pytest.raises(ToolError, match="cannot be turned"):
        turn_for("left", {})


def test_a_direction_finds_its_axis_and_its_way() -> None:
    axes = {"camera_yaw": (-2.0, 3.0), "camera_pitch": (-1.0, 1.0)}
    assert turn_for("right", axes) == ("camera_yaw", 3.0)
    assert turn_for("left", axes) == ("camera_yaw", -2.0)
    assert turn_for("up", axes) == ("camera_pitch", -1.0)
