"""Families beside each other on one server: Wan, a language model and a game, tiny, and pocket."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from player import LIMIT_S, LOOK_EVERY_S, Player
from playwright.async_api import Browser, WebSocket
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
        {"name": "diamond", "checkpoint": "random"},
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
    assert "world" not in await player.page.locator(".side").inner_text(), "there is none"
    assert player.errors == []


class Wire:
    """What a page pressed and moved over its WebSocket, and what acted of it."""

    def __init__(self, player: Player) -> None:
        self.sent: list[dict[str, str | float]] = []
        self.ids: set[str] = set()
        self.applied: set[str] = set()
        player.page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", self._on_sent)
        socket.on("framereceived", self._on_received)

    def _on_sent(self, frame: str | bytes) -> None:
        message = json.loads(frame) if isinstance(frame, str) else {}
        if message.get("type") == "push_action":
            self.ids.add(message["id"])
            self.sent.append({"edge": message.get("edge", ""), **message["action"]})

    def _on_received(self, frame: str | bytes) -> None:
        message = json.loads(frame) if isinstance(frame, str) else {}
        if message.get("type") == "control.applied":
            self.applied.add(message["control"])

    def moved(self, axis: str) -> float:
        """Return how far the page has moved an axis."""
        return sum(float(action.get(axis, 0)) for action in self.sent)

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait until it has been as wanted."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while not wanted():
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            raise AssertionError(f"sent {self.sent}, {len(self.applied)} applied") from None

    async def until_pressed(self, key: str, edge: str) -> None:
        """Wait until a key of the game has been pressed or let go of."""
        await self.until(lambda: {"edge": edge, "play": key} in self.sent)


async def test_a_game_is_played_with_keys_that_are_no_directions_and_with_the_mouse(
    browser: Browser, families: ServerProcess
) -> None:
    player = Player(await browser.new_page())
    wire = Wire(player)
    page = player.page
    await page.goto(f"{families.url}?model=diamond&transport=websocket")
    await player.until_status("live")
    await player.until_changed(await player.picture())
    for key, name in (("w", "w"), ("c", "ctrl"), ("1", "1"), ("Shift", "shift")):
        await page.keyboard.down(key)
        await wire.until_pressed(name, "press")
        await page.keyboard.up(key)
        await wire.until_pressed(name, "release")
    button = page.get_by_role("button", name="Space", exact=True)
    await button.focus()
    await page.keyboard.down("Enter")
    await wire.until_pressed("space", "press")
    await page.keyboard.up("Enter")
    await wire.until_pressed("space", "release")
    await page.get_by_role("button", name="Mouse y more").press("Enter")
    await wire.until(lambda: wire.moved("mouse_y") > 0)
    picture = page.locator("[data-part=picture]")
    await picture.click()
    await wire.until_pressed("left_click", "release")
    await picture.click(button="right")
    await wire.until_pressed("right_click", "release")
    await picture.hover()
    await page.mouse.down()
    box = await picture.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2, steps=5)
    await wire.until(lambda: wire.moved("mouse_x") > 0)
    await page.mouse.up()
    await wire.until(lambda: wire.ids <= wire.applied)
    assert await page.locator("[data-part=error]").is_hidden()
    assert await page.locator("[data-part=hint-write]").is_hidden(), "it takes no prompt"
    assert player.errors == []
