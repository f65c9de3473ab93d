"""Prompts of Wan are encoded while its steps run, through the pool as in a server."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import slow_wan
from pool_rig import Viewer, prompt, running
from slow_reader import Gate

from reverie.engine.emissions import ControlApplied, FramesOut
from reverie.gpu_pool import StartRequest
from reverie.models.contract.loop import StepBatch, StepResult
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.state import WanState


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of unit that workers in this process run, in order."""
    ran: list[str] = []
    run_step = WanKernel.run_step

    def noted(kernel: WanKernel, batch: StepBatch[WanState]) -> Sequence[StepResult[WanState]]:
        ran.extend(unit.plan.kind for unit in batch.units)
        return run_step(kernel, batch)

    monkeypatch.setattr(WanKernel, "run_step", noted)
    return ran


async def test_pictures_go_on_while_a_prompt_is_encoded_and_then_it_takes_effect(
    tmp_path: Path, kinds: list[str]
) -> None:
    first, second = Gate(tmp_path, "first"), Gate(tmp_path, "second")
    async with running("inline", family=slow_wan.LOCATION, sessions=2) as pool:
        mine, other = Viewer("a", "continuation"), Viewer("b", "continuation")
        async with mine.watching(pool) as lease, other.watching(pool):
            await mine.hears(FramesOut)
            await other.hears(FramesOut)
            kinds.clear()
            lease.send(prompt("a", "p", first.prompt))
            await first.reached()
            await mine.hears(FramesOut, len(mine.frames) + 2)
            await other.hears(FramesOut, len(other.frames) + 2)
            assert not [each for each in mine.notices if isinstance(each, ControlApplied)]
            first.open()
            assert (await mine.hears(ControlApplied)).control == "p"
            await mine.hears(FramesOut, len(mine.frames) + 1)
            assert kinds.count("encode_text") == 1
            assert "recache" in kinds
        late = Viewer("c", "continuation")
        async with other.watching(pool):
            opening = StartRequest("c", "stub", "continuation", 7, second.prompt)
            late.lease = await pool.lease(opening, late)
            await second.reached()
            await other.hears(FramesOut, len(other.frames) + 2)
            assert not late.frames
            second.open()
            await late.hears(FramesOut)
            await late.lease.release()
