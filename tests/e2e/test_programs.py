"""What the embedded model offers beside walking: words, a camera, a clip, and what is kept."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from island import Island, video_codec
from numpy.typing import NDArray
from player import Player
from playwright.async_api import WebSocketRoute

from reverie.models.pocket.narrator.topic_choice import LOOK_EVERY, QUIET

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]

INPUTS = Path(__file__).parent.parent / "inputs"

_STILLS = """async (clip) => {
  const { stillsOf } = await import("/static/media/file_frames.js");
  const bytes = Uint8Array.from(atob(clip), (each) => each.charCodeAt(0));
  const stills = [];
  for await (const { picture, ptsUs, isCut } of stillsOf(new File([bytes], "clip"), 12)) {
    stills.push({ ptsUs, isCut, atS: picture.currentTime });
  }
  return stills;
}"""

LIMIT_S = 30.0
LIMIT_MS = LIMIT_S * 1000
GROWING = "[data-part=lines] [data-state=growing]"
NEWS_FRAMES = 2 * (QUIET + 2 * LOOK_EVERY)
"""Twice as many as a narrator needs to look at something new, be sure of it and speak."""


async def play(here: Island, program: str, transport: str = "webrtc") -> Player:
    """Open a page on a program of pocket, and see that the world moves."""
    player = Player(await here.page())
    await player.page.goto(
        f"{here.server.url}?model=pocket&program={program}&transport={transport}"
    )
    await player.until_status("live")
    await player.until_changed(await player.picture())
    return player


async def test_a_world_is_told_and_its_narrator_can_be_switched_off(here: Island) -> None:
    player = await play(here, "narrated_world")
    page = player.page
    assert await video_codec(page) in {"VP8", "H264"}
    said = page.locator("[data-part=lines] .said")
    await said.first.wait_for(timeout=LIMIT_MS)
    narrate = page.get_by_role("switch", name="Narrate")
    assert await narrate.is_checked()
    await narrate.uncheck()
    await pictures(player, 6)  # it may have begun before the switch acts
    await page.locator(GROWING).wait_for(state="detached", timeout=LIMIT_MS)
    before = await said.all_inner_texts()
    await player.ask("a frozen lake land at night")
    await player.until_text("now", "a frozen lake land at night")
    await pictures(player, NEWS_FRAMES)
    assert await said.all_inner_texts() == before, "it talks though it is switched off"
    assert await page.locator(GROWING).count() == 0
    assert await narrate.is_checked() is False
    await narrate.check()  # there was news: it comes as soon as it may be told
    await said.nth(len(before)).wait_for(timeout=LIMIT_MS)
    assert player.errors == []


async def test_what_a_person_turned_stays_turned_until_the_server_answers(here: Island) -> None:
    page = await here.page()
    line = HeldCommands("update")
    await page.route_web_socket("**", line.carry)
    player = Player(page)
    await page.goto(f"{here.server.url}?model=pocket&program=narrated_world&transport=websocket")
    await player.until_status("live")
    narrate = page.get_by_role("switch", name="Narrate")
    await page.get_by_text("Parameters").click()
    pace = page.get_by_label("Words a second")
    await narrate.uncheck()
    await pace.focus()
    await page.keyboard.press("End")
    await page.get_by_role("button", name="Pause").click()  # the server tells its own values
    await player.until_status("paused")
    chosen = (False, await pace.get_attribute("max"))
    assert (await narrate.is_checked(), await pace.input_value()) == chosen
    line.release()
    await page.get_by_role("button", name="Resume").click()
    await player.until_status("live")
    assert (await narrate.is_checked(), await pace.input_value()) == chosen
    await page.reload()  # and the server has taken them
    await player.until_status("live")
    await page.get_by_text("Parameters").click()
    assert (await narrate.is_checked(), await pace.input_value()) == chosen
    assert player.errors == []


class HeldCommands:
    """A line to the server that keeps commands of one type back until they are released."""

    def __init__(self, type: str) -> None:
        self._type = type
        self._held: list[Callable[[], None]] = []
        self._is_open = False

    def carry(self, socket: WebSocketRoute) -> None:
        """Carry what a page and the server say to each other."""
        server = socket.connect_to_server()

        def send(message: str | bytes) -> None:
            is_held = isinstance(message, str) and json.loads(message).get("type") == self._type
            if is_held and not self._is_open:
                self._held.append(lambda: server.send(message))
            else:
                server.send(message)

        socket.on_message(send)

    def release(self) -> None:
        """Let everything through from now on."""
        self._is_open = True
        for send in self._held:
            send()


async def pictures(player: Player, count: int) -> None:
    """Wait until so many pictures have come: time as the world has it, on any machine."""
    for _ in range(count):
        await player.until_changed(await player.picture())


async def test_a_question_is_answered_below_it(here: Island) -> None:
    player = await play(here, "chat")
    question = "what time of day is it"
    await player.page.get_by_label("Ask about what you see").fill(question)
    await player.page.keyboard.press("Enter")
    line = player.page.locator("[data-part=lines] > [data-state=done]")
    await line.wait_for(timeout=LIMIT_MS)
    assert await line.locator(".question").inner_text() == question
    assert await line.get_attribute("aria-hidden") is None, "it is read aloud"
    assert player.errors == []


async def test_the_narrator_is_interrupted_alone(here: Island) -> None:
    player = await play(here, "chat")
    page = player.page
    await turn(player, "Words a second", 1)
    await player.ask_it("what do you see")
    await page.locator("[data-part=lines] [data-state=growing] .said").wait_for(timeout=LIMIT_MS)
    await page.get_by_role("button", name="Stop talking").click()
    await page.locator("[data-part=lines] [data-state=broken]").wait_for(timeout=LIMIT_MS)
    await player.until_changed(await player.picture())
    assert await page.locator("[data-part=error]").is_hidden()


async def turn(player: Player, dial: str, value: float) -> None:
    """Set a parameter of the program, and wait until it acts."""
    await player.page.get_by_text("Parameters").click()
    slider = player.page.get_by_label(dial)
    await slider.evaluate(
        """(input, value) => {
          input.value = value;
          input.dispatchEvent(new Event("change"));
        }""",
        value,
    )
    await player.until_changed(await player.picture())


@pytest.mark.parametrize("transport", ["webrtc", "websocket"])
async def test_a_camera_is_restyled_live(here: Island, transport: str) -> None:
    player = await play(here, "restyle", transport)
    await player.page.get_by_role("button", name="Camera").click()
    pressed = player.page.locator("[data-part=camera][aria-pressed=true]")
    await pressed.wait_for(timeout=LIMIT_MS)
    for _ in range(3):
        await player.until_changed(await player.picture())
    if transport == "webrtc":
        await player.page.wait_for_function(
            """async () => [...(await peers.at(-1).getStats()).values()]
                 .some(({ type, kind, framesSent }) =>
                   type === "outbound-rtp" && kind === "video" && framesSent > 3)"""
        )
    assert await player.page.locator("[data-part=error]").is_hidden()
    await pressed.click()
    await player.page.locator("[data-part=camera][aria-pressed=false]").wait_for()
    assert await player.transport() == transport
    assert player.errors == []


# Counts how often the page asks for a device, and gives it when the test says so.
ASK_LATE = """
  globalThis.asked = 0;
  const given = new Promise((resolve) => (globalThis.give = resolve));
  const { mediaDevices } = navigator;
  const open = mediaDevices.getUserMedia.bind(mediaDevices);
  mediaDevices.getUserMedia = async (wanted) => {
    globalThis.asked += 1;
    await given;
    return open(wanted);
  };
