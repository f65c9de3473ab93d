"""Take the picture of the page that the README shows.

Play for a while against a server that runs, then write docs/page.png:

    reverie serve &
    python docs/page.py http://127.0.0.1:8000
"""

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Page, async_playwright

SIZE = {"width": 1280, "height": 800}
WALK = (("ArrowDown", 900), ("ArrowRight", 1200))
PROMPT = "a candy land in the morning"
QUESTION = "Where is the water?"


async def play(page: Page) -> None:
    """Say what the world should become, walk about in it, and ask about it."""
    await page.fill("#prompt", PROMPT)
    await page.keyboard.press("Enter")
    await page.locator("[data-part=picture]").click()
    for key, wait_ms in WALK:
        await page.keyboard.down(key)
        await page.wait_for_timeout(wait_ms)
        await page.keyboard.up(key)
    await page.fill("#question", QUESTION)
    await page.keyboard.press("Enter")
    await page.locator("[data-part=lines] .question + .said").wait_for()
    await page.wait_for_timeout(2000)


async def main(url: str) -> None:
    """Open the page at `url` and write the picture beside this file."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = await browser.new_page(viewport=SIZE)
        await page.goto(f"{url}?program=narrated_world")
        await page.wait_for_timeout(5000)
        await play(page)
        await page.screenshot(path=Path(__file__).with_name("page.png"))
        await browser.close()


asyncio.run(main(sys.argv[1]))
