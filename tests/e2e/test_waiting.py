"""The page at a server that takes no session yet: it waits, says why, and is refused nothing."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import odd_models
import pytest
from player import Player
from playwright.async_api import Browser, Request
from server_process import ServerProcess
from stub_model import LOCATION

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

ASKED_AGAIN = 3
"""So many times the page asks for the status in a test before the server takes a session."""
OPENINGS_PER_MIN = 20
KEEP_WHAT_IS_SAID = """
  globalThis.said = [];
  document.addEventListener("DOMContentLoaded", () => {
    const line = document.querySelector("[data-part=status-text]");
    const note = () => said.push(line.textContent);
    note();
    const all = { childList: true, characterData: true, subtree: true };
    new MutationObserver(note).observe(line, all);
  });
"""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file without which `GatedLoad` does not load."""
    gate = tmp_path / "gate"
    monkeypatch.setenv(odd_models.GATE_VARIABLE, str(gate))
    # The server loads `odd_models` by its path, and that imports its neighbours by name.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entry for entry in sys.path if entry))
    return gate


@pytest.fixture
def loading_server(tmp_path: Path, gate: Path) -> Iterator[ServerProcess]:
    """A server that answers, one of whose models waits for the gate."""
    models = [
        {"name": "stub", "family": LOCATION, "sessions": 2, "threads": 1},
        {"name": "gated", "family": odd_models.place("GatedLoad"), "sessions": 2, "threads": 1},
    ]
    process = ServerProcess(tmp_path, {"pool": {"models": models}})
    process.begin()
    yield process
    process.kill()


@pytest.fixture
def small_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with one place, no waiting line and few openings a minute."""
    deployment: dict[str, object] = {
        "pool": {
            "models": [{"name": "stub", "family": LOCATION, "sessions": 1, "threads": 1}],
            "waiting_line": 0,
        },
        "server": {"openings_per_min": OPENINGS_PER_MIN},
    }
    process = ServerProcess(tmp_path, deployment)
    process.start()
    yield process
    process.kill()


async def until_asked_again(player: Player) -> None:
    """Wait until the page has asked for the status a few times more."""
    asked = 0
    enough = asyncio.Event()

    def count(request: Request) -> None:
        nonlocal asked
        asked += "/v1/status" in request.url
        if asked >= ASKED_AGAIN:
            enough.set()

    player.page.on("request", count)
    async with asyncio.timeout(30):
        await enough.wait()


async def test_a_page_that_is_opened_while_models_load_says_so_until_they_are_ready(
    browser: Browser, loading_server: ServerProcess, gate: Path
) -> None:
    player = Player(await browser.new_page())
    await player.page.add_init_script(KEEP_WHAT_IS_SAID)
    await player.page.goto(f"{loading_server.url}?transport=websocket&model=gated")
    await player.until_text("overlay-title", "Loading the model")
    await player.until_text("overlay-detail", "1 of 2 models are ready.")
    await until_asked_again(player)
    assert await player.page.evaluate("said") == ["Connecting", "Loading the model"]
    await asyncio.to_thread(gate.touch)
    await player.until_moving()
    assert player.console_errors == []
    assert player.errors == []


async def test_a_page_at_a_full_server_waits_for_a_place_and_is_refused_nothing(
    browser: Browser, small_server: ServerProcess
) -> None:
    async with httpx.AsyncClient(base_url=small_server.url) as http:
        first = (await http.post("v1/sessions", json={})).json()
        player = Player(await browser.new_page())
        await player.page.add_init_script(KEEP_WHAT_IS_SAID)
        await player.page.goto(f"{small_server.url}?transport=websocket")
        await player.until_text("overlay-title", "Waiting for the server")
        await until_asked_again(player)
        assert await player.page.evaluate("said") == ["Connecting", "Waiting for the server"]
        bearer = {"authorization": f"Bearer {first['token']}"}
        await http.delete(f"v1/sessions/{first['id']}", headers=bearer)
    await player.until_moving()
    await player.page.click("[data-part=fork]")
    await player.until_text("error-text", "The world could not be forked")
    assert player.console_errors == []


async def test_a_page_behind_an_address_that_has_opened_much_waits_and_is_refused_nothing(
    browser: Browser, small_server: ServerProcess
) -> None:
    async with httpx.AsyncClient(base_url=small_server.url) as http:
        codes = set()
        while 429 not in codes:
            answer = await http.post("v1/sessions", json={})
            codes.add(answer.status_code)
            if answer.status_code == 201:
                bearer = {"authorization": f"Bearer {answer.json()['token']}"}
                await http.delete(f"v1/sessions/{answer.json()['id']}", headers=bearer)
    player = Player(await browser.new_page())
    await player.page.goto(f"{small_server.url}?transport=websocket")
    await player.until_text("overlay-title", "Waiting for the server")
    await player.until_moving()
    assert player.console_errors == []
