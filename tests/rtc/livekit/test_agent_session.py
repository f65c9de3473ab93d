"""The plugin's `WorldSession` over an engine of this process: a camera goes in, sound comes out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import sounding_model
import stub_model
from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities
from livekit.plugins.reverie_world import WorldSession
from livekit_rig import LiveKit
from livekit_world import WORLD, Viewer, nothing_unhandled
from room_guest import Camera
from waiting import until

from reverie import Deployment, Engine
from reverie.gpu_pool import ModelOptions, PoolOptions

BLUE = (20, 20, 220)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (
        ModelOptions(name="echo"),
        ModelOptions(name="sounding", family=sounding_model.LOCATION),
        ModelOptions(name="stub", family=stub_model.LOCATION),
    )
    async with Engine(Deployment(pool=PoolOptions(mode="inline", models=models))) as running:
        yield running


@asynccontextmanager
async def started(
    livekit: LiveKit, world: WorldSession, agent: AgentSession[None]
) -> AsyncIterator[Viewer]:
    """Show a world in a new room; yields somebody who is there."""
    name, room = livekit.new_room(), rtc.Room()
    async with nothing_unhandled():
        await room.connect(livekit.url, livekit.token(WORLD, name))
        try:
            async with Viewer.joined(livekit, name, "ada", topics=("world.events",)) as ada:
                await world.start(agent, room)
                yield ada
        finally:
            await world.aclose()
            await room.disconnect()


async def test_the_camera_of_the_one_that_was_chosen_is_what_the_world_sees(
    livekit: LiveKit, engine: Engine
) -> None:
    world = WorldSession(engine=engine, model="echo", participant_identity="ada")
    async with started(livekit, world, AgentSession()) as ada:
        camera: Camera = await ada.show(BLUE, size=256)
        await until(lambda: any(is_blue(each.colour) for each in ada.pictures), "a blue world")
        await camera.close()


def is_blue(colour: tuple[float, float, float]) -> bool:
    return colour[2] > 150 and max(colour[:2]) < 90


async def test_a_program_with_sound_is_heard(livekit: LiveKit, engine: Engine) -> None:
    world = WorldSession(engine=engine, model="sounding")
    async with started(livekit, world, AgentSession()) as ada:
        await until(lambda: max(ada.loudness, default=0.0) > 1000, "the tone")
        await ada.knows(status="live", model="sounding")


async def test_pictures_and_sound_that_the_server_takes_away_come_again(
    livekit: LiveKit, engine: Engine
) -> None:
    livekit.must_be_ours()
    world = WorldSession(engine=engine, model="sounding")
    async with started(livekit, world, AgentSession()) as ada:
        await until(lambda: max(ada.loudness, default=0.0) > 1000, "the tone")
        await ada.picture()
        await livekit.fault("unpublish", ada.room_name, WORLD)
        await until(lambda: ada.happened.count("track_published") == 4, "both again")
        assert ada.happened.count("track_unpublished") == 2
        ada.loudness.clear()
        await ada.picture(what="the pictures again")
        await until(lambda: max(ada.loudness, default=0.0) > 1000, "the tone again")
        assert ada.happened.count("track_published") == 4


async def test_cutting_off_the_agents_voice_interrupts_the_world(
    livekit: LiveKit, engine: Engine
) -> None:
    voice, agent = Voice(), AgentSession[None]()
    agent.output.audio = voice
    async with started(livekit, WorldSession(engine=engine, model="stub"), agent) as ada:
        await ada.sees(lambda _: True, "the world")
        assert agent.output.audio is not None
        agent.output.audio.clear_buffer()
        await ada.hears("session.interrupted", reason="interrupt")
        assert voice.cleared == 1


class Voice(AudioOutput):
    """The end of an agent's voice: counts how often it was cut off."""

    def __init__(self) -> None:
        super().__init__(label="voice", capabilities=AudioOutputCapabilities(pause=False))
        self.cleared = 0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)

    def flush(self) -> None:
        super().flush()

    def clear_buffer(self) -> None:
        self.cleared += 1


async def test_the_programs_own_hand_moves_the_world(livekit: LiveKit, engine: Engine) -> None:
    world = WorldSession(engine=engine, model="stub", prompt="a lake")
    async with started(livekit, world, AgentSession()) as ada:
        await ada.press("left")
        await ada.knows(driver="ada")
        await world.send_action({"move": "up"}, "press")
        await ada.sees(lambda stamp: "up" in stamp.held, "the agent's key")
        await world.update_prompt("a desert")
        prompt = stub_model.prompt_mark("a desert")
        await ada.sees(lambda stamp: stamp.prompt == prompt, "a desert")
        await world.interrupt()
        await ada.hears("session.interrupted", reason="interrupt")
