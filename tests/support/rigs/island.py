"""A server and a browser on a network of their own, where WebRTC gets through, until it is cut."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from chromium import CHROMIUM
from net_namespace import CabledNamespace, namespace_or_skip
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from server_process import ServerProcess

FAKE_DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")

# Keeps what the page makes, so that a test can ask it how it is doing.
_REMEMBER_PEERS = """
  globalThis.peers = [];
  globalThis.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...made) { super(...made); globalThis.peers.push(this); }
  };
"""


@dataclass(frozen=True, slots=True)
class Island:
    """Where the page and the server reach each other over loopback and over a cable.

    Attributes:
        network: cut it, and only loopback is left: HTTP and WebSockets, and no WebRTC.
    """

    network: CabledNamespace
    server: ServerProcess
    browser: Browser

    async def page(self) -> Page:
        """Open an empty page, apart from all others."""
        context: BrowserContext = await self.browser.new_context(
            permissions=["camera", "microphone"]
        )
        await context.add_init_script(_REMEMBER_PEERS)
        return await context.new_page()

    async def leave_pages(self) -> None:
        """Close what tests have opened."""
        for context in self.browser.contexts:
            await context.close()


@asynccontextmanager
async def island(folder: Path, deployment: dict[str, object]) -> AsyncIterator[Island]:
    """Make one, or skip where no network can be made; in CI that fails.

    What is started in the network stays there; this thread is in it only meanwhile.
    """
    server = ServerProcess(folder, deployment)
    with namespace_or_skip() as network:
        with network.entered():
            server.start()
            playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", *FAKE_DEVICES]
            )
            yield Island(network, server, browser)
            await browser.close()
        finally:
            await playwright.stop()
            server.stop()


async def video_codec(page: Page) -> str:
    """Return the codec of the pictures that the page receives, such as `VP8`; it must be decoding.

    Raises:
        AssertionError: it receives none by WebRTC.
    """
    found: dict[str, str] | None = await page.evaluate(
        """async () => {
          const report = await peers.at(-1).getStats();
          const all = [...report.values()];
          const video = all.find(({type, kind}) => type === "inbound-rtp" && kind === "video");
          if (!video?.framesDecoded) return null;
          return { codec: report.get(video.codecId).mimeType };
        }"""
    )
    assert found is not None, "no picture came by WebRTC"
    return found["codec"].removeprefix("video/")
