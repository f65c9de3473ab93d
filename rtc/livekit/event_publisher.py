"""Events of the session as lines of JSON on the text topic `world.events`.

The queue is bounded: while the room takes none, the oldest lines are dropped; the next line says
how many.
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from livekit import rtc

from reverie.rtc.livekit.command_gateway import OWN, Author
from reverie.rtc.livekit.errors import InputRefusedError, said
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.vocabulary import TOPIC_EVENTS
from reverie.sessions.protocol.events import AnyEvent

WAITING = 256
TOGETHER = 32
"""Lines in one text stream at most."""

UNTOLD = (
    "media.",
    "request.",
    "trace.",
    "session.attached",
    "session.updated",
)
"""Prefixes of event types that are not published, because tracks and attributes tell them."""

REFUSE_S = 0.5

_PRIVATE = ("session", "sequence")
"""Fields that concern one attachment only."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    to: str | None  # None: all participants


class EventPublisher:
    """The queue of lines for the room.

    Attributes:
        dropped: lines that were dropped.
        unsaid: refusals that were left out, because another was sent just before.
    """

    def __init__(self, options: BridgeOptions) -> None:
        self.dropped = 0
        self.unsaid = 0
        self._refused_s: dict[str, float] = {}  # when a participant was last told of a refusal
        self._idle = asyncio.Event()
        self._options = options
        self._waiting: deque[_Line] = deque()
        self._untold = 0  # dropped since the last line that said so
        self._arrived = asyncio.Event()

    def note(self, event: AnyEvent, author: Author | None) -> None:
        """Queue an event of the session, if it is one for the room. Never waits."""
        if event.type.startswith(UNTOLD):
            return
        fields: dict[str, object] = event.model_dump(mode="json", exclude_none=True)
        for name in _PRIVATE:
            fields.pop(name, None)
        if author is not None:
            if author.by != OWN:
                fields["by"] = author.by
            if author.tag is not None:
                fields["tag"] = author.tag
        self.tell(fields)

    def refuse(self, by: str, why: InputRefusedError) -> None:
        """Tell one participant that their request was refused. Never waits.

        At most once in `REFUSE_S`, because a refused key is often pressed again.
        """
        now_s = asyncio.get_running_loop().time()
        if now_s - self._refused_s.get(by, -REFUSE_S) < REFUSE_S:
            self.unsaid += 1
            return
        self._refused_s = {
            each: at_s for each, at_s in self._refused_s.items() if now_s - at_s < REFUSE_S
        }
        self._refused_s[by] = now_s
        self.tell({"type": "world.refused", **said(why)}, to=by)

    def tell(self, fields: Mapping[str, object], to: str | None = None) -> None:
        """Queue a line for all participants, or for one. Never waits."""
        if len(self._waiting) >= WAITING:
            self._waiting.popleft()
            self.dropped += 1
            self._untold += 1
        whole = {**fields, "dropped": self._untold} if self._untold else fields
        self._untold = 0
        self._idle.clear()
        self._waiting.append(_Line(json.dumps(whole, ensure_ascii=False), to))
        self._arrived.set()

    async def all_sent(self) -> None:
        """Wait until all lines were sent, while `send` runs."""
        await self._idle.wait()

    async def send(self, speaker: rtc.LocalParticipant) -> None:
        """Send lines until cancelled; lines that the room does not take in time are lost."""
        while True:
            while not self._waiting:
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
            self._idle.clear()
            to, text = self._next()
            try:
                async with asyncio.timeout(self._options.room_s):
                    await speaker.send_text(
                        text,
                        topic=TOPIC_EVENTS,
                        destination_identities=None if to is None else [to],
                    )
            except (TimeoutError, rtc.StreamError):
                lines = text.count("\n") + 1
                self.dropped += lines
                self._untold += lines

    def _next(self) -> tuple[str | None, str]:
        first = self._waiting.popleft()
        lines = [first.text]
        while self._waiting and self._waiting[0].to == first.to and len(lines) < TOGETHER:
            lines.append(self._waiting.popleft().text)
        return first.to, "\n".join(lines)
