"""What is seen where: nothing moves under a click, and a phone shows what is played with."""

import pytest
from island import Island
from player import Player
from playwright.async_api import Browser, ViewportSize
from server_process import ServerProcess

from reverie.models.pocket.spec import POCKET

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]


async def test_a_prompt_moves_none_of_the_examples(here: Island) -> None:
    player = Player(await here.page())
    await player.page.goto(f"{here.server.url}?model=pocket&transport=websocket")
    await player.until_status("live")
    chips = player.page.locator("[data-part=chips]")
    shown = await chips.get_by_role("button").all_inner_texts()
    assert shown == list(POCKET.loop("world_model").example_prompts)
    before = await chips.bounding_box()
    await player.ask("a blargzebra at night")
    await player.until_text("now", "I do not know: blargzebra")
    assert await chips.bounding_box() == before


async def test_an_example_is_sent_by_a_click(here: Island) -> None:
    player = Player(await here.page())
    await player.page.goto(f"{here.server.url}?model=pocket&transport=websocket")
    await player.until_status("live")
    chip = player.page.locator("[data-part=chips] button").last
    prompt = await chip.inner_text()
    await chip.click()
    await player.until_text("now", f"Now: {prompt}")
    assert player.errors == []


async def test_on_a_phone_on_its_side_picture_and_pad_are_seen_together(
    browser: Browser, server: ServerProcess
) -> None:
    size: ViewportSize = {"width": 844, "height": 390}
    context = await browser.new_context(viewport=size, has_touch=True, is_mobile=True)
    player = await Player.at(await context.new_page(), server.url)
    for part in ("[data-part=picture]", "[data-direction=up]", "[data-direction=down]"):
        box = await player.page.locator(part).bounding_box()
        assert box is not None, part
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= size["height"], part
        assert box["width"] >= 44, part


async def test_a_decoder_taken_back_while_hidden_is_no_failure(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page()
    await page.add_init_script(
        """globalThis.decoders = [];
        globalThis.VideoDecoder = class extends VideoDecoder {
          constructor(given) { super(given); decoders.push(given); }
        };"""
    )
    player = await Player.at(page, server.url)
    before = await player.until_moving()
    await player.set_hidden(True)
    for _ in range(4):
        await page.evaluate(
            "decoders.at(-1).error(new DOMException('reclaimed', 'QuotaExceededError'))"
        )
    await player.set_hidden(False)
    await player.until(lambda stamp: stamp.chunk > before.chunk + 1)
    codec = await page.locator("[data-part=fine]").get_attribute("data-codec") or ""
    assert codec.startswith("avc1.")
    assert await page.locator("[data-part=error]").is_hidden()
