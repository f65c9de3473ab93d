"""The browser at the far end of a line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from reverie.bench.latency import CHROMIUM, clock_offset
from reverie.bench.line import EmulatedLine
from reverie.bench.over_line.near_end import NearEnd
from reverie.bench.over_line.rows import Row
from reverie.bench.over_line.turns import ViewerAnswer, ViewerTurn

if TYPE_CHECKING:
    from playwright.async_api import Page

Side = Literal["ours", "bare"]


class FarEndError(RuntimeError):
    """The browser could not watch."""


class FarEnd:
    """A browser that watches through the line. Made by `far_end`."""

    def __init__(self, page: "Page", near: NearEnd, offset: float) -> None:
        self._page, self._near, self._offset = page, near, offset

    async def turn(self, side: Side, row: Row, settle_s: float, seconds: float) -> ViewerTurn:
        """Watch one side for twice `seconds`, at first without keys, after `settle_s`.

        Raises:
            FarEndError: the server or the bare loop could not be reached.
        """
        from playwright.async_api import Error

        options = {
            "transport": row.transport,
            "model": row.toy.name,
            "bareUrl": self._near.bare_url,
            "offset": self._offset,
            "settle": settle_s,
            "seconds": seconds,
            "act": row.act,
        }
        watch = f"given => overLine.{side}(given)"
        try:
            found: ViewerAnswer = await self._page.evaluate(watch, options)
        except Error as error:
            raise FarEndError(f"{row.title} ({side}): {error.message}") from None
        return ViewerTurn.of(found, row.toy)


@asynccontextmanager
async def far_end(line: EmulatedLine, near: NearEnd) -> AsyncIterator[FarEnd]:
    """Run a browser at the far end of a line.

    Raises:
        ModuleNotFoundError: playwright, which drives the browser, is not installed.
    """
    from playwright.async_api import async_playwright

    with line.far.entered():
        playwright = await async_playwright().start()
    try:
        # Its decoder of video is for secure pages only, which one at a plain address is not.
        trusted = f"--unsafely-treat-insecure-origin-as-secure={near.url}"
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[trusted])
        page = await browser.new_page(bypass_csp=True)
        await page.goto(f"{near.url}/healthz")
        for package, script, kind in (
            ("reverie.bench", "readback.js", ""),
            ("reverie.bench.over_line", "viewer.js", "module"),
        ):
            content = files(package).joinpath(script).read_text(encoding="utf-8")
            await page.add_script_tag(content=content, type=kind)
        await page.wait_for_function("globalThis.overLine !== undefined")
        yield FarEnd(page, near, await clock_offset(page))
        await browser.close()
    finally:
        await playwright.stop()
