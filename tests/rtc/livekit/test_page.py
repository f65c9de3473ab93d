"""The example's page, in a real browser: joins a room, shows its world and steers it."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from chromium import CHROMIUM
from livekit import rtc
from livekit_rig import LiveKit
from livekit_world import WORLD, World
from playwright.async_api import Locator, Page, ViewportSize, async_playwright, expect
from room_guest import LIMIT_S, Guest
from rtc_rig import ServerRig
from stub_model import SIZE, Stamp, prompt_mark, read_stamp
from waiting import until

from reverie.rtc import connect

PHONE: ViewportSize = {"width": 390, "height": 844}
PAGE = Path(__file__).parents[3] / "examples" / "livekit_world" / "page.py"

_PIXELS = """(size) => {
  const video = document.querySelector("video");
  if (!video.videoWidth) return null;
  const canvas = Object.assign(document.createElement("canvas"), { width: size, height: size });
  const context = canvas.getContext("2d");
  context.drawImage(video, 0, 0, size, size);
  return [...context.getImageData(0, 0, size, size).data];
}"""


@pytest.mark.browser
async def test_who_opens_the_page_sees_the_world_and_plays(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with (
        World.shown(livekit, connect(rig.url, prompt="a lake")) as world,
        world.guest("ben") as ben,
        opened(livekit) as page,
    ):
        await joined(page, world.room_name)
        await expect(page.locator("#status")).to_contain_text("a lake", timeout=LIMIT_S * 1000)
        await shows(page, lambda stamp: stamp.prompt == prompt_mark("a lake"), "the lake")

        await page.locator("#view").focus()
        await page.keyboard.down("ArrowLeft")
        await ben.sees(lambda stamp: stamp.held == {"left"}, "the page's key")
        await shows(page, lambda stamp: stamp.held == {"left"}, "its own key")
        await page.keyboard.up("ArrowLeft")
        await ben.sees(lambda stamp: not stamp.held, "its release", since=len(ben.stamps))

        await page.get_by_label("Prompt").fill("a desert")
        await page.get_by_role("button", name="Change it").click()
        await ben.sees(lambda stamp: stamp.prompt == prompt_mark("a desert"), "a desert")
        await expect(page.locator("#status")).to_contain_text("a desert", timeout=LIMIT_S * 1000)
        said = page.locator("#log")
        await expect(said).to_contain_text('"a desert" shows now', timeout=LIMIT_S * 1000)
        assert (await said.inner_text()).count("shows now") == 1, "keys are seen, not listed"
        assert world.bridge.driver is not None
        assert world.bridge.driver.startswith("ada-")


@pytest.mark.browser
async def test_the_page_says_how_it_is_with_a_world_that_is_not_seen(livekit: LiveKit) -> None:
    room = livekit.new_room()
    async with Guest.joined(livekit, room, WORLD) as world, opened(livekit) as page:
        await joined(page, room)
        overlay, ask = page.locator("#overlay"), page.get_by_role("button", name="Ask it")
        queued = {"world.status": "queued", "world.turns": "yes"}
        await told(world, queued, overlay, "waits for a free slot")
        await expect(ask).to_be_enabled()
        ended = {"world.status": "ended", "world.reason": "no program 'nonsense'"}
        await told(world, ended, overlay, "The world has ended: no program 'nonsense'")
        await expect(ask).to_be_disabled()
        await world.leave()
        await expect(page.locator("#status")).to_contain_text("no world", timeout=LIMIT_S * 1000)
        await expect(overlay).to_contain_text("no program 'nonsense'")


@pytest.mark.browser
async def test_the_page_shows_its_camera_and_asks(livekit: LiveKit) -> None:
    room = livekit.new_room()
    async with (
        Guest.joined(livekit, room, WORLD) as world,
        opened(livekit) as page,
    ):
        asked: list[dict[str, str]] = []

        async def prompt(call: rtc.RpcInvocationData) -> str:
            asked.append(json.loads(call.payload))
            return "{}"

        world.me.register_rpc_method("world.prompt", prompt)
        await world.me.set_attributes(
            {"world.status": "live", "world.turns": "yes", "world.camera": "camera"}
        )
        await joined(page, room)
        camera = page.locator("#camera")
        await expect(camera).to_have_text("Show my camera", timeout=LIMIT_S * 1000)
        await camera.click()
        await world.picture(what="the page's camera")
        await expect(camera).to_have_text("Hide my camera", timeout=LIMIT_S * 1000)
        await page.get_by_label("Prompt").fill("what is there?")
        await page.get_by_role("button", name="Ask it").click()
        await until(lambda: asked, "the question")
        assert (asked[0]["text"], asked[0]["mode"]) == ("what is there?", "turn")
        await camera.click()
        await expect(camera).to_have_text("Show my camera", timeout=LIMIT_S * 1000)


@pytest.mark.browser
async def test_a_refused_prompt_stays_in_its_field_and_its_reason_is_in_sight(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with (
        World.shown(livekit, connect(rig.url, prompt="a lake")) as world,
        world.guest("ben") as ben,
        opened(livekit) as page,
    ):
        await page.set_viewport_size(PHONE)
        await joined(page, world.room_name)
        await ben.press("left")  # and so ben drives
        await ben.sees(lambda stamp: stamp.held == {"left"}, "his key")
        field, refusal = page.get_by_label("Prompt"), page.locator("#refusal")
        await field.fill("a desert")
        await page.get_by_role("button", name="Change it").click()
        await expect(refusal).to_contain_text("ben", timeout=LIMIT_S * 1000)
        await expect(field).to_have_value("a desert")
        await expect(refusal).to_be_in_viewport()
        await ben.call("drive", release=True)
        await page.get_by_role("button", name="Change it").click()
        await expect(field).to_have_value("", timeout=LIMIT_S * 1000)
        await expect(refusal).to_be_hidden()
        await ben.sees(lambda stamp: stamp.prompt == prompt_mark("a desert"), "a desert")


@pytest.mark.browser
async def test_a_finger_holds_a_key_and_lets_go_wherever_it_is_lifted(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with (
        World.shown(livekit, connect(rig.url, prompt="a lake")) as world,
        world.guest("ben") as ben,
        opened(livekit) as page,
    ):
        await page.set_viewport_size(PHONE)
        await joined(page, world.room_name)
        left = page.locator("#pad").get_by_role("button", name="left")
        await expect(left).to_be_visible(timeout=LIMIT_S * 1000)
        await left.hover()
        await page.mouse.down()
        await ben.sees(lambda stamp: stamp.held == {"left"}, "the key")
        await expect(left).to_have_attribute("aria-pressed", "true")
        await page.mouse.move(5, 5)
        await page.mouse.up()
        await ben.sees(lambda stamp: not stamp.held, "its release", since=len(ben.stamps))
        await left.dispatch_event("pointerdown", {"pointerId": 1})
        await left.dispatch_event("pointercancel", {"pointerId": 1})
        await expect(left).to_have_attribute("aria-pressed", "false")


async def told(world: Guest, attributes: dict[str, str], place: Locator, text: str) -> None:
    """Say something of the world until the page shows it: its client may miss a word or two."""
    for again in range(round(LIMIT_S / 3)):
        await world.me.set_attributes({**attributes, "again": str(again)})
        with suppress(AssertionError):
            await expect(place).to_contain_text(text, timeout=3000)
            return
    await expect(place).to_contain_text(text)


async def joined(page: Page, room: str) -> None:
    await page.get_by_label("Your name").fill("ada")
    await page.get_by_label("Room").fill(room)
    await page.get_by_role("button", name="Join").click()
    await expect(page.locator("#join")).to_be_hidden(timeout=LIMIT_S * 1000)


@asynccontextmanager
async def opened(livekit: LiveKit) -> AsyncIterator[Page]:
    """Serve the page, and open it; at the end nothing may have gone wrong in it."""
    environment = {
        **os.environ,
        "LIVEKIT_URL": livekit.url,
        "LIVEKIT_API_KEY": livekit.api_key,
        "LIVEKIT_API_SECRET": livekit.api_secret,
        "PORT": "0",
    }
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-u", str(PAGE), env=environment, stdout=PIPE, stderr=DEVNULL
    )
    errors: list[str] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            url = await _address(server)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=[
                    "--no-sandbox",
                    "--use-fake-device-for-media-stream",
                    "--use-fake-ui-for-media-stream",
                ],
            )
            page = await browser.new_page()
            page.on("pageerror", lambda error: errors.append(str(error)))
            await page.goto(url)
            yield page
            await browser.close()
    finally:
        server.terminate()
        await server.wait()
    assert not errors, errors


async def _address(server: asyncio.subprocess.Process) -> str:
    assert server.stdout is not None
    while b"http://" not in (line := await server.stdout.readline()):
        assert line, "the page's server has ended"
    return line.decode().split()[-2]


async def shows(page: Page, fits: Callable[[Stamp], bool], what: str) -> None:
    """Wait until the page's video is as wanted."""
    seen: list[Stamp] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            while not any(map(fits, seen[-1:])):
                pixels = await page.evaluate(_PIXELS, SIZE)
                if pixels is not None:
                    picture = np.array(pixels, np.uint8).reshape(SIZE, SIZE, 4)[..., :3]
                    with suppress(ValueError):
                        seen.append(read_stamp(picture))
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"the page did not show {what}; saw {seen[-1:]}") from None
