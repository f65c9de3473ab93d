"""The page on a phone, by keyboard alone, with a screen reader, and without motion."""

import re

import pytest
from player import Player
from playwright.async_api import Browser, Page
from server_process import ServerProcess

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

PHONE = {"width": 360, "height": 740}


@pytest.mark.parametrize("width", [320, 360, 860, 861, 1280])
async def test_nothing_is_wider_than_the_page(
    browser: Browser, server: ServerProcess, width: int
) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 740})
    await Player.at(page, server.url)
    assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_a_phone_on_its_side_shows_the_prompt_beside_the_picture(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page(viewport={"width": 640, "height": 360})
    await Player.at(page, server.url)
    for part in ("picture", "prompt"):
        box = await page.locator(f"[data-part={part}]").bounding_box()
        assert box is not None
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= 360, part
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_long_prompt_takes_a_few_lines_and_one_too_long_cannot_be_typed(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    player = await Player.at(page, server.url)
    assert await page.locator("#prompt").get_attribute("maxlength") == "2000"
    await player.ask_at_any_length("bog " * 740)
    await player.until_text("now", "Refused: bog")
    await player.until_text("announcement", "Refused: bog")
    now = page.locator("[data-part=now]")
    box = await now.bounding_box()
    assert box is not None
    assert box["height"] < 80
    assert (await now.get_attribute("title") or "").count("bog") == 740


async def test_a_phone_walks_with_buttons(browser: Browser, server: ServerProcess) -> None:
    context = await browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
    player = await Player.at(await context.new_page(), server.url)
    button = player.page.get_by_role("button", name="Walk left")
    box = await button.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44, "a finger is wide"
    assert box["y"] + box["height"] <= PHONE["height"], "it is in reach without scrolling"
    await button.dispatch_event("pointerdown", {"pointerId": 1, "button": 0, "isPrimary": True})
    await player.until(lambda stamp: stamp.acting == "left")
    await button.dispatch_event("pointerup", {"pointerId": 1, "button": 0, "isPrimary": True})
    await player.until(lambda stamp: stamp.acting is None)


async def test_walking_buttons_stay_away_from_a_wide_page_with_a_mouse(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    assert await player.page.get_by_role("button", name="Walk left").is_hidden()


async def test_tab_reaches_every_control_and_each_shows_its_focus(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    await Player.at(page, server.url)
    everything = await page.evaluate(
        """[...document.querySelectorAll("a, button, input, select, summary")]
             .filter((one) => one.checkVisibility()).length"""
    )
    names = []
    for _ in range(everything):
        await page.keyboard.press("Tab")
        names.append(await focus_name(page))
    assert len(set(names)) == everything, names
    assert names[0] == "Skip to the prompt"


async def test_a_focused_walking_button_walks_while_space_is_down(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    player = await Player.at(page, server.url)
    await page.get_by_role("button", name="Walk down").focus()
    await page.keyboard.down("Space")
    await player.until(lambda stamp: stamp.acting == "down")
    await page.keyboard.up("Space")
    await player.until(lambda stamp: stamp.acting is None)


async def test_a_screen_reader_finds_names_for_everything(
    browser: Browser, server: ServerProcess
) -> None:
    player = await Player.at(await browser.new_page(), server.url)
    await player.until_status("live")
    tree = await player.page.locator("body").aria_snapshot()
    for line in (
        'img "The generated world',
        'textbox "What should the world become?"',
        'button "Change the world"',
        'button "Pause"',
        'button "Interrupt"',
        'heading "How it runs"',
        "status",
    ):
        assert line in tree, f"{line} is missing in\n{tree}"
    assert not re.search(r"- (button|img|textbox|link|combobox)$", tree, re.MULTILINE), tree


async def test_nothing_moves_but_the_picture_for_those_who_ask(
    browser: Browser, server: ServerProcess
) -> None:
    page = await browser.new_page(reduced_motion="reduce")
    player = await Player.at(page, server.url)
    await player.until_moving()
    assert await page.evaluate("document.getAnimations().length") == 0


async def focus_name(page: Page) -> str:
    """Return the name of what has the focus, which must be seen to have it."""
    found: dict[str, str] = await page.evaluate(
        """() => {
          const one = document.activeElement;
          const ring = one.id === "prompt" ? one.parentElement : one;
          const style = getComputedStyle(ring);
          const name = one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent
            ?? one.textContent;
          return { name: name.trim(), ring: style.outlineStyle + " " + style.boxShadow };
        }"""
    )
    assert found["ring"] != "none none", f"{found['name']} shows no focus"
    return found["name"]
