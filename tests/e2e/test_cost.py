"""What the page spends on a picture, beside what the picture alone takes."""

from pathlib import Path
from typing import Any

import pytest
from player import Player
from playwright.async_api import Browser, CDPSession, Page
from server_process import ServerProcess

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="session"),
]

BARE = Path(__file__).parents[1] / "support" / "bare_page.html"
ROUNDS = 2
PICTURES = 48
WARM_UP = 24
MOST = 1.5
MOST_MAIN_MS = 5.0
"""Of the page's main thread, for each picture."""
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 3,
    "is_mobile": True,
    "has_touch": True,
}
COUNT_PICTURES = """
  globalThis.drawn = 0;
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (...given) {
    if (this.canvas.dataset.part === "picture") globalThis.drawn += 1;
    return draw.apply(this, given);
  };
"""


async def spent_s(browser: CDPSession) -> float:
    """Return the processor time that all processes of the browser have taken so far."""
    info = await browser.send("SystemInfo.getProcessInfo")
    return float(sum(process["cpuTime"] for process in info["processInfo"]))


async def until_drawn(page: Page, count: int) -> int:
    await page.wait_for_function("count => globalThis.drawn >= count", arg=count, timeout=60_000)
    drawn: int = await page.evaluate("globalThis.drawn")
    return drawn


async def cost_s(browser: CDPSession, page: Page) -> float:
    """Return the processor time of one picture, once the page has settled."""
    first = await until_drawn(page, WARM_UP)
    before_s = await spent_s(browser)
    last = await until_drawn(page, first + PICTURES)
    return (await spent_s(browser) - before_s) / (last - first)


async def main_thread_s(session: CDPSession) -> float:
    """Return the processor time that the page's main thread has taken so far."""
    told = await session.send("Performance.getMetrics")
    return next(float(each["value"]) for each in told["metrics"] if each["name"] == "TaskDuration")


async def new_page(browser: Browser, kind: dict[str, Any] = DESKTOP) -> Page:
    context = await browser.new_context(**kind)
    page = await context.new_page()
    await page.add_init_script(COUNT_PICTURES)
    return page


async def bare_at(page: Page, url: str, size: dict[str, float]) -> None:
    """Show the server's pictures in a canvas of this size, on a page that holds nothing else."""
    await page.goto(f"{url}healthz")  # an address of the server, without the page's own scripts
    await page.set_content(BARE.read_text())
    await page.locator("canvas").evaluate(
        "(canvas, {width, height}) => Object.assign(canvas.style,"
        " {width: `${width}px`, height: `${height}px`})",
        size,
    )


async def test_what_decorates_the_picture_costs_less_than_half_of_it(
    browser: Browser, server: ServerProcess
) -> None:
    session = await browser.new_browser_cdp_session()
    whole, bare = [], []
    for _ in range(ROUNDS):
        page = await new_page(browser)
        await Player.at(page, f"{server.url}?codec=h264")
        size = await page.locator("[data-part=picture]").bounding_box()
        assert size is not None
        whole.append(await cost_s(session, page))
        await page.context.close()
        page = await new_page(browser)
        await bare_at(page, server.url, {"width": size["width"], "height": size["height"]})
        bare.append(await cost_s(session, page))
        await page.context.close()
    told = f"{1e3 * min(whole):.1f} ms a picture, {1e3 * min(bare):.1f} ms on a bare page"
    assert min(whole) <= MOST * min(bare), told


@pytest.mark.parametrize("kind", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_picture_takes_little_of_the_main_thread(
    browser: Browser, server: ServerProcess, kind: dict[str, Any]
) -> None:
    page = await new_page(browser, kind)
    await Player.at(page, f"{server.url}?codec=h264")
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    first = await until_drawn(page, WARM_UP)
    before_s = await main_thread_s(session)
    last = await until_drawn(page, first + PICTURES)
    spent_ms = 1e3 * (await main_thread_s(session) - before_s) / (last - first)
    assert 0 < spent_ms <= MOST_MAIN_MS, f"{spent_ms:.2f} ms a picture"


async def test_nothing_on_the_page_moves_by_itself_while_it_plays_or_waits(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_moving()
    moving = "document.getAnimations().map(({effect}) => effect.target?.outerHTML ?? '?')"
    for show in (
        "document.body.dataset.shown = ''",
        "for (const each of document.querySelectorAll('[hidden]')) each.hidden = false",
        "document.querySelector('[data-part=microphone]').dataset.heard = 'true'",
        "document.querySelector('[data-part=status]').dataset.tone = 'away'",
    ):
        await player.page.evaluate(show)
        endless = await player.page.evaluate(
            "document.getAnimations().filter(({effect}) =>"
            " effect.getComputedTiming().endTime === Infinity).length"
        )
        assert endless == 0, await player.page.evaluate(moving)
