"""The embedded model, as a newcomer meets it: `reverie serve`, and the page."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from player import Player
from playwright.async_api import Browser
from server_process import ServerProcess

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.fixture(scope="module")
def pocket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("pocket")
    process = ServerProcess(folder, {})  # as it is without any file
    process.start()
    yield process
    process.stop()


async def test_a_newcomer_walks_and_changes_the_world(
    browser: Browser, pocket: ServerProcess
) -> None:
    player = Player(await browser.new_page())
    opened = time.monotonic()
    await player.page.goto(pocket.url)
    await player.until_status("live")
    await player.until_changed(await player.picture())
    assert time.monotonic() - opened < 10, "pictures move within ten seconds"
    await player.page.keyboard.down("d")
    assert 0 < await player.metric("latency") < 5000
    await player.page.keyboard.up("d")
    await player.ask("a zebra in a frozen lake land at night")
    await player.until_text("now", "I do not know: zebra")
    assert await player.metric("fps") > 0
    assert player.errors == []


async def test_an_example_is_one_press_away(browser: Browser, pocket: ServerProcess) -> None:
    player = Player(await browser.new_page())
    await player.page.goto(pocket.url)
    await player.page.get_by_role("button", name="a frozen lake land at night").click()
    await player.until_text("now", "a frozen lake land at night")
    assert await player.page.locator("[data-part=key-buttons]").is_hidden(), (
        "all its keys are directions"
    )
    assert player.errors == []
