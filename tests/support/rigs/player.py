"""What a person does with the page, and sees on it; stamps are the stub model's."""

import asyncio
import base64
import io
import time
from collections.abc import Callable
from typing import Self

import numpy as np
from PIL import Image
from playwright.async_api import ConsoleMessage, Page
from playwright.async_api import TimeoutError as PlaywrightTimeoutError
from stub_model import Stamp, prompt_mark, read_stamp

LIMIT_S = 40.0
LOOK_EVERY_S = 0.02
STILL_S = 0.7


class Player:
    """A person at a page. What its scripts complain of is kept in `errors`.

    `console_errors` holds what the browser's console shows in red, refused requests among it.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.console_errors: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(f"{message.text} ({message.location})")

    @classmethod
    async def at(cls, page: Page, url: str) -> Self:
        """Open `url` over WebSocket, which every machine can, and wait for a picture."""
        player = cls(page)
        await player.open(f"{url}{'&' if '?' in url else '?'}transport=websocket")
        return player

    async def open(self, url: str) -> None:
        """Open `url` as it is, and wait for a picture."""
        await self.page.goto(url)
        await self.until(lambda stamp: True)

    async def picture(self) -> bytes:
        """Return the picture on the page, as a PNG of its own size; waits for a page that loads."""
        data = await self.page.locator("[data-part=picture]").evaluate(
            "picture => picture.toDataURL('image/png')"
        )
        return base64.b64decode(data.partition(",")[2])

    async def stamp(self) -> Stamp | None:
        """Read the picture on the page; None when there is none yet."""
        with Image.open(io.BytesIO(await self.picture())) as image:
            try:
                return read_stamp(np.asarray(image.convert("RGB")))
            except ValueError:
                return None

    async def until(self, wanted: Callable[[Stamp], bool], limit_s: float = LIMIT_S) -> Stamp:
        """Watch until a picture is as wanted, and return its stamp.

        Raises:
            AssertionError: none was; with what the page said.
        """
        stamp = None
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    stamp = await self.stamp()
                    if stamp is not None and wanted(stamp):
                        return stamp
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            raise AssertionError(f"the last picture was {stamp}; {await self._says()}") from None

    async def until_moving(self) -> Stamp:
        """Watch until another chunk was shown."""
        first = await self.until(lambda stamp: True)
        return await self.until(lambda stamp: stamp.chunk != first.chunk)

    async def until_still(self) -> int:
        """Watch until the picture has not changed for a chunk's time, and return its chunk."""
        chunk, since = -1, time.monotonic()
        while time.monotonic() - since < STILL_S:
            stamp = await self.until(lambda stamp: True)
            if stamp.chunk != chunk:
                chunk, since = stamp.chunk, time.monotonic()
            await asyncio.sleep(LOOK_EVERY_S)
        return chunk

    async def until_changed(self, before: bytes) -> None:
        """Watch until the picture is another one, whatever model makes it."""
        async with asyncio.timeout(LIMIT_S):
            while await self.picture() == before:
                await asyncio.sleep(LOOK_EVERY_S)

    async def until_prompt(self, prompt: str) -> Stamp:
        """Watch until the world follows a prompt."""
        return await self.until(lambda stamp: stamp.prompt == prompt_mark(prompt))

    async def until_status(self, tone: str) -> str:
        """Wait for the tone of the status line, and return what it says."""
        line = self.page.locator(f"[data-part=status][data-tone={tone}]")
        try:
            await line.wait_for(timeout=LIMIT_S * 1000)
        except PlaywrightTimeoutError:
            raise AssertionError(f"the status is not {tone}: {await self._says()}") from None
        return await line.inner_text()

    async def _says(self) -> str:
        """Return all that the page says, for the message of a test that failed."""
        return f"{self.errors} {await self.page.locator('body').inner_text()!r}"

    async def until_text(self, part: str, text: str) -> None:
        """Wait until a part of the page says `text`."""
        found = self.page.locator(f"[data-part={part}]", has_text=text)
        await found.wait_for(state="attached", timeout=LIMIT_S * 1000)

    async def metric(self, name: str) -> float:
        """Wait until the panel shows a number, and return it."""
        cell = self.page.locator(f"[data-metric={name}][data-value]:not([data-value=''])")
        await cell.wait_for(timeout=LIMIT_S * 1000)
        return float(await cell.get_attribute("data-value") or "nan")

    async def until_transport(self, name: str) -> None:
        """Wait until the world comes over a transport: `webrtc` or `websocket`."""
        found = self.page.locator(f"[data-part=fine][data-transport={name}]")
        try:
            await found.wait_for(timeout=LIMIT_S * 1000)
        except PlaywrightTimeoutError:
            raise AssertionError(f"not over {name}: {await self._says()}") from None

    async def transport(self) -> str:
        """Return over which transport the world comes."""
        return await self.page.locator("[data-part=fine]").get_attribute("data-transport") or ""

    async def choose_transport(self, name: str) -> None:
        """Ask for a transport: `auto`, `webrtc` or `websocket`."""
        await self.page.get_by_label("Transport").select_option(name)

    async def token(self) -> str:
        """Return the right to the session that the page keeps."""
        found: str = await self.page.evaluate(
            "JSON.parse(sessionStorage.getItem('reverie.session')).token"
        )
        return found

    async def session(self) -> str:
        """Return the id of the session on the page."""
        return await self.page.locator("body").get_attribute("data-session") or ""

    async def press(self, command: str) -> None:
        """Press one of the buttons under the picture."""
        await self.page.click(f"[data-command={command}]:not([aria-disabled=true])")

    async def ask(self, text: str) -> None:
        """Type a prompt and send it."""
        await self.page.fill("#prompt", text)
        await self.page.keyboard.press("Enter")

    async def ask_it(self, question: str) -> None:
        """Ask the model something."""
        await self.page.fill("#question", question)
        await self.page.keyboard.press("Enter")

    async def ask_at_any_length(self, text: str) -> None:
        """Send a prompt that the field would not let a person type."""
        await self.page.locator("#prompt").evaluate(
            """(field, text) => {
              field.value = text;
              field.form.requestSubmit();
            }""",
            text,
        )

    async def set_hidden(self, hidden: bool) -> None:
        """Hide the page, as another tab in front of it does, or bring it back."""
        await self.page.evaluate(
            """hidden => {
              Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            hidden,
        )
