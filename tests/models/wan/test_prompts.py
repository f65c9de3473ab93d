"""Prompts of Wan are read beside its steps: through the pool, as a server runs it."""

from pathlib import Path

import slow_wan
from pool_rig import Viewer, prompt, running
from slow_reader import Gate

from reverie.engine.emissions import ControlApplied, FramesOut, StepTrace
from reverie.gpu_pool import StartRequest


async def test_pictures_go_on_while_a_prompt_is_encoded_and_then_it_takes_effect(
    tmp_path: Path,
) -> None:
    first, second = Gate(tmp_path, "first"), Gate(tmp_path, "second")
    async with running("inline", family=slow_wan.LOCATION, sessions=2) as pool:
        mine, other = Viewer("a", "continuation", trace=True), Viewer("b", "continuation")
        async with mine.watching(pool) as lease, other.watching(pool):
            lease.send(prompt("a", "p", first.prompt))
            await first.reached()
            await mine.hears(FramesOut, len(mine.frames) + 2)
            await other.hears(FramesOut, len(other.frames) + 2)
            assert not [each for each in mine.notices if isinstance(each, ControlApplied)]
            first.open()
            assert (await mine.hears(ControlApplied)).control == "p"
            await mine.hears(FramesOut, len(mine.frames) + 1)
            kinds = [each.kind for each in mine.notices if isinstance(each, StepTrace)]
            assert kinds.count("encode_text") == 2
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
