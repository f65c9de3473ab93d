"""The lead in time, over real lines: a server at one end, and players at the other."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from net_namespace import line_or_skip
from server_process import ServerProcess

from reverie.bench.line import EmulatedLine, NetNamespace, PathSettings
from reverie.rtc.client.connect import connect

LIMIT_S = 40.0
RATE_HZ = 24.0
ENOUGH = 0.5
"""Of the rate, on a busy machine. A chunk or two at a time made 0.3 of it through 200 ms."""

DEPLOYMENT: dict[str, object] = {
    "server": {"host": "0.0.0.0"},
    "pool": {"models": [{"name": "toy", "family": "reverie.bench.over_line.toy_models:step24"}]},
}


class FarEnd:
    """A server at the near end of a line, and what players do at its ends."""

    def __init__(self, line: EmulatedLine, server: ServerProcess) -> None:
        self.line = line
        self._near_url = server.url.rstrip("/")
        self._far_url = f"http://{line.near_address}:{server.port}"

    def open(self) -> dict[str, Any]:
        """Open a session, at the near end."""
        with self.line.near.entered():
            return dict(httpx.post(f"{self._near_url}/v1/sessions", json={}).json())

    def lead(self, opened: dict[str, Any]) -> dict[str, float]:
        """Return the lead of a session."""
        headers = {"Authorization": f"Bearer {opened['token']}"}
        with self.line.near.entered():
            path = f"{self._near_url}/v1/sessions/{opened['id']}/stats"
            return dict(httpx.get(path, headers=headers).json()["lead"])

    @contextmanager
    def playing(self, opened: dict[str, Any], *, near: bool = False) -> Iterator[list[float]]:
        """Play a session until the block ends; yield the times at which pictures were shown."""
        place = self.line.near if near else self.line.far
        url = self._near_url if near else self._far_url
        token, role = opened["watch_token" if near else "token"], "viewer" if near else "driver"
        shown: list[float] = []
        leave = threading.Event()

        async def play() -> None:
            options = {"session": opened["id"], "token": token, "codecs": ("jpeg",)}
            async with connect(url, role=role, **options) as session:  # type: ignore[arg-type]
                due_s = 0.0
                async for event in session.stream():
                    if leave.is_set():
                        return
                    if event.type == "media.chunk":
                        due_s = max(due_s, time.monotonic())
                        await asyncio.sleep(due_s - time.monotonic())
                        shown.append(time.monotonic())
                        due_s += 1 / RATE_HZ

        thread = threading.Thread(target=_inside, args=(place, play), daemon=True)
        thread.start()
        try:
            yield shown
        finally:
            leave.set()
            thread.join(LIMIT_S)


def _inside(place: NetNamespace, play: Any) -> None:
    with place.entered():
        asyncio.run(play())


@pytest.fixture(scope="module")
def far_end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarEnd]:
    """Lay a line, with the server at its near end."""
    with line_or_skip(PathSettings(delay_ms=100)) as line:
        with line.near.entered():
            server = ServerProcess(tmp_path_factory.mktemp("line"), DEPLOYMENT)
            server.start()
        try:
            yield FarEnd(line, server)
        finally:
            server.stop()


@pytest.fixture(autouse=True)
def _plain_line(far_end: FarEnd) -> None:
    for way in (far_end.line.uplink, far_end.line.downlink):
        way.become(PathSettings(delay_ms=10))


def so_often(shown: list[float], pictures: int = 72) -> float:
    """Return the rate of the next pictures, over that of the model."""
    begin = len(shown)
    until(lambda: len(shown) > begin + pictures)
    return pictures / (shown[begin + pictures] - shown[begin]) / RATE_HZ


def until(so: Any) -> None:
    """Wait until something is so."""
    limit_s = time.monotonic() + LIMIT_S
    while not so():
        assert time.monotonic() < limit_s, "not in time"
        time.sleep(0.05)


def test_through_a_round_trip_of_200_ms_pictures_keep_their_rate(far_end: FarEnd) -> None:
    far_end.line.change(delay_ms=100)
    with far_end.playing(far_end.open()) as shown:
        until(lambda: len(shown) > 24)
        assert max(so_often(shown) for _ in range(3)) > ENOUGH


def test_the_lead_follows_a_line_that_becomes_long_and_short_again(far_end: FarEnd) -> None:
    opened = far_end.open()
    with far_end.playing(opened) as shown:
        until(lambda: len(shown) > 48)
        far_end.line.change(delay_ms=200)
        until(lambda: far_end.lead(opened)["allowed_ms"] > 400)
        assert max(so_often(shown) for _ in range(3)) > ENOUGH
        far_end.line.change(delay_ms=10)
        until(lambda: 0 < far_end.lead(opened)["allowed_ms"] < 250)


def test_a_driver_far_away_and_a_viewer_nearby_both_get_their_rate(far_end: FarEnd) -> None:
    far_end.line.change(delay_ms=150)
    opened = far_end.open()
    with far_end.playing(opened) as driver, far_end.playing(opened, near=True) as viewer:
        until(lambda: len(driver) > 24 and len(viewer) > 24)
        assert max(so_often(driver) for _ in range(3)) > ENOUGH
        assert max(so_often(viewer) for _ in range(3)) > ENOUGH
        assert far_end.lead(opened)["allowed_ms"] > 300, "the driver's line decides"


@pytest.mark.parametrize("up_ms", [10, 180], ids=["down", "up"])
def test_a_line_that_is_long_in_one_direction_only_keeps_the_rate(
    far_end: FarEnd, up_ms: float
) -> None:
    far_end.line.uplink.become(PathSettings(delay_ms=up_ms))
    far_end.line.downlink.become(PathSettings(delay_ms=190 - up_ms))
    with far_end.playing(far_end.open()) as shown:
        until(lambda: len(shown) > 24)
        assert max(so_often(shown) for _ in range(3)) > ENOUGH


def test_packets_that_overtake_each_other_do_not_stop_the_pictures(far_end: FarEnd) -> None:
    far_end.line.change(delay_ms=50, jitter_ms=10, reorder=True)
    with far_end.playing(far_end.open()) as shown:
        until(lambda: len(shown) > 24)
        assert max(so_often(shown) for _ in range(3)) > ENOUGH


def test_pictures_come_back_after_a_line_that_lost_everything(far_end: FarEnd) -> None:
    with far_end.playing(far_end.open()) as shown:
        until(lambda: len(shown) > 24)
        far_end.line.change(loss=1.0)
        until(lambda: time.monotonic() - shown[-1] > 1.5)
        before = len(shown)
        far_end.line.change(loss=0.0)
        until(lambda: len(shown) > before)
        assert max(so_often(shown) for _ in range(3)) > ENOUGH
