"""Sound over WebSockets, from a worker in a process of its own."""

import numpy as np
import pytest
import sounding_model
from listening import heard_opus, pitch_hz
from rtc_rig import server_rig

from reverie.rtc import connect
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


@pytest.mark.timeout(120)
async def test_a_client_that_names_opus_hears_it_and_one_that_does_not_hears_nothing() -> None:
    async with server_rig(mode="process", family=sounding_model.LOCATION) as rig:
        opened = await rig.open(parameters={"hz": 600.0})
        async with rig.client(opened, codecs=["opus", "jpeg"]) as client:
            while len(sound_of(client.events)) < 100:
                await client.hear()
        async with rig.client(opened, codecs=["jpeg"]) as deaf:
            await deaf.chunk(sound_of(client.events)[-1].chunk + 2)
        inits = {each.stream: each for each in client.events if isinstance(each, MediaInit)}
        assert (inits["sound"].codec, inits["sound"].container) == ("opus", "opus")
        assert (inits["sound"].rate_hz, inits["sound"].channels) == (48_000.0, 1)
        assert inits["video"].codec == "jpeg"
        assert not sound_of(deaf.events)
    played = heard_opus([each.data for each in sound_of(client.events)])
    assert abs(pitch_hz(played[4800:90_000, 0], 48_000) - 600.0) < 1.0


async def test_a_python_client_hears_the_very_samples() -> None:
    async with server_rig(family=sounding_model.LOCATION) as rig, connect(rig.url) as session:
        heard: list[MediaChunk] = []
        async for event in session.stream():
            if isinstance(event, MediaChunk) and event.stream == "sound":
                heard.append(event)
            if len(heard) == 40:
                break
        samples = np.concatenate([session.samples(each) for each in heard])[:, 0]
    expected = 0.5 * 32767 * np.sin(2 * np.pi * 1000.0 * np.arange(len(samples)) / 24_000)
    assert np.abs(samples - expected).max() <= 1


async def test_a_hello_without_a_codec_for_pictures_is_refused() -> None:
    async with server_rig(family=sounding_model.LOCATION) as rig:
        opened = await rig.open()
        async with rig.client(opened, codecs=["opus"]) as client:
            code, reason = await client.closed()
    assert (code, reason) == (4400, "out_of_range")


def sound_of(events: list[AnyEvent]) -> list[MediaChunk]:
    return [each for each in events if isinstance(each, MediaChunk) and each.stream == "sound"]
