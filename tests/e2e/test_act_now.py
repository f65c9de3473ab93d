"""Keys act at once: what the page tells the server with them, and what a person sees."""

import json
from typing import Any

import pytest
from island import Island
from player import Player
from playwright.async_api import Page, WebSocket

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]


class Sent:
    """The commands that a page has sent over its WebSocket, oldest first."""

    def __init__(self, page: Page) -> None:
        self.commands: list[dict[str, Any]] = []
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", self._on_sent)

    def _on_sent(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            self.commands.append(json.loads(frame))

    def of(self, type: str) -> list[dict[str, Any]]:
        return [command for command in self.commands if command["type"] == type]


async def test_a_key_acts_now_behind_the_newest_playhead(here: Island) -> None:
    page = await here.page()
    sent = Sent(page)
    player = await Player.at(page, f"{here.server.url}?model=stub")
    await player.until_moving()
    await page.locator("[data-part=picture]").focus()
    await page.keyboard.down("ArrowLeft")
    held = await player.until(lambda stamp: "left" in stamp.held)
    await page.keyboard.up("ArrowLeft")
    await player.until(lambda stamp: stamp.chunk > held.chunk and "left" not in stamp.held)
    assert {command["act"] for command in sent.of("push_action")} == {"now"}
    for at, command in enumerate(sent.commands):
        if command["type"] == "push_action":
            before = sent.commands[at - 1]
            assert before["type"] == "playhead", "the server is told what was seen before"
            assert "waited_us" not in before, "that was told already"
    reports = [command for command in sent.of("playhead") if "waited_us" in command]
    assert reports, "how long pictures wait is told"
    assert all(0 <= command["waited_us"] < 60e6 for command in reports)
    assert await page.locator("[data-part=error]").is_hidden()
    assert player.errors == []


async def test_over_webrtc_pictures_say_how_long_they_waited(here: Island) -> None:
    page = await here.page()
    await page.add_init_script(
        """globalThis.reports = [];
        const send = RTCDataChannel.prototype.send;
        RTCDataChannel.prototype.send = function (data) {
          if (typeof data === "string") reports.push(JSON.parse(data));
          return send.call(this, data);
        };"""
    )
    player = Player(page)
    await page.goto(f"{here.server.url}?model=stub&transport=webrtc")
    await player.until_moving()
    await page.wait_for_function(
        "() => reports.filter(({ type, waited_us }) => type === 'playhead' && waited_us >= 0)"
        ".length > 2"
    )
    assert await page.locator("[data-part=error]").is_hidden()
    assert player.errors == []
