"""Browsers that keep nothing, and pages that came over plain http: both play."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from chromium import CHROMIUM
from player import Player
from playwright.async_api import Browser, async_playwright
from server_process import ServerProcess
from stub_model import LOCATION

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

NAME = "reverie.test"
KEEPS_NOTHING = """
  for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(globalThis, name, {
      get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
    });
  }
"""


@pytest_asyncio.fixture(loop_scope="session")
async def plain(tmp_path: Path) -> AsyncIterator[tuple[Browser, str]]:
    """A browser, and an address of a server with four places that it does not trust."""
    deployment: dict[str, object] = {
        "pool": {"models": [{"name": "stub", "family": LOCATION, "sessions": 4, "threads": 1}]},
        "server": {"allowed_hosts": [NAME]},
    }
    server = ServerProcess(tmp_path, deployment)
    server.start()
    rule = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", rule]
        )
        yield browser, f"http://{NAME}:{server.port}/"
        await browser.close()
    server.kill()


async def test_a_browser_that_keeps_nothing_plays_and_is_told_so(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page()
    await page.add_init_script(KEEPS_NOTHING)
    player = await Player.at(page, server.url)
    await player.until_moving()
    await player.until_text("limits", "a reload begins a new world")
    await player.choose_transport("websocket")
    await player.until_moving()
    assert player.errors == []


async def test_over_plain_http_a_reload_comes_back_to_its_world(
    plain: tuple[Browser, str],
) -> None:
    browser, url = plain
    player = await Player.at(await browser.new_page(), url)
    assert await player.page.evaluate("isSecureContext") is False
    session = await player.session()
    for _ in range(4):
        await player.page.reload()
        await player.until_moving()
        assert await player.session() == session
    assert player.errors == []
