"""The page over WebRTC, on a network of its own, and what it does when that breaks."""

import asyncio
import contextlib

import pytest
from island import Island, video_codec
from player import Player
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from stub_model import prompt_mark, session_mark

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]


async def play(here: Island, query: str = "") -> Player:
    player = Player(await here.page())
    await player.open(f"{here.server.url}?{query}")
    return player


@pytest.mark.parametrize("codec", ["vp8", "h264"])
async def test_a_world_plays_over_webrtc_in_both_codecs(here: Island, codec: str) -> None:
    player = await play(here, f"codec={codec}")
    await player.until_moving()
    assert (await video_codec(player.page)).lower() == codec
    assert await player.transport() == "webrtc"
    assert await player.metric("fps") > 0
    assert player.errors == []


async def test_keys_and_prompts_act_and_their_way_to_the_picture_is_measured(here: Island) -> None:
    player = await play(here)
    await player.page.keyboard.down("ArrowLeft")
    await player.until(lambda stamp: stamp.acting == "left")
    await player.page.keyboard.up("ArrowLeft")
    await player.until(lambda stamp: stamp.acting is None)
    assert 0 < await player.metric("latency") < 5000
    await player.ask("a blargzebra at night")
    await player.until_prompt("a blargzebra at night")
    await player.until_text("now", "I do not know: blargzebra")
    await player.press("interrupt")
    await player.press("pause")
    await player.until_status("paused")
    await player.press("resume")
    await player.until_status("live")
    await player.until_moving()
    assert await player.transport() == "webrtc"
    assert player.errors == []


async def test_when_the_network_is_cut_the_same_world_goes_on_over_websocket(here: Island) -> None:
    player = await play(here)
    session = await player.session()
    await player.ask("a bog")
    before = await player.until_prompt("a bog")
    here.network.cut()
    try:
        await player.until_transport("websocket")
        after = await player.until(lambda stamp: stamp.chunk > before.chunk)
        assert (after.session, after.prompt) == (session_mark(session), prompt_mark("a bog"))
        assert await player.session() == session
        await player.until_moving()
    finally:
        here.network.mend()
    await player.choose_transport("webrtc")
    await player.until_transport("webrtc")
    await player.until_moving()
    assert await player.session() == session


async def test_on_a_machine_without_addresses_the_world_begins_over_websocket(
    here: Island,
) -> None:
    here.network.cut()
    try:
        player = await play(here)
        await player.until_moving()
        assert await player.transport() == "websocket"
    finally:
        here.network.mend()


async def test_where_webrtc_finds_no_way_the_world_begins_over_websocket(here: Island) -> None:
    page = await here.page()
    await page.add_init_script(
        """
        const set = RTCPeerConnection.prototype.setRemoteDescription;
        RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
          return set.call(this, { type, sdp: sdp.replace(/a=candidate.*\\r\\n/g, "") });
        };
        """
    )
    await page.route("**/webrtc/*", lambda route: route.abort())  # else the server finds the page
    player = Player(page)
    await player.open(here.server.url)
    await player.until_moving()
    assert await player.transport() == "websocket"
    assert player.errors == []


async def test_a_person_chooses_the_transport_and_the_choice_outlives_a_reload(
    here: Island,
) -> None:
    player = await play(here)
    session = await player.session()
    await player.choose_transport("websocket")
    await player.until_transport("websocket")
    await player.until_moving()
    await player.page.goto(here.server.url)
    await player.until_transport("websocket")
    assert await player.session() == session
    await player.choose_transport("auto")
    await player.until_transport("webrtc")
    await player.until_moving()
    assert await player.session() == session


async def test_ice_is_restarted_and_the_same_peer_plays_on(here: Island) -> None:
    player = await play(here)
    await player.until_moving()
    ufrag = "peers.at(-1).currentRemoteDescription.sdp.match(/ice-ufrag:(\\S+)/)[1]"
    before = await player.page.evaluate(ufrag)
    await player.page.evaluate("peers.at(-1).restartIce()")
    await player.page.wait_for_function(f"before => {ufrag} !== before", arg=before)
    await player.until_moving()
    assert await player.page.evaluate("peers.length") == 1
    assert await player.transport() == "webrtc"
    assert player.errors == []


async def test_a_hidden_page_holds_its_world_and_a_shown_one_goes_on(here: Island) -> None:
    player = await play(here)
    await player.until_moving()
    await player.set_hidden(True)
    held = await player.until_still()
    await player.set_hidden(False)
    await player.until(lambda stamp: stamp.chunk > held)
    assert await player.transport() == "webrtc"
    assert player.errors == []


@pytest.mark.parametrize(("how", "reason"), [("closed", "peer"), ("crashed", "heartbeat")])
async def test_a_page_that_goes_is_noticed(here: Island, how: str, reason: str) -> None:
    player = await play(here)
    session, token = await player.session(), await player.token()
    watcher = Watcher(await here.page(), here)
    await watcher.page.goto(f"{here.server.url}healthz")
    assert await watcher.viewers(session, token) == 1
    before = await watcher.ended(reason)
    if how == "closed":
        await player.page.close()
    else:
        await crash(player.page)
    async with asyncio.timeout(20):
        while await watcher.viewers(session, token) > 0:
            await asyncio.sleep(0.05)
        while await watcher.ended(reason) == before:
            await asyncio.sleep(0.05)


async def crash(page: Page) -> None:
    """End a page's process: no script of it runs any more, and nothing says so."""
    devtools = await page.context.new_cdp_session(page)
    crashed = asyncio.get_running_loop().create_future()
    page.on("crash", lambda _: crashed.set_result(None))
    with contextlib.suppress(PlaywrightError):
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            crashing = tasks.create_task(devtools.send("Page.crash"))  # it never answers
            await crashed
            crashing.cancel()


class Watcher:
    """Asks the server how things are, from inside its network."""

    def __init__(self, page: Page, here: Island) -> None:
        self.page = page
        self._url = here.server.url

    async def viewers(self, session: str, token: str) -> int:
        """Return how many are attached to a session."""
        found: int = await self.page.evaluate(
            """async ([id, token]) => {
              const headers = { authorization: `Bearer ${token}` };
              const answer = await fetch(`/v1/sessions/${id}`, { headers });
              return (await answer.json()).view.viewers;
            }""",
            [session, token],
        )
        return found

    async def ended(self, reason: str) -> str:
        """Return what the server counts of peers that ended for a reason."""
        found: str = await self.page.evaluate(
            """async (reason) => {
              const text = await (await fetch("/metrics")).text();
              return text.split("\\n").find((line) => line.includes(`reason="${reason}"`)) ?? "";
            }""",
            reason,
        )
        return found