"""


async def test_clicks_while_the_browser_asks_open_no_second_camera(here: Island) -> None:
    page = await here.page()
    await page.add_init_script(ASK_LATE)
    await page.goto(f"{here.server.url}?model=pocket&program=restyle&transport=websocket")
    await Player(page).until_status("live")
    camera = page.get_by_role("button", name="Camera")
    for _ in range(3):
        await camera.click()
    await page.evaluate("give()")
    await page.locator("[data-part=camera][aria-pressed=true]").wait_for(timeout=LIMIT_MS)
    assert await page.evaluate("asked") == 1


@pytest.mark.parametrize("transport", ["webrtc", "websocket"])
async def test_a_clip_is_continued(here: Island, transport: str, tmp_path: Path) -> None:
    clip, colour = tmp_path / "clip.webm", (250, 90, 160)
    write_clip(clip, colour)
    player = await play(here, "continuation", transport)
    before = await distance(player, colour)
    await player.page.set_input_files("[data-part=file]", clip)
    async with asyncio.timeout(LIMIT_S):
        while await distance(player, colour) > before / 2:
            await asyncio.sleep(0.05)
    assert await player.page.locator("[data-part=error]").is_hidden()
    await player.until_changed(await player.picture())
    assert player.errors == []


@pytest.mark.parametrize("name", ["plain.mp4", "cover.mp4", "from_60_s.mp4", "from_130_s.webm"])
async def test_a_clip_begins_with_its_first_picture_wherever_its_clock_begins(
    here: Island, name: str
) -> None:
    page = await here.page()
    await page.goto(here.server.url)
    clip = base64.b64encode((INPUTS / name).read_bytes()).decode()
    stills = await page.evaluate(_STILLS, clip)
    lasts_s = 2 if name in {"plain.mp4", "cover.mp4"} else 1
    assert len(stills) == pytest.approx(12 * lasts_s, abs=2)
    assert [each["ptsUs"] for each in stills[:3]] == [0, 83_333, 166_667]
    assert [each["isCut"] for each in stills] == [False] * len(stills)
    shown_s = [each["atS"] for each in stills]
    assert shown_s == sorted(shown_s)
    assert shown_s[-1] - shown_s[0] > 0.7 * lasts_s, "it shows one picture again and again"


async def test_what_is_shown_is_recorded_kept_as_a_clip_and_played_back(here: Island) -> None:
    player = await play(here, "world")
    page = player.page
    await page.get_by_role("button", name="Record").click()
    await page.locator("[data-part=record][aria-pressed=true]").wait_for()
    for _ in range(12):
        await player.until_changed(await player.picture())
    await page.get_by_role("button", name="Stop").click()
    await player.until_text("keep-text", "A recording of")
    await watch(player)
    await page.get_by_role("button", name="Put the recording away").click()
    await page.get_by_role("button", name="Last 10 s").click()
    await player.until_text("keep-text", "A clip of")
    async with page.expect_download() as saving:
        await page.get_by_role("button", name="Save").click()
    assert (await saving.value).suggested_filename == "reverie-clip.mp4"
    await watch(player)
    assert player.errors == []


async def test_a_recording_that_runs_outlives_a_switch_to_another_program(here: Island) -> None:
    player = await play(here, "world")
    page = player.page
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    await page.get_by_role("button", name="Record").click()
    await page.locator("[data-part=record][aria-pressed=true]").wait_for()
    for _ in range(6):
        await player.until_changed(await player.picture())
    session = await page.evaluate("document.body.dataset.session")
    await page.locator("[data-part=program]").select_option("narrated_world")
    await player.until_text("keep-text", "A recording of")
    await page.wait_for_function(
        "(was) => document.body.dataset.session && document.body.dataset.session !== was",
        arg=session,
    )
    await player.until_status("live")
    await watch(player)
    assert (player.errors, complaints) == ([], [])


# Counts the pieces of sound that are played, and says what a track has brought so far.
COUNT_PIECES = """
  globalThis.pieces = 0;
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...at) {
    const loud = this.buffer.getChannelData(0).some((sample) => Math.abs(sample) > 0.01);
    globalThis.pieces += Number(loud);
    return start.apply(this, at);
  };
