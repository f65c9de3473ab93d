"""C27 and C25: models that hold the interpreter, and clients that must not notice or mix."""

import asyncio

import numpy as np
import pytest
from odd_models import place
from rtc_rig import ServerRig, server_rig, together
from stub_model import prompt_mark, read_stamp, session_mark

from reverie.rtc.options import ServerOptions
from reverie.sessions.protocol.media_events import MediaChunk

WATCH_S = 2.0


async def delay_of_loop(seconds: float) -> float:
    """Return how late the event loop was, the 99th of a hundred times."""
    loop = asyncio.get_running_loop()
    end_s, delays = loop.time() + seconds, []
    while loop.time() < end_s:
        due_s = loop.time() + 0.005
        await asyncio.sleep(0.005)
        delays.append(loop.time() - due_s)
    return sorted(delays)[int(len(delays) * 0.99)]


async def times_of_health(rig: ServerRig, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    end_s, times = loop.time() + seconds, []
    while loop.time() < end_s:
        start_s = loop.time()
        assert (await rig.http.get("/healthz")).status_code == 200
        times.append(loop.time() - start_s)
        await asyncio.sleep(0.05)
    return sorted(times)


@pytest.mark.timeout(120)
async def test_a_busy_model_slows_neither_the_loop_nor_health_nor_pings() -> None:
    server = ServerOptions(ping_interval_s=0.2, ping_timeout_s=1.0)
    async with server_rig("process", server, family=place("busy_family")) as rig:
        at_rest_s = await delay_of_loop(WATCH_S / 2)  # as much as the machine's other work makes it
        opened = await rig.open(parameters={"step_ms": 500})
        async with rig.client(opened) as client:
            await client.hears("session.attached")

            async def play() -> None:
                await client.chunk(0)  # two seconds of one busy step after another

            delay_s, times, _ = await together(
                delay_of_loop(WATCH_S), times_of_health(rig, WATCH_S), play()
            )
            assert delay_s < 0.2 or delay_s < 2 * at_rest_s
            assert times[int(len(times) * 0.95)] < 0.4
            await client.ask(type="close")
            assert (await client.closed())[0] == 1000


async def test_two_clients_never_get_each_others_pictures(rig: ServerRig) -> None:
    prompts = {"red": await rig.open(prompt="red"), "blue": await rig.open(prompt="blue")}

    async def play(prompt: str) -> list[MediaChunk]:
        opened = prompts[prompt]
        async with rig.client(opened) as client:
            for number in range(0, 50, 10):
                await client.chunk(number)
                if number % 20:
                    await client.ask(type="pause")
                    await asyncio.sleep(0)
                    await client.ask(type="resume")
            return [event for event in client.events if isinstance(event, MediaChunk)]

    shown = dict(zip(prompts, await together(*(play(prompt) for prompt in prompts)), strict=True))
    for prompt, chunks in shown.items():
        stamps = [read_stamp(pixels(chunk)) for chunk in chunks]
        assert len(stamps) > 400
        assert {stamp.session for stamp in stamps} == {session_mark(prompts[prompt]["id"])}
        assert {stamp.prompt for stamp in stamps} == {prompt_mark(prompt)}


def pixels(chunk: MediaChunk) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    return np.frombuffer(chunk.data, np.uint8).reshape(64, 64, 3)


async def test_a_second_tab_with_the_same_ticket_replaces_the_first(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as first, rig.client(opened) as second:
        assert await first.closed() == (4409, "replaced")
        await second.chunk(1)
    own = await rig.open()
    async with rig.client(own) as third, rig.client(opened) as second:
        chunks = await together(third.chunk(1), second.chunk(2))
        marks = [read_stamp(pixels(chunk)).session for chunk in chunks]
        assert marks == [session_mark(own["id"]), session_mark(opened["id"])]
