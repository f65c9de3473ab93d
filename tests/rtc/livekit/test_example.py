"""The example's job, as the real `AgentServer` runs it: a world for whoever is in the room."""

import re
from pathlib import Path

import pytest
from livekit import api
from livekit_rig import LiveKit
from livekit_worker import Executor, agent_worker
from livekit_world import Viewer
from rtc_rig import ServerRig
from stub_model import prompt_mark
from waiting import until

PLUGIN = Path(__file__).parents[3] / "plugins" / "livekit-plugins-reverie-world"
EXAMPLE = Path(__file__).parents[3] / "examples" / "livekit_world" / "agent.py"


@pytest.mark.parametrize(("executor", "name"), [("thread", "world"), ("process", "")])
async def test_the_example_shows_a_world_in_a_room(
    executor: Executor, name: str, livekit: LiveKit, rig: ServerRig, tmp_path: Path
) -> None:
    room = livekit.new_room()
    async with (
        agent_worker(
            livekit, tmp_path, EXAMPLE, function="entry", executor=executor, name=name,
            REVERIE_URL=rig.url, WORLD_PROMPT="a lake",
        ),
        Viewer.joined(livekit, room, "ada", topics=("world.events",)) as ada,
    ):  # fmt: skip
        if name:  # an agent without a name is sent to every new room
            await dispatched(livekit, room, name)
        await ada.sees(lambda stamp: stamp.prompt == prompt_mark("a lake"), "the world")
        await ada.press("left")
        await ada.sees(lambda stamp: stamp.held == {"left"}, "the key")
        await ada.me.send_text("a desert", topic="lk.chat")
        await ada.sees(lambda stamp: stamp.prompt == prompt_mark("a desert"), "a desert")


async def test_the_readme_of_the_plugin_taken_to_the_letter_shows_a_world_in_a_room(
    livekit: LiveKit, rig: ServerRig, tmp_path: Path
) -> None:
    readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    agent = tmp_path / "agent.py"
    agent.write_text(shown, encoding="utf-8")
    room = livekit.new_room()
    async with (
        agent_worker(
            livekit,
            tmp_path,
            agent,
            function="entry",
            executor="process",
            name="",
            REVERIE_URL=rig.url,
        ),
        Viewer.joined(livekit, room, "ada") as ada,
    ):
        lake = prompt_mark("a frozen lake land")
        await ada.sees(lambda stamp: stamp.prompt == lake, "the world")


async def test_a_room_is_told_why_no_world_comes(
    livekit: LiveKit, rig: ServerRig, tmp_path: Path
) -> None:
    room = livekit.new_room()
    async with (
        agent_worker(
            livekit, tmp_path, EXAMPLE, function="entry", executor="thread", name="world",
            REVERIE_URL=rig.url, WORLD_PROGRAM="nonsense",
        ) as log,
        Viewer.joined(livekit, room, "ada") as ada,
    ):  # fmt: skip
        told: list[dict[str, str]] = []
        ada.room.on("participant_attributes_changed", lambda changed, _: told.append(changed))
        await dispatched(livekit, room, "world")
        await until(lambda: told, "the room to be told")
        assert told[0]["world.status"] == "ended"
        assert "nonsense" in told[0]["world.reason"]
        await until(lambda: "participant_disconnected" in ada.happened, "the agent to leave")
    assert "Traceback" not in log.read_text()


async def dispatched(livekit: LiveKit, room: str, name: str) -> None:
    calls = livekit.api()
    wanted = api.CreateAgentDispatchRequest(agent_name=name, room=room)
    await calls.agent_dispatch.create_dispatch(wanted)
    await calls.aclose()
