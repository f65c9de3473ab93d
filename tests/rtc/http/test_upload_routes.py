"""Pictures and clips that come as the body of a request."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from media_suite import ECHO
from moving_pictures import bomb, clip_of, file_of, grey
from rtc_rig import ServerRig, WireClient, server_rig, together
from rtc_serving import RawSocket

from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.media_events import MediaChunk

INPUTS = Path(__file__).parent.parent.parent / "inputs"
LEVELS = list(range(20, 240, 20))
TIMES_MS = [round(number * 1000 / 30) for number in range(len(LEVELS))]


@pytest.fixture
async def rig() -> AsyncIterator[ServerRig]:
    async with server_rig(
        family=ECHO,
        server=ServerOptions(upload_bytes=100_000, upload_timeout_s=1.0, uploads=2),
        limits=SessionLimits(input_wait_s=1.0, input_pixels=2**20),
    ) as running:
        yield running


async def upload(
    rig: ServerRig, opened: dict[str, Any], data: bytes, stream: str = "clip", token: str = "token"
) -> httpx.Response:
    return await rig.http.put(
        f"/v1/sessions/{opened['id']}/inputs/{stream}",
        content=data,
        headers={"Authorization": f"Bearer {opened[token]}"},
        timeout=30.0,
    )


async def shows(client: WireClient, level: int) -> None:
    def found(event: Any) -> bool:
        is_chunk = isinstance(event, MediaChunk)
        return is_chunk and abs(float(np.frombuffer(event.data, np.uint8).mean()) - level) < 4

    await client.until(found)


async def test_a_clip_is_seen_frame_by_frame(rig: ServerRig) -> None:
    opened = await rig.open()
    clip = clip_of([grey(level) for level in LEVELS], TIMES_MS, bf="2")
    async with rig.client(opened) as client:
        answer, _ = await together(upload(rig, opened, clip), shows(client, LEVELS[-1]))
        assert (answer.status_code, answer.json()) == (200, {"frames": len(LEVELS)})
    levels = [
        float(np.frombuffer(event.data, np.uint8).mean())
        for event in client.events
        if isinstance(event, MediaChunk)
    ]
    assert levels == sorted(levels)
    assert len(levels) == len(LEVELS)


@pytest.mark.parametrize("stream", ["clip", "camera"])
async def test_a_picture_of_any_kind_is_seen(rig: ServerRig, stream: str) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        for level, kind in ((40, "PNG"), (90, "JPEG"), (200, "WEBP")):
            answer = await upload(rig, opened, file_of(grey(level), kind), stream)
            assert answer.json() == {"frames": 1}
            await shows(client, level)


async def test_what_cannot_be_used_is_refused_with_its_reason(rig: ServerRig) -> None:
    opened = await rig.open()
    clip = clip_of([grey(9)] * 4, [0, 33, 66, 99])
    refused = [
        (await upload(rig, opened, b""), 400, "bad_media"),
        (await upload(rig, opened, b"nothing"), 400, "bad_media"),
        (await upload(rig, opened, b"#EXTM3U\nfile:///etc/passwd\n"), 400, "bad_media"),
        (await upload(rig, opened, bomb(13_000, 13_000)), 400, "bad_media"),
        (await upload(rig, opened, clip[:300]), 400, "bad_media"),
        (await upload(rig, opened, bytes(100_001)), 413, "too_large"),
        (await upload(rig, opened, clip, "screen"), 404, "unknown_stream"),
        (await upload(rig, opened, clip, "..%2f..%2fetc"), 404, "not_found"),
        (await upload(rig, opened, clip, "microphone"), 400, "wrong_type"),
        (await upload(rig, opened, clip, token="watch_token"), 403, "read_only"),
        (await upload(rig, {**opened, "token": "x"}, clip), 404, "no_such_session"),
        (await upload(rig, {**opened, "id": "x"}, clip), 404, "no_such_session"),
    ]
    for answer, status, code in refused:
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_what_is_neither_picture_nor_clip_is_told_which_kinds_there_are(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    for data in (b"", b"nothing", b"RIFF    WAVEfmt "):
        message = (await upload(rig, opened, data)).json()["error"]["message"]
        assert "jpeg, png, webp, gif; MP4, MOV, WebM, AVI" in message


@pytest.mark.parametrize(
    ("name", "frames"),
    [("cover.mp4", 20), ("plain.mp4", 20), ("from_60_s.mp4", 10), ("from_130_s.webm", 10)],
)
@pytest.mark.parametrize("stream", ["clip", "camera"])
async def test_all_of_a_clip_is_seen_at_once_wherever_it_begins_and_whatever_is_beside_it(
    rig: ServerRig, name: str, frames: int, stream: str
) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client, asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(client.until(lambda _: False))
        answer = await upload(rig, opened, (INPUTS / name).read_bytes(), stream)
        watching.cancel()
    assert (answer.status_code, answer.json()) == (200, {"frames": frames})


async def test_a_photograph_that_is_not_read_and_a_song_with_a_cover_are_refused_by_name(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    song = b"ID3" + bytes(200)
    for data, name in (((INPUTS / "tiles.heic").read_bytes(), "a HEIC photo"), (song, "a sound")):
        answer = await upload(rig, opened, data)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_media")
        assert f"this is {name}" in answer.json()["error"]["message"]


async def test_a_picture_without_a_viewer_is_kept_for_the_next_one(rig: ServerRig) -> None:
    opened = await rig.open()
    answer = await upload(rig, opened, file_of(grey(200), "PNG"))
    assert (answer.status_code, answer.json()) == (200, {"frames": 1})
    async with rig.client(opened) as client:
        await shows(client, 200)


async def test_a_clip_that_no_viewer_takes_is_given_up_and_one_of_an_ended_session_too(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    clip = clip_of([grey(level) for level in LEVELS] * 2, range(0, 66 * 11, 33))
    answer = await upload(rig, opened, clip)  # without a viewer the session rests
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many")

    async def end() -> None:
        await asyncio.sleep(0.1)
        rig.store.close(opened["id"])

    answer, _ = await together(upload(rig, opened, clip), end())
    assert answer.status_code == 410


async def test_half_a_body_and_too_many_at_once_are_refused(rig: ServerRig) -> None:
    opened = await rig.open()
    head = (
        f"PUT /v1/sessions/{opened['id']}/inputs/clip HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {opened['token']}\r\nContent-Length: 5000\r\n\r\nhalf"
    )
    sockets = [await RawSocket.open(rig.url) for _ in range(3)]
    for socket in sockets:
        await socket.say(head.encode())
    answers = await together(*(socket.rest(20.0) for socket in sockets))
    for socket in sockets:
        await socket.close()
    codes = sorted(answer.split(b" ")[1] for answer in answers)
    assert codes == [b"408", b"408", b"503"]


def put_request(opened: dict[str, Any], data: bytes) -> bytes:
    head = (
        f"PUT /v1/sessions/{opened['id']}/inputs/clip HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {opened['token']}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


HOG = "127.0.0.2"

LONG = clip_of([grey(level) for level in LEVELS] * 2, range(0, 66 * 11, 33))
"""More pictures than the input holds, so that its upload waits without a viewer."""


async def test_an_upload_ends_with_its_connection() -> None:
    async with server_rig(family=ECHO, server=ServerOptions(uploads=2)) as rig:
        victim, stranger = await rig.open(), await rig.open()
        gone = [await RawSocket.open(rig.url) for _ in range(2)]
        for socket in gone:
            await socket.say(put_request(stranger, LONG))
        refused = await until_refused(rig, victim)
        assert refused.json()["error"]["code"] == "too_many_uploads"
        assert int(refused.headers["Retry-After"]) > 0
        for socket in gone:
            await socket.close()
        answer = await until_taken(rig, victim)  # long before what they sent could be handed over
        assert answer.json() == {"frames": 1}


async def until_refused(rig: ServerRig, opened: dict[str, Any]) -> httpx.Response:
    async with asyncio.timeout(20):
        while (answer := await upload(rig, opened, file_of(grey(9), "PNG"))).status_code == 200:
            pass
    return answer


async def until_taken(rig: ServerRig, opened: dict[str, Any]) -> httpx.Response:
    async with asyncio.timeout(20):  # `input_wait_s` is 30
        while (answer := await upload(rig, opened, file_of(grey(9), "PNG"))).status_code == 503:
            await asyncio.sleep(0.01)
    return answer


async def test_one_address_with_all_uploads_gives_one_up_for_another() -> None:
    async with server_rig(family=ECHO, server=ServerOptions(uploads=2)) as rig:
        victim, stranger = await rig.open(), await rig.open()
        sockets = [await RawSocket.open(rig.url, host=HOG) for _ in range(2)]
        for socket in sockets:
            await socket.say(put_request(stranger, LONG))
        async with rig.caller(HOG) as hog:
            await until_refused(replace(rig, http=hog), stranger)
        answer = await upload(rig, victim, file_of(grey(9), "PNG"))
        assert answer.status_code == 200
        assert b"too_many_uploads" in await either(sockets)
        for socket in sockets:
            await socket.close()


async def either(sockets: list[RawSocket]) -> bytes:
    """Return the first answer that one of some sockets gets."""
    reading = [asyncio.create_task(socket.reader.read(2000)) for socket in sockets]
    done, waiting = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED, timeout=20)
    for task in waiting:
        task.cancel()
    return next(iter(done)).result()
