"""Clients that vanish in every way, and slow ones (C05, C07, C11, C12)."""

import asyncio
import json
import os
import resource
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rtc_rig import LIMIT_S, ServerRig, WireClient, server_rig, together
from rtc_serving import RawSocket, reset, upgrade
from stub_model import LOG_VARIABLE, read_log, read_stamp, session_mark
from waiting import until
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.media_events import MediaChunk

DOOMED = Path(__file__).parents[2] / "support" / "rigs" / "rtc_doomed_client.py"


def cut(client: WireClient) -> None:
    """Cut with a TCP reset."""
    reset(client.socket.transport.get_extra_info("socket"))
    client.socket.transport.abort()


def stamp_of(chunk: MediaChunk) -> Any:
    return read_stamp(np.frombuffer(chunk.data, np.uint8).reshape(64, 64, 3))


async def test_a_cut_in_mid_step_and_a_quick_return_go_on_from_the_last_commit(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "steps"
    monkeypatch.setenv(LOG_VARIABLE, str(log))
    opened = await rig.open(parameters={"step_ms": 50})
    async with rig.client(opened) as client:
        await client.chunk(1)
        await until(lambda: any(line.chunk == 3 and line.unit == 0 for line in read_log(log)))
        cut(client)
    async with rig.client(opened) as client:  # at once: well within 20 ms
        shown = [stamp_of(await client.chunk(3)).chunk for _ in range(1)]
        media = [event for event in client.events if isinstance(event, MediaChunk)]
        worlds = [stamp_of(chunk).chunk for chunk in media]
        assert worlds == sorted(worlds)
        assert media[0].key
        assert shown[-1] >= 3
        assert {stamp_of(chunk).session for chunk in media} == {session_mark(opened["id"])}
    rig.store.close(opened["id"])
    await until(lambda: rig.busy == 0)
    starts = [(line.chunk, line.unit) for line in read_log(log) if line.event == "start"]
    assert starts == sorted(set(starts))  # one loop; no step was run twice


async def test_a_key_that_was_held_when_the_line_broke_is_let_go(rig: ServerRig) -> None:
    opened = await rig.open(parameters={"step_ms": 5})
    async with rig.client(opened) as client:
        await client.chunk(0)
        await client.ask(type="push_action", action={"move": "up"}, edge="press")
        held = await client.until(
            lambda event: isinstance(event, MediaChunk) and stamp_of(event).held == {"up"}
        )
        cut(client)
    async with rig.client(opened) as client:
        assert isinstance(held, MediaChunk)
        later = await client.chunk(held.chunk + 3)
        assert stamp_of(later).held == set()
        assert stamp_of(later).acting is None


async def test_after_a_thousand_presses_the_release_still_comes_through(rig: ServerRig) -> None:
    opened = await rig.open(parameters={"step_ms": 5})
    async with rig.client(opened) as client:
        await client.chunk(0)
        await client.say(type="push_action", action={"move": "up"}, edge="press")
        for _ in range(1000):
            await client.say(type="push_action", action={"move": "left"})
        release = await client.say(type="push_action", action={"move": "up"}, edge="release")
        applied = await client.applied(release)
        later = await client.chunk(applied.chunk + 1)
        assert stamp_of(later).held == set()


async def reader_that_never_reads(
    rig: ServerRig, opened: dict[str, Any], **hello: Any
) -> RawSocket:
    """Attach with a tiny window and read nothing."""
    raw = await RawSocket.open(rig.url, receive_bytes=4096)
    await raw.say(upgrade(f"/v1/sessions/{opened['id']}/ws"))
    await raw.reader.readuntil(b"\r\n\r\n")
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
    message = {"type": "hello", "protocol": 1, "codecs": ["rgb24"], **hello}
    frame = Frame(Opcode.TEXT, json.dumps(message).encode())
    await raw.say(frame.serialize(mask=True))
    return raw


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_a_viewer_that_never_reads_costs_little_and_is_told_when_it_reads_again() -> None:
    options = ServerOptions(send_timeout_s=1.0)
    async with server_rig(server=options) as rig:
        opened = await rig.open()
        async with rig.client(opened) as driver:
            await driver.chunk(0)
            raw = await reader_that_never_reads(
                rig, opened, token=opened["watch_token"], role="viewer"
            )
            await until(lambda: rig.store.get(opened["id"]).view.viewers == 2)
            before = peak_bytes()
            frames = 0
            while rig.store.get(opened["id"]).view.viewers == 2:
                frames += isinstance(await driver.hear(), MediaChunk)
            assert frames > 20  # the driver was served all the while, at the full rate
            assert peak_bytes() - before < 20 * 2**20
            raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
            received = await raw.rest(LIMIT_S)
            assert received.endswith(b"slow_viewer")
            await driver.chunk(driver_chunk(driver) + 2)
            await raw.close()


def driver_chunk(driver: WireClient) -> int:
    return max(event.chunk for event in driver.events if isinstance(event, MediaChunk))


async def test_a_driver_that_never_reads_holds_the_world_and_is_ended() -> None:
    limits = SessionLimits(stall_s=0.5)
    async with server_rig(server=ServerOptions(send_timeout_s=0.5), limits=limits) as rig:
        opened = await rig.open()
        raw = await reader_that_never_reads(rig, opened, token=opened["token"])
        # Nothing is seen, so nothing more is made; what was made fits the buffers or waits.
        await until(lambda: rig.store.get(opened["id"]).view.viewers == 1)
        await until(lambda: rig.store.get(opened["id"]).view.viewers == 0)
        assert rig.store.get(opened["id"]).state.chunk < 4
        raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await raw.rest(LIMIT_S)).endswith(b"slow_viewer")
        await raw.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def end_by_close_frame(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)


async def end_by_reset(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)
        cut(client)


async def end_before_the_first_chunk(rig: ServerRig) -> None:
    opened = await rig.open()
    async with connect(rig.socket_url(opened["id"]), proxy=None) as socket:
        await WireClient(socket).hello(opened["token"])
        socket.transport.abort()


async def end_in_mid_step(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)
        await client.ask(type="update", parameters={"step_ms": 100})
        await client.until(lambda event: event.type == "control.applied")
        cut(client)


async def end_by_killing_the_process(rig: ServerRig) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(DOOMED), stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        assert await process.stdout.readline() == b"ready\n"
        opened = await rig.open()
        process.stdin.write(f"{rig.socket_url(opened['id'])} {opened['token']}\n".encode())
        assert await process.stdout.readline() == b"frame\n"
        process.kill()
        await process.wait()


async def never_come(rig: ServerRig) -> None:
    """Open a session and forget it."""
    await rig.open()


async def test_whatever_way_sessions_end_their_places_come_back() -> None:
    ways = [
        end_by_close_frame,
        end_by_reset,
        end_before_the_first_chunk,
        end_in_mid_step,
        end_by_killing_the_process,
        never_come,
    ]
    async with server_rig(limits=SessionLimits(grace_s=0.2), sessions=2) as rig:
        tasks = files = 0
        for round in range(2):
            for way in ways:
                await way(rig)
            await until(lambda: len(rig.store) == 0 and rig.busy == 0)
            if round == 0:
                tasks, files = len(asyncio.all_tasks()), open_files()
        ready = await rig.http.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["models"]["stub"]["busy"] == 0
        assert 'reverie_attached{role="driver"} 0.0' in (await rig.http.get("/metrics")).text
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        await until(lambda: open_files() <= files)
        first, second = await rig.open(), await rig.open()
        async with rig.client(first) as one, rig.client(second) as two:
            await together(one.chunk(0), two.chunk(0))
