"""Lines break, servers die, tabs are copied: the page says so and comes back."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from cut_line import CutLine
from player import Player
from playwright.async_api import Browser, Route
from server_process import ServerProcess
from stub_model import prompt_mark, session_mark

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

STORED = "JSON.parse(sessionStorage.getItem('reverie.session'))"


@pytest_asyncio.fixture(loop_scope="session")
async def line(server: ServerProcess) -> AsyncIterator[CutLine]:
    async with CutLine(server.port) as line:
        yield line


async def test_a_cut_line_is_told_and_the_same_world_goes_on(
    browser: Browser, line: CutLine
) -> None:
    player = await Player.at(await browser.new_page(), line.url)
    session = await player.session()
    before = await player.until(lambda stamp: stamp.chunk >= 2)
    line.cut()
    await player.until_status("away")
    await player.until_text("status-text", "trying again")
    await player.until_text("announcement", "The server cannot be reached")
    line.mend()
    await player.until_status("live")
    after = await player.until(lambda stamp: stamp.chunk > before.chunk)
    assert await player.session() == session
    assert after.session == before.session
    assert player.errors == []


async def test_a_key_that_is_held_while_the_line_breaks_is_let_go(
    browser: Browser, line: CutLine
) -> None:
    player = await Player.at(await browser.new_page(), line.url)
    await player.page.keyboard.down("d")
    held = await player.until(lambda stamp: stamp.acting == "right")
    line.cut()
    await player.until_status("away")
    line.mend()
    await player.until_status("live")
    after = await player.until(lambda stamp: stamp.chunk > held.chunk + 2)
    assert after.held == frozenset()


async def test_a_prompt_that_is_asked_for_without_a_line_is_sent_when_there_is_one(
    browser: Browser, line: CutLine
) -> None:
    player = await Player.at(await browser.new_page(), line.url)
    line.cut()
    await player.until_status("away")
    await player.ask("a bog")
    line.mend()
    await player.until_prompt("a bog")


async def test_a_killed_server_is_told_and_played_again_once_it_is_back(
    browser: Browser, fragile_server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), fragile_server.url)
    await player.ask("a bog")
    await player.until_prompt("a bog")
    await asyncio.to_thread(fragile_server.kill)
    await player.until_status("away")
    assert await player.page.get_by_role("button", name="Try now").is_visible()
    await player.until_text("overlay-detail", "will try to continue")
    await asyncio.to_thread(fragile_server.start)
    await player.until_text("notice", "The old world is lost; a new one begins")
    await player.until_text("announcement", "The old world is lost; a new one begins")
    assert "new world" in await player.until_status("live")
    stamp = await player.until_moving()
    assert await player.page.locator("[data-part=notice]").is_visible()
    assert stamp.prompt == prompt_mark("a bog"), "the new world has the old one's prompt"
    assert player.errors == []


async def test_a_page_that_is_reloaded_after_a_restart_begins_a_world_like_the_lost_one(
    browser: Browser, fragile_server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), fragile_server.url)
    await player.ask("a bog")
    await player.until_prompt("a bog")
    await player.page.wait_for_function(f"{STORED}.opening?.prompt === 'a bog'")
    await player.page.goto("about:blank")  # which keeps the tab's storage, and tries nothing
    await asyncio.to_thread(fragile_server.kill)
    await asyncio.to_thread(fragile_server.start)
    await player.page.goto(f"{fragile_server.url}?transport=websocket")
    await player.until_text("notice", "The old world is lost")
    await player.until_prompt("a bog")


async def test_a_server_without_hope_is_not_asked_again_and_again(
    browser: Browser, server: ServerProcess
) -> None:
    page, asked = await browser.new_page(), 0

    async def refuse(route: Route) -> None:
        nonlocal asked
        asked += 1
        error = {"code": "model_unavailable", "message": "the model was given up"}
        await route.fulfill(status=503, json={"error": error})

    await page.route("**/v1/sessions", refuse)
    await page.clock.install()
    await page.goto(server.url)
    player = Player(page)
    await player.until_text("overlay-title", "The model was given up")
    await page.clock.run_for(60_000)
    assert asked == 1
    await page.unroute("**/v1/sessions")
    await page.get_by_role("button", name="Try again").click()
    await page.clock.run_for(1000)
    await player.until_moving()


async def test_a_reloaded_page_has_its_world_again(browser: Browser, server: ServerProcess) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    session = await player.session()
    await player.page.reload()
    await player.until_moving()
    assert await player.session() == session


async def test_a_paused_world_is_seen_again_after_a_reload(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_moving()
    await player.press("pause")
    await player.until_status("paused")
    await player.page.reload()
    await player.until_status("paused")
    before = await player.until(lambda stamp: True)
    await player.press("resume")
    await player.until(lambda stamp: stamp.chunk > before.chunk)


async def test_a_copied_tab_gets_a_world_of_its_own_and_the_first_goes_on(
    browser: Browser, server: ServerProcess
) -> None:
    context = await browser.new_context()
    first = await Player.at(await context.new_page(), server.url)
    async with context.expect_page() as opening:
        await first.page.evaluate("void open(location.href)")  # takes its storage along
    second = Player(await opening.value)
    await second.until_moving()
    assert await first.session() != await second.session()
    await first.until_moving()


async def test_two_players_never_see_each_others_world(
    browser: Browser, server: ServerProcess
) -> None:
    players = [await Player.at(await browser.new_page(), server.url) for _ in range(2)]
    for player, prompt in zip(players, ("red", "blue"), strict=True):
        await player.ask(prompt)
        await player.until_prompt(prompt)
    marks = [session_mark(await player.session()) for player in players]
    for player, mark, prompt in zip(players, marks, ("red", "blue"), strict=True):
        seen: set[tuple[int, int]] = set()
        while len(seen) < 10:
            stamp = await player.until(lambda stamp: True)
            assert (stamp.session, stamp.prompt) == (mark, prompt_mark(prompt))
            seen.add((stamp.chunk, stamp.frame))


@pytest.mark.parametrize("how", ["blur", "hide"])
async def test_held_keys_are_let_go_when_the_page_loses_them(
    browser: Browser, server: ServerProcess, how: str
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.page.keyboard.down("w")
    await player.until(lambda stamp: stamp.acting == "up")
    if how == "blur":
        await player.page.evaluate("void dispatchEvent(new Event('blur'))")
    else:
        await player.set_hidden(True)
        await player.set_hidden(False)
    free = await player.until(lambda stamp: stamp.acting is None)
    later = await player.until(lambda stamp: stamp.chunk > free.chunk + 1)
    assert later.held == frozenset()


async def test_a_hidden_page_holds_its_world_and_a_shown_one_goes_on(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_moving()
    await player.set_hidden(True)
    hidden = await player.until(lambda stamp: True)
    token = await player.page.evaluate(f"{STORED}.token")
    async with httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.get(
            f"v1/sessions/{await player.session()}", headers={"authorization": f"Bearer {token}"}
        )
    assert answer.status_code == 200, "the session is kept"
    assert await player.stamp() == hidden
    await player.set_hidden(False)
    await player.until(lambda stamp: stamp.chunk > hidden.chunk + 1)
    assert player.errors == []


async def test_a_session_that_was_ended_elsewhere_says_so_and_offers_a_new_one(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    token = await player.page.evaluate(f"{STORED}.token")
    async with httpx.AsyncClient(base_url=server.url) as client:
        await client.delete(
            f"v1/sessions/{await player.session()}", headers={"authorization": f"Bearer {token}"}
        )
    await player.until_text("overlay-title", "This world has ended")
    await player.page.get_by_role("button", name="Start a new world").click()
    await player.until_moving()


async def test_a_world_that_is_taken_over_can_be_taken_back(
    browser: Browser, server: ServerProcess
) -> None:
    first = await Player.at(await browser.new_page(), server.url)
    stored = await first.page.evaluate("sessionStorage.getItem('reverie.session')")
    other = await browser.new_page()  # shares no locks with the first
    await other.add_init_script(f"sessionStorage.setItem('reverie.session', {stored!r})")
    second = await Player.at(other, server.url)
    await first.until_text("overlay-title", "played in another window")
    await second.until_moving()
    await first.page.get_by_role("button", name="Take me back").click()
    await first.until_moving()
    await second.until_text("overlay-title", "played in another window")
