"""A language model plays in a room by the world's tools; what goes wrong at the start is told."""

from collections.abc import AsyncIterator

import pytest
import stub_model
from livekit import rtc
from livekit.agents import Agent, AgentSession, APIConnectionError, APIConnectOptions
from livekit.plugins.reverie_world import WorldSession
from livekit_rig import LiveKit
from livekit_world import WORLD, Viewer, nothing_unhandled
from scripted_llm import ScriptedLlm

from reverie import Deployment, Engine
from reverie.gpu_pool import ModelOptions, PoolOptions


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=stub_model.LOCATION),)
    async with Engine(Deployment(pool=PoolOptions(mode="inline", models=models))) as running:
        yield running


async def test_a_language_model_plays_in_the_world_that_people_see(
    livekit: LiveKit, engine: Engine
) -> None:
    name, room = livekit.new_room(), rtc.Room()
    world = WorldSession(engine=engine, prompt="a lake")
    model = ScriptedLlm(
        ("set_scene", {"description": "a desert"}),
        ("move", {"direction": "left", "seconds": 0.5}),
        ("move", {"direction": "sideways"}),
        ("look", {}),
    )
    async with (
        nothing_unhandled(),
        Viewer.joined(livekit, name, "ada", topics=("world.events",)) as ada,
        AgentSession[None](llm=model) as agent,
    ):
        await room.connect(livekit.url, livekit.token(WORLD, name))
        try:
            await world.start(agent, room)
            await ada.sees(lambda _: True, "the world")
            await agent.start(Agent(instructions="Play.", tools=world.tools))
            await agent.run(user_input="play")
            await ada.sees(lambda stamp: stamp.acting == "left", "the model's key")
            prompt = stub_model.prompt_mark("a desert")
            await ada.sees(
                lambda stamp: stamp.prompt == prompt and not stamp.held, "the scene, and no key"
            )
        finally:
            await world.aclose()
            await room.disconnect()
    said = " ".join(model.outputs)
    assert "The scene changes." in said
    assert "Moved left for 0.5 seconds." in said
    assert "up, down, left, right" in said, "what was asked for in vain names what there is"


async def test_a_world_that_cannot_be_had_leaves_the_room_as_it_was(livekit: LiveKit) -> None:
    name, room = livekit.new_room(), rtc.Room()
    once = APIConnectOptions(max_retry=0, timeout=20.0)
    async with nothing_unhandled():
        await room.connect(livekit.url, livekit.token(WORLD, name))
        try:
            world = WorldSession(url="http://127.0.0.1:1", conn_options=once)
            with pytest.raises(APIConnectionError, match=r"127\.0\.0\.1:1"):
                await world.start(AgentSession[None](), room)
            with pytest.raises(RuntimeError, match="was not started"):
                await world.update_prompt("a desert")
            await world.aclose()
            assert room.isconnected(), "the agent itself was not removed"
            room.register_text_stream_handler("world.prompt", lambda *_: None)
        finally:
            await room.disconnect()
