"""A newcomer opens the page and plays."""

import time

import pytest
from player import Player
from playwright.async_api import Browser
from server_process import ServerProcess
from stub_model import prompt_mark

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]


async def test_pictures_move_within_ten_seconds_of_opening(
    browser: Browser, server: ServerProcess
) -> None:
    opened = time.monotonic()
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_moving()
    assert time.monotonic() - opened < 10
    assert await player.until_status("live") == "Live"
    assert await player.metric("fps") > 0
    assert player.errors == []


@pytest.mark.parametrize(("key", "direction"), [("ArrowRight", "right"), ("w", "up")])
async def test_a_held_key_acts_until_it_is_let_go_and_its_time_to_picture_is_shown(
    browser: Browser, server: ServerProcess, key: str, direction: str
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.page.keyboard.down(key)
    first = await player.until(lambda stamp: stamp.acting == direction)
    await player.until(lambda stamp: stamp.chunk > first.chunk and stamp.acting == direction)
    await player.page.keyboard.up(key)
    await player.until(lambda stamp: stamp.acting is None)
    assert 0 < await player.metric("latency") < 5000


async def test_a_prompt_changes_the_world_and_unknown_words_are_told(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.ask("a blargzebra at night")
    await player.until_prompt("a blargzebra at night")
    await player.until_text("now", "I do not know: blargzebra")
    await player.until_text("announcement", "I do not know: blargzebra")


async def test_a_fork_is_a_second_future_in_a_tab_of_its_own(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.ask("a lake")
    before = await player.until_prompt("a lake")
    async with player.page.expect_popup() as opening:
        await player.page.get_by_role("button", name="Fork").click()
    other = Player(await opening.value)
    after = await other.until_prompt("a lake")
    assert (after.session, after.seed) == (before.session, before.seed)
    assert after.chunk >= before.chunk
    await other.ask("a desert")
    await other.until_prompt("a desert")
    await player.page.bring_to_front()
    assert (await player.until_moving()).prompt == prompt_mark("a lake")
    await other.page.reload()
    await other.until_prompt("a desert")
    assert player.errors == other.errors == []


async def test_examples_are_not_offered_for_a_model_that_does_not_know_them(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_status("live")
    assert await player.page.locator("[data-part=ask]").is_visible()
    assert await player.page.locator("[data-part=chips]").is_hidden()


async def test_after_sending_a_prompt_keys_walk_again(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.page.keyboard.press("/")
    await player.page.keyboard.type("swamps")
    await player.page.keyboard.press("Enter")
    typed = await player.until_prompt("swamps")
    assert typed.presses == 0, "typing has walked"
    await player.page.keyboard.down("s")
    await player.until(lambda stamp: stamp.acting == "down")


async def test_pause_step_and_resume(browser: Browser, server: ServerProcess) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_moving()
    await player.press("pause")
    await player.until_status("paused")
    still = await player.until_still()
    await player.press("step")
    await player.until(lambda stamp: stamp.chunk == still + 1)
    assert await player.until_still() == still + 1, "one step is one chunk"
    await player.press("resume")
    await player.until_status("live")
    await player.until(lambda stamp: stamp.chunk > still + 2)


async def test_a_prompt_typed_while_paused_shows_in_the_first_picture_after_it(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.press("pause")
    await player.until_status("paused")
    still = await player.until_still()
    await player.ask("a bog")
    await player.press("resume")
    stamp = await player.until(lambda stamp: stamp.chunk == still + 1)
    assert stamp.prompt == prompt_mark("a bog")


async def test_reset_begins_again_and_keeps_the_prompt(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.ask("a bog")
    before = await player.until(
        lambda stamp: stamp.chunk >= 4 and stamp.prompt == prompt_mark("a bog")
    )
    await player.press("reset")
    after = await player.until(lambda stamp: stamp.chunk < before.chunk)
    assert after.prompt == prompt_mark("a bog")
    await player.until_moving()


async def test_interrupt_goes_on_from_what_was_seen(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    before = await player.until(lambda stamp: stamp.chunk >= 2)
    for _ in range(3):
        await player.press("interrupt")
    await player.until(lambda stamp: stamp.chunk > before.chunk)
    await player.until_status("live")
    assert await player.page.locator("[data-part=error]").is_hidden()
    assert player.errors == []


@pytest.mark.parametrize("without", ["?codec=jpeg", "no decoder"])
async def test_jpeg_is_shown_where_the_browser_has_no_decoder_for_video(
    browser: Browser, server: ServerProcess, without: str
) -> None:
    page = await browser.new_page()
    query = without
    if without == "no decoder":
        await page.add_init_script("delete globalThis.VideoDecoder")
        query = ""
    player = await Player.at(page, server.url + query)
    await player.until_moving()
    assert await page.locator("[data-part=fine]").get_attribute("data-codec") == "jpeg"
    await page.keyboard.down("a")
    await player.until(lambda stamp: stamp.acting == "left")


async def test_video_is_h264_where_the_browser_decodes_it(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    codec = await player.page.locator("[data-part=fine]").get_attribute("data-codec") or ""
    assert codec.startswith("avc1.")


async def test_another_model_is_chosen_from_the_list(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url + "?model=stub")
    before = await player.session()
    choice = player.page.get_by_label("Model")
    assert await choice.input_value() == "stub"
    await choice.select_option("other")
    await player.page.wait_for_function("id => document.body.dataset.session !== id", arg=before)
    await player.until_moving()
    assert await choice.input_value() == "other"


async def test_an_error_has_one_place_and_can_be_put_away(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.ask_at_any_length("x" * 5000)
    alert = player.page.get_by_role("alert")
    await alert.wait_for()
    assert "2000" in await alert.inner_text(), "an error names the limit"
    await player.page.get_by_label("Dismiss the message").click()
    await alert.wait_for(state="hidden")
    await player.until_moving()
