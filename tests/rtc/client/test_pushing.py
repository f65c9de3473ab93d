"""Media over a WebSocket by hand: what a good client never sends, and what browsers do."""

import json
import struct
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from media_suite import ECHO
from moving_pictures import CORNERS, access_units, bomb, corners, file_of, grey, quarters
from rtc_rig import ServerRig, WireClient, server_rig

from reverie.bench.machine import resident_mib
from reverie.models.echo import SIDE_PX
from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted
from reverie.sessions.protocol.media_events import MediaChunk


def binary(header: str | bytes, data: bytes = b"") -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return struct.pack(">I", len(text)) + text + data


class Pusher:
    """A client that speaks the protocol by hand, and pushes."""

    def __init__(self, client: WireClient) -> None:
        self.client = client

    async def send(self, data: bytes, **fields: Any) -> str:
        """Push without waiting for the answer; return the id."""
        self.client.commands += 1
        fields = {"type": "push_media", "id": f"m{self.client.commands}", **fields}
        await self.client.socket.send(binary(json.dumps(fields), data))
        return str(fields["id"])

    async def answer(self, command: str) -> AnyEvent:
        """Return the answer to a push; answers of one stream may pass each other."""
        while command not in (told := self.answers()):
            await self.client.hear()
        return told[command]

    def answers(self) -> dict[str | None, AnyEvent]:
        return {
            event.command: event
            for event in self.client.events
            if isinstance(event, RequestAccepted | Error)
        }

    async def push(self, data: bytes, **fields: Any) -> AnyEvent:
        return await self.answer(await self.send(data, **fields))

    async def shown_for(self, command: str) -> MediaChunk:
        """Hear events until the frame that the receipt of a push names."""
        applied = await self.client.applied(command)
        shown = await self.client.until(
            lambda event: isinstance(event, MediaChunk) and event.pts_us == applied.pts_us
        )
        assert isinstance(shown, MediaChunk)
        return shown

    async def shows(self, level: int) -> None:
        """Hear events until a plain picture of that brightness."""
        await self.client.until(
            lambda event: isinstance(event, MediaChunk) and abs(brightness(event) - level) < 4
        )


def brightness(event: MediaChunk) -> float:
    return float(np.frombuffer(event.data, np.uint8).mean())


def picture(event: MediaChunk) -> Any:
    return np.frombuffer(event.data, np.uint8).reshape(SIDE_PX, SIDE_PX, 3)


@pytest.fixture
async def rig() -> AsyncIterator[ServerRig]:
    async with server_rig(
        family=ECHO,
        server=ServerOptions(message_bytes=2**23),
        limits=SessionLimits(input_gap_s=0.3, input_wait_s=1.0, input_pixels=2**21),
    ) as running:
        yield running


async def test_a_picture_file_is_shown_and_the_receipt_of_the_last_names_the_frame(
    rig: ServerRig,
) -> None:
    async with rig.client(await rig.open()) as client:
        pusher = Pusher(client)
        for codec in ("jpeg", "png", "webp"):
            file = file_of(quarters(300, 200), codec.upper())
            command = await pusher.send(file, stream="clip", codec=codec, last=True)
            shown = await pusher.shown_for(command)
            assert corners(picture(shown)) == list(CORNERS)


async def test_h264_with_b_frames_is_shown_in_order(rig: ServerRig) -> None:
    given = list(range(20, 240, 10))
    times = [round(number * 1000 / 30) for number in range(len(given))]
    async with rig.client(await rig.open()) as client:
        pusher = Pusher(client)
        units = access_units([grey(level) for level in given], times, bf="2")
        for number, (pts_us, data) in enumerate(units):
            last = number == len(units) - 1
            answer = await pusher.push(data, stream="clip", codec="h264", pts_us=pts_us, last=last)
            assert answer.type == "request.accepted"
        await pusher.shows(given[-1])
        seen = [brightness(event) for event in client.events if isinstance(event, MediaChunk)]
    assert seen == sorted(seen)
    assert len(seen) == pytest.approx(len(given), abs=1)


