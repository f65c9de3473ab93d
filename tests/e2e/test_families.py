"""Families beside each other on one server: a tiny Wan, a tiny language model, and pocket."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from player import Player
from playwright.async_api import Browser
from server_process import ServerProcess

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = [
        {"name": "pocket"},
        {"name": "wan", "checkpoint": "random"},
        {"name": "causal_lm", "checkpoint": "random"},
    ]
    process = ServerProcess(tmp_path_factory.mktemp("families"), {"pool": {"models": models}})
    process.start()
    yield process
    process.stop()


async def opened(browser: Browser, server: ServerProcess, model: str) -> Player:
    player = Player(await browser.new_page())
    await player.page.goto(f"{server.url}?model={model}")
    await player.until_status("live")
    return player


async def test_a_tiny_wan_plays_beside_pocket(
    browser: Browser, families: ServerProcess, tmp_path: Path
) -> None:
    wan = await opened(browser, families, "wan")
    await wan.until_changed(await wan.picture())
    await wan.ask("a lake at night")
    await wan.until_changed(await wan.picture())
    Image.new("RGB", (160, 120), (250, 90, 160)).save(tmp_path / "photograph.png")
    await wan.page.set_input_files("[data-part=file]", tmp_path / "photograph.png")
    await wan.until_changed(await wan.picture())
    assert await wan.page.locator("[data-part=error]").is_hidden()
    pocket = await opened(browser, families, "pocket")
    await pocket.until_changed(await pocket.picture())
    await wan.until_changed(await wan.picture())
    assert wan.errors == pocket.errors == []


async def test_a_language_model_answers_in_the_page(
    browser: Browser, families: ServerProcess
) -> None:
    player = await opened(browser, families, "causal_lm")
    await player.ask_it("hello")
    lines = player.page.locator("[data-part=lines]")
    await lines.get_by_text("hello").wait_for()
    await player.page.wait_for_function(
        "() => document.querySelector('[data-part=lines]').innerText.length > 40"
    )
    assert player.errors == []