"""
HEARD = {
    "websocket": "() => pieces > 3",
    "webrtc": """async () => [...(await peers.at(-1).getStats()).values()]
        .some(({ type, kind, totalAudioEnergy }) =>
          type === "inbound-rtp" && kind === "audio" && totalAudioEnergy > 1e-6)""",
}


@pytest.mark.parametrize("transport", ["webrtc", "websocket"])
async def test_what_a_camera_and_a_microphone_bring_is_seen_and_heard_again(
    here: Island, transport: str
) -> None:
    player = Player(await here.page())
    page = player.page
    await page.add_init_script(COUNT_PIECES)
    await page.goto(f"{here.server.url}?model=echo&transport={transport}")
    await player.until_status("live")
    await page.get_by_role("button", name="Sound").click()
    await page.get_by_role("button", name="Camera").click()
    await page.get_by_role("button", name="Microphone").click()
    for _ in range(3):
        await player.until_changed(await player.picture())
    await page.wait_for_function(HEARD[transport], timeout=LIMIT_MS)
    assert await page.locator("[data-part=error]").is_hidden()
    assert player.errors == []


async def watch(player: Player) -> None:
    """Watch what was kept, and see that it plays."""
    await player.page.get_by_role("button", name="Watch").click()
    await player.page.wait_for_function(
        """() => {
          const video = document.querySelector("[data-part=recording-video]");
          return video.videoWidth === 128 && video.currentTime > 0 && video.duration > 0;
        }"""
    )
    await player.page.get_by_role("button", name="Close").click()


async def distance(player: Player, colour: tuple[int, int, int]) -> float:
    """Return how far the mean colour of the picture is from another one."""
    mean: list[float] = await player.page.evaluate(
        """() => {
          const canvas = document.querySelector("[data-part=picture]");
          const small = new OffscreenCanvas(1, 1).getContext("2d");
          small.drawImage(canvas, 0, 0, 1, 1);
          return [...small.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
    )
    return float(np.linalg.norm(np.subtract(mean, colour)))


def write_clip(path: Path, colour: tuple[int, int, int]) -> None:
    """Write half a second of one colour, in a size that is no square."""
    picture: NDArray[np.uint8] = np.full((120, 160, 3), colour, np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libvpx", rate=24)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for _ in range(12):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode())
