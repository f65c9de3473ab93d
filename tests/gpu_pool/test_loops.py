"""Two loops of one session in one worker: a world, and somebody who tells what it shows."""

from collections.abc import AsyncIterator

import pytest
import talking_stub
from pool_rig import Viewer, prompt, running
from stub_model import prompt_mark

from reverie.engine.emissions import (
    TextOut,
)
from reverie.engine.inputs import ControlId, TurnInput
from reverie.gpu_pool import Notice, Pool
from reverie.gpu_pool.messages import (
    PushInputs,
)

LAKE = f"I see p{prompt_mark('a frozen lake')} with nothing held. "
CITY = f"I see p{prompt_mark('a city')} with nothing held. "


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with running("inline", family=talking_stub.LOCATION, sessions=3) as pool:
        yield pool


def say(session: str, control: str, text: str) -> PushInputs:
    return PushInputs(session, (TurnInput(ControlId(control), text),))


def utterances(notices: list[Notice]) -> dict[int, str]:
    """Return what was said, by the number of the utterance."""
    told: dict[int, str] = {}
    for notice in notices:
        if isinstance(notice, TextOut):
            told[notice.chunk] = told.get(notice.chunk, "") + notice.text
    return told


async def until_said(viewer: Viewer, text: str) -> None:
    await viewer.until(lambda notices: text in utterances(notices).values() or None)


async def test_frames_and_words_come_side_by_side(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool, "narrated_world"):
        await until_said(viewer, LAKE)
        lease = viewer.lease
        assert lease
        lease.send(prompt("a", "p", "a city"))
        await until_said(viewer, CITY)
        assert [out.chunk for out in viewer.frames] == list(range(len(viewer.frames)))
        last = viewer.texts[-1]
        assert (last.stream, last.loop, last.final, last.answers) == (
            "narration",
            "ar_decode",
            True,
            None,
        )
        assert [out.final for out in viewer.texts].count(True) == 2
