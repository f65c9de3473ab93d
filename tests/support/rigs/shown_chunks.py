"""Chunks as a person gets them: pictures, or what was said; and a rig that talks to a loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from loop_rig import Rig
from numpy.typing import NDArray

from reverie.engine.emissions import FramesOut, TextOut
from reverie.engine.inputs import ControlId, TurnInput

LETTERS = 4096
SAYS = "what is there?"


@dataclass(frozen=True)
class ShownChunk:
    """What a chunk has put out.

    Attributes:
        content: pixels [F, H, W, 3]; or code points of an utterance, as many for each.
        frames: how many there are; none of an utterance.
    """

    chunk: int
    pts_us: int
    content: NDArray[Any]
    frames: int = 0
    duration_us: int = 0
    discontinuity: bool = False

    @classmethod
    def of_frames(cls, out: FramesOut) -> "ShownChunk":
        """Take pictures."""
        return cls(
            out.header.chunk,
            out.header.pts_us,
            out.frames,
            len(out.frames),
            out.header.duration_us,
            out.header.discontinuity,
        )

    @classmethod
    def of_texts(cls, outs: Sequence[TextOut]) -> "ShownChunk":
        """Join an utterance."""
        text = "".join(out.text for out in outs)
        assert len(text) <= LETTERS
        letters = np.zeros(LETTERS, np.int64)
        letters[: len(text)] = [ord(letter) for letter in text]
        return cls(outs[0].chunk, outs[0].pts_us, letters)

    def distance(self, other: "ShownChunk") -> int:
        """Return the greatest difference of a pixel or a letter."""
        return int(np.abs(self.content.astype(int) - other.content.astype(int)).max())


class ContractRig(Rig):
    """A rig that says something to a loop of text whenever it has nothing to do."""

    @property
    def talks(self) -> bool:
        """Whether the loop waits for turns."""
        return self.kernel.spec.takes_turns and not self.kernel.spec.has_media

    def step(self) -> list[str]:
        ran = super().step()
        if ran or not self.talks:
            return ran
        for driver in self.drivers.values():
            if not driver.ended:
                driver.push([TurnInput(ControlId("turn"), SAYS)])
        return super().step()

    def shown(self, session: str) -> list[ShownChunk]:
        """Return the whole chunks that a session has put out."""
        if not self.talks:
            return [ShownChunk.of_frames(out) for out in self.frames(session)]
        chunks: list[ShownChunk] = []
        under_way: list[TextOut] = []
        for out in self.heard_of(session, TextOut):
            under_way.append(out)
            if out.final:
                chunks.append(ShownChunk.of_texts(under_way))
                under_way = []
        return chunks

    def run_shown(self, session: str, count: int) -> list[ShownChunk]:
        """Step until a session has put out so many more."""
        before = len(self.shown(session))
        self.run(lambda: len(self.shown(session)) >= before + count)
        return self.shown(session)[before:]
