"""Latency from drawing a picture to its pixels in a browser: the server and bare loops.

One headless Chromium reads the time from each picture, with the same code for each sender. The four
ways take short turns in one run, and ratios are medians over pairs of adjacent turns, so that other
load on the machine affects both alike. During the turns of the server a key is pressed and released
repeatedly, so that receipts are sent as well.
"""

import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reverie.bench.bare_media import BareRtc, bare_socket
from reverie.config import Deployment, Setting
from reverie.host import Engine
from reverie.rtc.app import create_app
from reverie.rtc.app_context import AppContext
from reverie.rtc.options import ServerOptions
from reverie.rtc.server import Server
from reverie.sessions import SessionRequest

if TYPE_CHECKING:
    from playwright.async_api import Page

Mode = Literal["process", "inline"]
"""Where the model runs: `inline` is for tests, to avoid the start of a worker."""

WAYS = ("WebRTC", "WebSocket")
SETTLE_S = 4.0
CALIBRATIONS, MOST_CALIBRATIONS = 30, 500
FAST_ENOUGH = 40.0
"""A try of the page's clock that is good enough, in tenths of ms."""
MODEL = "reverie.bench.time_code:ticking30"
_SYSTEM = Path("/usr/bin/chromium")
CHROMIUM = _SYSTEM if _SYSTEM.exists() else None  # else the one that playwright brings


@dataclass(frozen=True, slots=True)
class Latency:
    """One way, of the server and of the bare loop, in ms; ratios are medians over turns.

    Attributes:
        setup: from the request to the first picture that was read.
        command_p50: from a key to the first picture that shows it, after its receipt.
        command_p95: likewise.
        commands: keys that were pressed or released, and seen.
        frames: pictures that were read.
    """

    way: str
    ours_p50: float
    ours_p95: float
    bare_p50: float
    bare_p95: float
    ratio_p50: float
    ratio_p95: float
    ours_setup: float
    bare_setup: float
    command_p50: float
    command_p95: float
    commands: int
    frames: int


@dataclass(frozen=True, slots=True)
class LatencyTurn:
    """The measurements of one turn of one side."""

    ages_ms: tuple[float, ...]
    setup_ms: float
    commands_ms: tuple[float, ...] = ()


@asynccontextmanager
async def serving(
    model: str, mode: Mode, viewers: int = 1, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Engine, Server]]:
    """Run the server with one model on a free port of this machine, for a number of viewers."""
    places = max(16, 2 * viewers)
    settings = [
        Setting(("pool", "mode"), mode, "bench"),
        Setting(("pool", "models"), [{"name": "bench", "family": model}], "bench"),
        Setting(("server", "host"), host, "bench"),
        Setting(("server", "port"), 0, "bench"),
        Setting(("server", "rtc", "peers_per_session"), places, "bench"),
        Setting(("sessions", "attachments"), places, "bench"),
    ]
    deployment = Deployment.read(settings=settings)
    async with Engine.from_deployment(deployment) as engine:
        context = AppContext(engine.store, engine.pool, deployment.server)
        options: ServerOptions = deployment.server
        async with Server(create_app(context), options, context.drain).running() as server:
            yield engine, server


async def media_latency(
    rounds: int,
    seconds: float,
    settle_s: float = SETTLE_S,
    mode: Mode = "process",
    on_progress: Callable[[float], None] = lambda _: None,
) -> tuple[Latency, ...]:
    """Measure every way.

    Args:
        rounds: number of turns of each way.
        seconds: length of each turn.
        settle_s: time before each turn that does not count.
        mode: where the model runs.
        on_progress: called with the seconds of each finished turn.

    Raises:
        ModuleNotFoundError: playwright, which drives the browser, is not installed.
    """
    turns: dict[tuple[str, str], list[LatencyTurn]] = {}
    async with (
        serving(MODEL, mode) as (engine, server),
        bare_socket() as url,
        _page(server.url) as page,
    ):
        bare = BareRtc()
        await page.expose_function("answerBare", bare.answer)
        offset = await clock_offset(page)

        async def take(way: str, side: str, name: str, more: Mapping[str, object]) -> None:
            given = {"seconds": seconds, "settle": settle_s, "offset": offset, **more}
            found = await page.evaluate(f"given => bench.{name}(given)", given)
            assert side == "bare" or found["receipts"], "a command has its receipt"
            setup_ms = found["first"] or float("nan")
            turn = LatencyTurn(tuple(found["ages"]), setup_ms, tuple(found["commands"]))
            turns.setdefault((way, side), []).append(turn)
            on_progress(settle_s + seconds)

        for _ in range(rounds):
            for way, ours, theirs, given in (
                ("WebRTC", "ourRtc", "bareRtc", {}),
                ("WebSocket", "ourSocket", "bareSocket", {"url": url}),
            ):
                credentials = await engine.store.create(SessionRequest("bench", seed=0))
                session = {"id": credentials.session.id, "token": credentials.token}
                await take(way, "ours", ours, session)
                engine.store.close(credentials.session.id)
                await credentials.session.gone()
                await take(way, "bare", theirs, given)
                await bare.close()
    return tuple(_summed(way, turns[way, "ours"], turns[way, "bare"]) for way in WAYS)


def _summed(way: str, ours: list[LatencyTurn], bare: list[LatencyTurn]) -> Latency:
    def all_ages(turns: list[LatencyTurn]) -> list[float]:
        return [age for turn in turns for age in turn.ages_ms]

    commands = [took for turn in ours for took in turn.commands_ms]

    def ratio(part: float) -> float:
        pairs = zip(ours, bare, strict=True)
        return statistics.median(
            at(part, mine.ages_ms) / at(part, theirs.ages_ms) for mine, theirs in pairs
        )

    return Latency(
        way=way,
        ours_p50=at(0.5, all_ages(ours)),
        ours_p95=at(0.95, all_ages(ours)),
        bare_p50=at(0.5, all_ages(bare)),
        bare_p95=at(0.95, all_ages(bare)),
        ratio_p50=ratio(0.5),
        ratio_p95=ratio(0.95),
        ours_setup=statistics.median(turn.setup_ms for turn in ours),
        bare_setup=statistics.median(turn.setup_ms for turn in bare),
        command_p50=at(0.5, commands),
        command_p95=at(0.95, commands),
        commands=len(commands),
        frames=len(all_ages(ours)),
    )


def at(part: float, values: "tuple[float, ...] | list[float]") -> float:
    """Return a quantile of some values; nan without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


@asynccontextmanager
async def _page(url: str) -> AsyncIterator["Page"]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM)
        page = await browser.new_page(bypass_csp=True)
        await page.goto(f"{url}/healthz")
        script = files("reverie.bench").joinpath("readback.js").read_text(encoding="utf-8")
        await page.add_script_tag(content=script)
        try:
            yield page
        finally:
            await browser.close()


async def clock_offset(page: "Page") -> float:
    """Return the offset of the page's clock to ours, in tenths of ms, by the fastest try.

    It is wrong by half of that try at most; a busy machine has more tries.
    """
    found: list[tuple[float, float]] = []
    while len(found) < CALIBRATIONS or (
        min(found)[0] > FAST_ENOUGH and len(found) < MOST_CALIBRATIONS
    ):
        before = time.time() * 10_000
        there = float(await page.evaluate("bench.now()"))
        after = time.time() * 10_000
        found.append((after - before, (before + after) / 2 - there))
    return min(found)[1]
