"""Text streams become prompts: each is read to its end, within limits of size and time.

Streams wait for a reader in a bounded queue, which refuses streams while it is full. There are
several readers, so that a text that never ends does not block the others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from livekit import rtc

from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.options import BridgeOptions

TEXT_CHARS = 20_000
"""Longer texts are not read to their end; the session's own limit is lower."""
WAITING = 16
READERS = 4
READ_S = 5.0

Mode = Literal["replace", "append", "turn"]
Say = Callable[[str, str, Mode, str | None], Awaitable[object]]
"""Sends the prompt `text` for `by`, in a mode, with a tag."""


@dataclass(frozen=True, slots=True)
class _Text:
    reader: rtc.TextStreamReader
    by: str


class TextIntake:
    """The queue of text streams for the session.

    A stream's attributes may hold the `mode` of the prompt, and a `tag` of the sender's choice.
    """

    def __init__(
        self, options: BridgeOptions, say: Say, refused: Callable[[str, InputRefusedError], None]
    ) -> None:
        """Create an empty queue; `refused` gets the identity and the reason of a refusal."""
        self._options = options
        self._say = say
        self._refused = refused
        self._waiting: asyncio.Queue[_Text] = asyncio.Queue(maxsize=WAITING)

    def put(self, reader: rtc.TextStreamReader, by: str) -> None:
        """Queue a text. Never waits; a full queue refuses it."""
        try:
            self._waiting.put_nowait(_Text(reader, by))
        except asyncio.QueueFull:
            self.refuse(reader, by, InputRefusedError("too_many", f"{WAITING} texts wait already"))

    def refuse(self, reader: rtc.TextStreamReader, by: str, why: InputRefusedError) -> None:
        """Refuse a text without reading it."""
        _close(reader)
        self._refused(by, why)

    async def serve(self) -> None:
        """Read texts and send them as prompts, until cancelled."""
        while True:
            text = await self._waiting.get()
            try:
                said = await _read(text.reader)
                attributes = text.reader.info.attributes or {}
                tag = attributes.get("tag")
                await self._say(text.by, said, _mode(attributes.get("mode")), tag and tag[:64])
            except InputRefusedError as why:
                self._refused(text.by, why)


async def _read(reader: rtc.TextStreamReader) -> str:
    parts: list[str] = []
    try:
        async with asyncio.timeout(READ_S):
            async for part in reader:
                parts.append(part)
                if sum(map(len, parts)) > TEXT_CHARS:
                    message = f"a text has at most {TEXT_CHARS} characters"
                    raise InputRefusedError("too_long", message, field="text")
    except TimeoutError:
        raise InputRefusedError("timed_out", "the text did not end in time", field="text") from None
    except rtc.StreamError as error:
        raise InputRefusedError(
            "broken_off", f"the text broke off: {error}", field="text"
        ) from None
    finally:
        _close(reader)
    return "".join(parts)


def _mode(said: str | None) -> Mode:
    match said:
        case None | "replace":
            return "replace"
        case "append" | "turn":
            return said
    raise InputRefusedError("out_of_range", "mode is replace, append or turn", field="mode")


def _close(reader: rtc.TextStreamReader) -> None:
    with suppress(AttributeError):  # older SDKs have nothing to close
        reader.close()
