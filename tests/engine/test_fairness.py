"""Several sessions on one device, watched by viewers who play at the speed of time."""

from dataclasses import dataclass

import pytest
from loop_rig import Rig, stub_rig
from stub_model import stub_request

UNITS = 4
FRAME_US = 50_000
CHUNK_US = 2 * FRAME_US


@dataclass
class Viewer:
    """Plays chunks one after another as they come; reports each as its last frame comes up.

    Attributes:
        ends_us: when the chunk on screen has been shown.
        waited_us: how long the screen stood still.
    """

    session: str
    played: int = 0
    ends_us: int = 0
    waited_us: int = 0

    def look(self, rig: Rig) -> None:
        now_us = rig.clock.now_us
        frames = rig.frames(self.session)
        if self.played and now_us >= self.ends_us - FRAME_US:
            rig.drivers[self.session].seen(frames[self.played - 1].header.chunk, now_us)
        while self.played < len(frames) and now_us >= self.ends_us:
            if self.played:
                self.waited_us += now_us - self.ends_us
            self.ends_us = now_us + CHUNK_US
            self.played += 1


def play(rig: Rig, viewers: list[Viewer], until_us: int) -> None:
    while rig.clock.now_us < until_us:
        ran = rig.step()
        for viewer in viewers:
            viewer.look(rig)
        if not ran:
            rig.clock.now_us += 1000


def join(rig: Rig, names: str, unit_ms: float) -> list[Viewer]:
    for name in names:
        rig.open(stub_request(name, step_ms=unit_ms))
    return [Viewer(name) for name in names]


def test_sessions_that_fit_all_play_without_a_pause() -> None:
    rig = stub_rig(seen_at_once=False, max_batch=1)
    viewers = join(rig, "abc", unit_ms=3)
    play(rig, viewers, 10_000_000)
    for viewer in viewers:
        assert viewer.waited_us < 0.1 * 10_000_000, viewer
        assert viewer.played >= 90


@pytest.mark.parametrize("max_batch", [1, 2])
def test_sessions_that_do_not_fit_share_the_device_evenly(max_batch: int) -> None:
    rig = stub_rig(seen_at_once=False, max_batch=max_batch)
    viewers = join(rig, "abcd", unit_ms=20)
    play(rig, viewers, 20_000_000)
    played = [viewer.played for viewer in viewers]
    assert max(played) - min(played) <= max(2, max(played) // 10), played


def test_a_newcomer_waits_no_longer_than_the_chunks_that_have_begun() -> None:
    rig = stub_rig(seen_at_once=False, max_batch=1)
    viewers = join(rig, "abc", unit_ms=20)
    play(rig, viewers, 2_000_000)
    came_us = rig.clock.now_us
    viewers += join(rig, "n", unit_ms=20)
    while not viewers[-1].played:
        play(rig, viewers, rig.clock.now_us + 1000)
    assert rig.clock.now_us - came_us <= (3 + 1) * UNITS * 20_500


def test_one_that_interrupts_all_the_time_cannot_starve_the_others() -> None:
    rig = stub_rig(seen_at_once=False, max_batch=1)
    viewers = join(rig, "ab", unit_ms=20)
    rude = rig.open(stub_request("rude", step_ms=20))
    for _ in range(200):
        play(rig, viewers, rig.clock.now_us + 50_000)
        rude.interrupt(None)
    assert min(viewer.played for viewer in viewers) >= 30