WRONG: list[tuple[bytes, str, str | None]] = [
    (b"", "binary_frame", "$"),
    (b"\0\0", "binary_frame", "$"),
    (struct.pack(">I", 2**31) + b"{}", "binary_frame", "$"),
    (struct.pack(">I", 50) + b"{}", "binary_frame", "$"),
    (binary("{}", b"x"), "binary_frame", "$"),
    (binary('{"type":"pause","id":"w"}', b"x"), "binary_frame", "$"),
    (binary("not json", b"x"), "not_json", "$"),
    (binary(b"\xff\xfe", b"x"), "not_utf8", "$"),
    (binary('{"type":"push_media","id":"w"}', b"x"), "missing", "codec"),
    (binary('{"type":"push_media","id":"w","codec":"bmp"}', b"x"), "out_of_range", "codec"),
    (binary('{"type":"push_media","id":"w","codec":"png","pts_us":1e400}', b"x"), "non_finite",
     "pts_us"),
    (binary('{"type":"push_media","id":"w","codec":"png","pts_us":-1}', b"x"), "out_of_range",
     "pts_us"),
    (binary('{"type":"push_media","id":"w","codec":"png","data":"eA=="}', b"x"), "unknown_field",
     "data"),
    (binary('{"type":"push_media","id":"w","codec":"png","url":"file:///etc/passwd"}', b"x"),
     "unknown_field", "url"),
    (binary('{"type":"push_media","id":"w","codec":"png","stream":"../../etc/passwd"}', b"x"),
     "out_of_range", "stream"),
    (binary('{"type":"push_media","id":"w","codec":"png","stream":"screen"}', b"x"),
     "unknown_stream", "stream"),
    (binary('{"type":"push_media","id":"w","codec":"opus","stream":"clip"}', b"x"), "wrong_type",
     "codec"),
    (binary('{"type":"push_media","id":"w","codec":"png"}'), "missing", "data"),
    (binary('{"type":"push_media","id":"w","codec":"png"}', b"x"), "bad_media", "data"),
    (binary('{"type":"push_media","id":"w","codec":"png"}', file_of(grey(9), "JPEG")), "bad_media",
     "data"),
    (binary('{"type":"push_media","id":"w","codec":"rgb24","width":2,"height":2}', bytes(11)),
     "bad_media", "data"),
    (binary('{"type":"push_media","id":"w","codec":"rgb24"}', bytes(12)), "bad_media", "data"),
    (binary('{"type":"push_media","id":"w","codec":"h264"}', b"\0\0\0\1garbage"), "bad_media",
     "data"),
    (binary('{"type":"push_media","id":"w","codec":"opus"}', b"\xff" * 9), "bad_media", "data"),
    (binary('{"type":"push_media","id":"w","codec":"pcm16","rate_hz":48000,"channels":6}',
            bytes(24)), "bad_media", "data"),
]  # fmt: skip


async def test_whatever_is_wrong_with_a_push_is_told_and_the_next_one_is_shown(
    rig: ServerRig,
) -> None:
    async with rig.client(await rig.open()) as client:
        for message, code, field in WRONG:
            await client.socket.send(message)
            told = await client.hears("error")
            assert (told.code, told.field) == (code, field), message[:90]
            if b'"id":"w"' in message:
                assert told.command == "w"
        answer = await client.ask(type="push_media", codec="png")
        assert getattr(answer, "code", None) == "missing"
        await Pusher(client).push(file_of(grey(77)), stream="clip", codec="png", last=True)
        await Pusher(client).shows(77)


async def test_a_viewer_pushes_nothing(rig: ServerRig) -> None:
    opened = await rig.open()
    async with (
        rig.client(opened),
        rig.client(opened, token=opened["watch_token"], role="viewer") as viewer,
    ):
        answer = await Pusher(viewer).push(file_of(grey(9)), codec="png")
        assert getattr(answer, "code", None) == "read_only"


async def test_c18_ten_bombs_are_refused_and_cost_no_memory(rig: ServerRig) -> None:
    bombs = [bomb(13_000, 13_000), bomb(30_000, 30_000), bomb(100, 65_500)]
    exif = file_of(quarters(3000, 2000), "JPEG")
    async with rig.client(await rig.open()) as client:
        pusher = Pusher(client)
        await pusher.push(file_of(grey(9)), stream="clip", codec="png", last=True)
        before_mib = resident_mib()
        sent = [
            await pusher.send(bombs[number % 3], stream="clip", codec="png", last=True)
            for number in range(9)
        ]
        sent.append(await pusher.send(exif, stream="clip", codec="jpeg", last=True))
        for command in sent:
            answer = await pusher.answer(command)
            assert getattr(answer, "code", None) == "bad_media"
        assert resident_mib() - before_mib < 100


async def test_a_client_that_awaits_no_answers_is_refused_instead_of_buffered(
    rig: ServerRig,
) -> None:
    async with rig.client(await rig.open()) as client:
        await client.ask(type="pause")
        pusher = Pusher(client)
        sent = [
            await pusher.send(
                grey(9).tobytes(),
                stream="clip",
                codec="rgb24",
                width=64,
                height=48,
                pts_us=number * 33_333,
            )
            for number in range(60)
        ]
        await pusher.answer(sent[-1])
        refused = [each for each in pusher.answers().values() if isinstance(each, Error)]
        assert {each.code for each in refused} == {"too_many"}
        assert len(refused) >= len(sent) - (8 + 16 + 3)
        await client.ask(type="resume")
        for command in sent:
            await pusher.answer(command)
        await pusher.shows(9)


async def test_pushes_of_a_session_that_ends_are_answered(rig: ServerRig) -> None:
    async with rig.client(await rig.open()) as client:
        await client.ask(type="pause")
        pusher = Pusher(client)
        sent = [
            await pusher.send(file_of(grey(9)), stream="clip", codec="png", pts_us=number * 33_333)
            for number in range(14)
        ]
        await client.say(type="close")
        await client.closed()
        answered = {getattr(event, "command", None) for event in client.events}
        assert set(sent) <= answered
