"""Pausing, resuming and going back in any order, on the real driver."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from session_suite import ShownFrame, StreamViewer, looking
from stub_model import LOCATION, LOG_VARIABLE, prompt_mark, read_log

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.errors import CommandError


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "steps.log"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    return path


@pytest.fixture
async def engine(log: Path) -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=LOCATION),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine:
        yield engine


class ScriptedViewer:
    """Does one thing after the other and keeps the rules in view."""

    def __init__(self, session: Session, screen: StreamViewer, log: Path) -> None:
        self.session = session
        self.screen = screen
        self.frames: list[ShownFrame] = []
        self.prompt = "a lake"
        self.control: str | None = None
        self.paused = False
        self._log = log
        self._steps_at_pause = 0

    def steps(self) -> int:
        return sum(line.session == self.session.id for line in read_log(self._log))

    async def do(self, move: str) -> None:
        match move:
            case "pause":
                await self.session.pause()
                if not self.paused:
                    self._steps_at_pause = self.steps()
                self.paused = True
            case "resume":
                self.check_still()
                await self.session.resume()
                self.paused = False
            case "interrupt":
                await self.session.interrupt()
            case "prompt":
                self.prompt = f"{self.prompt}!"
                self.control = await self.session.push_text(self.prompt)
            case "look" if not self.paused:
                self.frames += await self.screen.chunk()
            case "step" if not self.paused:
                with pytest.raises(CommandError):
                    await self.session.step()
        if self.paused:
            await asyncio.sleep(0)
            self.check_still()

    def check_still(self) -> None:
        if self.paused:
            assert self.steps() == self._steps_at_pause, "a unit ran while paused"


MOVES = st.sampled_from(["pause", "resume", "interrupt", "prompt", "look", "look", "step"])


@given(moves=st.lists(MOVES, max_size=12))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_any_order_of_pausing_ends_with_a_running_session_under_the_last_prompt(
    engine: Engine, log: Path, moves: list[str]
) -> None:
    async with engine.session(prompt="a lake") as session, looking(session) as screen:
        player = ScriptedViewer(session, screen, log)
        for move in moves:
            await player.do(move)
        await player.do("resume")
        if player.control is not None:
            await screen.applied(player.control)
        for _ in range(2):
            player.frames += await screen.chunk()
        assert player.frames[-1].stamp.prompt == prompt_mark(player.prompt)
    _assert_gap_free(player.frames)


async def test_closing_while_paused_ends_at_once(engine: Engine, log: Path) -> None:
    async with engine.session(prompt="a lake") as session, looking(session) as screen:
        await screen.chunk()
        await session.pause()
        async with asyncio.timeout(20):
            await session.close()
        assert (await screen.rest())[-1].type == "session.closed"


async def test_after_a_long_pause_no_burst_catches_up(engine: Engine, log: Path) -> None:
    async with engine.session(prompt="a lake") as session, looking(session) as screen:
        await screen.chunk()
        await session.pause()
        await asyncio.sleep(0.3)
        await session.resume()
        before = len({line.chunk for line in read_log(log) if line.session == session.id})
        await asyncio.sleep(0.2)  # no viewer reads: the lead is all that may be made
        after = len({line.chunk for line in read_log(log) if line.session == session.id})
        assert after - before <= 2


def _assert_gap_free(frames: list[ShownFrame]) -> None:
    """Each frame begins where the one before it ended, or says that it does not."""
    shown = [frame.event for frame in frames]
    for before, event in pairwise(shown):
        gap_us = event.pts_us - before.pts_us - before.duration_us
        skipped = event.discontinuity or event.chunk > before.chunk + 1
        assert abs(gap_us) <= 20 or skipped
        assert event.chunk == before.chunk or event.frame == 0
