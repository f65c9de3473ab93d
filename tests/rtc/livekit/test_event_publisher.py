"""Lines of JSON and captions on their way to a room, which may be deaf."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from livekit import rtc
from waiting import until

from reverie.rtc.livekit.captions import Captions
from reverie.rtc.livekit.command_gateway import Author
from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.event_publisher import WAITING, EventPublisher
from reverie.rtc.livekit.options import BridgeOptions
from reverie.sessions.protocol.events import ControlApplied, SessionUpdated
from reverie.sessions.protocol.media_events import MediaChunk, TextDelta

OPTIONS = BridgeOptions(room_s=0.05)
APPLIED = ControlApplied(session="s", sequence=4, control="c1", step=1, chunk=2, pts_us=3)


@dataclass
class Stream:
    """A text stream that a speaker writes."""

    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)
    closed: dict[str, str] | None = None

    async def write(self, text: str) -> None:
        self.parts.append(text)

    async def aclose(self, *, attributes: dict[str, str] | None = None) -> None:
        self.closed = attributes


class Speaker:
    """Stands where a room's own participant does, and may be deaf for a while."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, list[str] | None]] = []
        self.streams: list[Stream] = []
        self.tried = 0
        self.deaf = False

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for text, _ in self.texts for line in text.splitlines()]

    async def send_text(
        self, text: str, *, topic: str, destination_identities: list[str] | None
    ) -> None:
        assert topic == "world.events"
        self.tried += 1
        if self.deaf:
            await asyncio.Event().wait()
        self.texts.append((text, destination_identities))

    async def stream_text(self, *, topic: str, attributes: dict[str, str]) -> Stream:
        assert topic == "lk.transcription"
        self.tried += 1
        if self.deaf:
            raise rtc.StreamError("nobody listens")
        self.streams.append(Stream(attributes))
        return self.streams[-1]

    def __call__(self) -> rtc.LocalParticipant:
        return cast(rtc.LocalParticipant, self)


@contextmanager
def running(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()


async def all_sent(publisher: EventPublisher) -> None:
    async with asyncio.timeout(10):
        await publisher.all_sent()


async def test_a_receipt_says_whose_control_it_was() -> None:
    publisher, speaker = EventPublisher(OPTIONS), Speaker()
    publisher.note(APPLIED, Author("ada", "k1"))
    with running(publisher.send(speaker())):
        await all_sent(publisher)
    [line] = speaker.lines
    assert line["type"] == "control.applied"
    assert (line["control"], line["by"], line["tag"]) == ("c1", "ada", "k1")
    assert not {"session", "sequence"} & line.keys()


async def test_what_tracks_and_attributes_say_is_no_news() -> None:
    publisher = EventPublisher(OPTIONS)
    chunk = MediaChunk(
        stream="video", index=0, pts_us=0, duration_us=1, key=True, chunk=0, frame=0,
        last=True, step=0, size_bytes=0,
    )  # fmt: skip
    view = {"state": "active", "model": "m", "program": "p", "prompt": "", "seed": 1}
    publisher.note(chunk, None)
    publisher.note(SessionUpdated.model_validate({"view": view}), None)
    speaker = Speaker()
    with running(publisher.send(speaker())):
        publisher.tell({"type": "world.parked"})
        await all_sent(publisher)
    assert speaker.lines == [{"type": "world.parked"}]


async def test_lines_go_together_to_those_whom_they_concern() -> None:
    publisher, speaker = EventPublisher(OPTIONS), Speaker()
    for number in range(3):
        publisher.tell({"n": number})
    publisher.tell({"n": 3}, to="ada")
    publisher.tell({"n": 4})
    with running(publisher.send(speaker())):
        await all_sent(publisher)
    assert [line["n"] for line in speaker.lines] == [0, 1, 2, 3, 4]
    assert [to for _, to in speaker.texts] == [None, ["ada"], None]


async def test_a_room_that_takes_none_loses_the_oldest_and_is_told_how_many() -> None:
    publisher, speaker = EventPublisher(OPTIONS), Speaker()
    for number in range(WAITING + 3):
        publisher.tell({"n": number})
    with running(publisher.send(speaker())):
        await all_sent(publisher)
    assert speaker.lines[0]["n"] == 3
    assert sum(line.get("dropped", 0) for line in speaker.lines) == publisher.dropped == 3


async def test_what_a_deaf_room_did_not_take_is_counted_in_what_it_takes_next() -> None:
    publisher, speaker = EventPublisher(OPTIONS), Speaker()
    speaker.deaf = True
    with running(publisher.send(speaker())):
        publisher.tell({"n": 0})
        await until(lambda: publisher.dropped == 1)
        speaker.deaf = False
        publisher.tell({"n": 1})
        await all_sent(publisher)
    assert speaker.lines == [{"n": 1, "dropped": 1}]


async def test_who_presses_keys_in_vain_is_told_so_now_and_then() -> None:
    publisher, speaker = EventPublisher(OPTIONS), Speaker()
    for _ in range(50):
        publisher.refuse("ben", InputRefusedError("seat_taken", "ada drives"))
    publisher.refuse("eve", InputRefusedError("seat_taken", "ada drives"))
    with running(publisher.send(speaker())):
        await all_sent(publisher)
    assert [to for _, to in speaker.texts] == [["ben"], ["eve"]]
    assert {line["code"] for line in speaker.lines} == {"seat_taken"}
    assert publisher.unsaid == 49


def words(text: str, utterance: int, **more: Any) -> TextDelta:
    return TextDelta(stream="narration", text=text, utterance=utterance, pts_us=0, **more)


async def test_each_utterance_is_one_caption() -> None:
    captions, speaker = Captions(OPTIONS), Speaker()
    with running(captions.send(speaker())):
        captions.note(words("a lake ", 1))
        captions.note(words("ahead. ", 1, final=True))
        captions.note(words("tre", 2))
        captions.note(words("", 2, cut=True))
        captions.note(words("now ", 3))
        await until(lambda: speaker.streams[2:] and speaker.streams[2].parts)
    assert [each.parts for each in speaker.streams] == [
        ["a lake ", "ahead. "],
        ["tre", ""],
        ["now "],
    ]
    assert [each.closed is not None for each in speaker.streams] == [True, True, False]
    assert captions.heard == "now "


async def test_a_room_that_takes_no_words_gets_the_next_utterance() -> None:
    captions, speaker = Captions(OPTIONS), Speaker()
    speaker.deaf = True
    with running(captions.send(speaker())):
        captions.note(words("lost ", 1))
        await until(lambda: speaker.tried == 1)
        speaker.deaf = False
        captions.note(words("heard ", 2))
        await until(lambda: speaker.streams)
        await until(lambda: speaker.streams[0].parts == ["heard "])
