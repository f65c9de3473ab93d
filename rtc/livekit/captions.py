"""The text of the world as LiveKit captions: one text stream for each utterance.

Front ends show `lk.transcription` without knowing worlds. The queue is bounded: a room that takes
no text loses the oldest pieces; the next utterance is complete again.
"""

import asyncio
from collections import deque
from contextlib import suppress

from livekit import rtc

from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.vocabulary import TOPIC_CAPTIONS
from reverie.sessions.protocol.media_events import TextDelta

WAITING = 256
HEARD_CHARS = 2000

_FINAL = "lk.transcription_final"
_SEGMENT = "lk.segment_id"


class Captions:
    """The queue of text for the room.

    Attributes:
        heard: the newest utterance so far.
        dropped: pieces that were dropped.
    """

    def __init__(self, options: BridgeOptions) -> None:
        self.heard = ""
        self.dropped = 0
        self._options = options
        self._utterance = -1
        self._waiting: deque[TextDelta] = deque()
        self._arrived = asyncio.Event()

    def note(self, event: TextDelta) -> None:
        """Queue a piece of text. Never waits."""
        begun = self.heard if event.utterance == self._utterance else ""
        self.heard = (begun + event.text)[-HEARD_CHARS:]
        self._utterance = event.utterance
        if len(self._waiting) >= WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._arrived.set()

    async def send(self, speaker: rtc.LocalParticipant) -> None:
        """Send text until cancelled."""
        writer: rtc.TextStreamWriter | None = None
        writing = -1
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            event = self._waiting.popleft()
            with suppress(
                TimeoutError, rtc.StreamError, RuntimeError
            ):  # RuntimeError: it is closed
                async with asyncio.timeout(self._options.room_s):
                    if writer is not None and writing != event.utterance:
                        before, writer = writer, None
                        await before.aclose(attributes={_FINAL: "true"})
                    if writer is None and event.text:
                        writing = event.utterance
                        writer = await _begin(speaker, event)
                    if writer is not None:
                        await writer.write(event.text)
                    if writer is not None and (event.final or event.cut):
                        before, writer = writer, None
                        await before.aclose(attributes={_FINAL: "true"})
                continue
            writer = None  # the room did not take it: begin again with the next piece


async def _begin(speaker: rtc.LocalParticipant, event: TextDelta) -> rtc.TextStreamWriter:
    attributes = {_SEGMENT: f"{event.stream}-{event.utterance}", _FINAL: "false"}
    return await speaker.stream_text(topic=TOPIC_CAPTIONS, attributes=attributes)
