"""What the panel says of the line to the server, and what it costs the page."""

import pytest
from island import Island
from player import Player

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

SHARED = ("round-trip", "jitter", "waiting", "bitrate", "unseen", "queued")
OF_TRANSPORT = {"webrtc": (*SHARED, "loss"), "websocket": SHARED}


@pytest.mark.parametrize("transport", ["webrtc", "websocket"])
async def test_the_panel_tells_what_the_line_does(here: Island, transport: str) -> None:
    player = Player(await here.page())
    page = player.page
    await page.goto(f"{here.server.url}?model=stub&transport={transport}")
    await player.until_transport(transport)
    await player.until_moving()
    await page.locator("[data-part=picture]").focus()
    await page.keyboard.press("ArrowUp")  # a command, whose answer is a round trip
    shown = {name: await player.metric(name) for name in OF_TRANSPORT[transport]}
    assert 0 <= shown["round-trip"] < 5000, shown
    assert shown["bitrate"] > 0, shown
    assert shown.get("loss", 0) <= 100, shown
    if transport == "websocket":
        lost = await page.locator("[data-metric=loss]").get_attribute("data-value")
        assert not lost, "TCP does not tell"
    for series in ("fps", "leadMs", "roundTripMs"):
        await page.locator(f"[data-series={series}][d^=M]").wait_for(state="attached")
    assert player.errors == []
