"""A worker process that dies under a session: the client is told, and the world continues."""

from pathlib import Path

import pytest
from session_suite import StreamViewer, assert_well_formed, looking
from stub_model import LOCATION, LOG_VARIABLE, Fault, prompt_mark

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine

CRASH = {"fault": float(Fault.CRASH), "fault_chunk": 4.0}


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "steps.log"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    return path


def engine() -> Engine:
    models = (ModelOptions(name="stub", family=LOCATION, sessions=2),)
    return Engine.from_deployment(
        Deployment(pool=PoolOptions(mode="process", models=models, restart_pause_s=0.05))
    )


async def test_a_crash_is_told_and_the_session_continues_under_its_prompt() -> None:
    async with (
        engine() as house,
        house.session(prompt="a lake", seed=7, parameters=CRASH) as session,
        looking(session) as screen,
    ):
        control = await session.push_text("a city")
        await screen.applied(control)
        while "session.recovering" not in _types(screen):
            await screen.take()
        frames = await screen.chunk()
        while frames[-1].stamp.chunk < 5:
            frames += await screen.chunk()
        assert frames[0].event.discontinuity
        assert {frame.stamp.prompt for frame in frames} == {prompt_mark("a city")}
        assert_well_formed(screen.events)
        assert "error" not in _types(screen)


def _types(screen: StreamViewer) -> list[str]:
    return [event.type for event in screen.events]
