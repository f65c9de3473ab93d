"""What a driver reports to the session, in the order in which it happened.

Times are media time in microseconds on the session's output clock, which never runs backwards, not
even after an interrupt or a rewind. Chunk numbers count the chunks that were put out, and are
never used twice in a session.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reverie.engine.inputs import ControlId
from reverie.models.contract.loop import Durable

Frames = NDArray[np.uint8]
"""RGB frames [F, H, W, 3]."""

Samples = NDArray[np.int16]
"""Sound [N, C]."""


@dataclass(frozen=True, slots=True)
class FramesHeader:
    """Where frames of one chunk come from, and when they are shown.

    Attributes:
        step: the unit that put them out, counted from the session's start.
        pts_us: when the first frame is shown.
        duration_us: of one frame.
        discontinuity: the chunk does not follow from the one put out before it (after an
            interrupt, a rewind, a reset or a recovery).
        loop: which loop has made them.
    """

    session: str
    stream: str
    chunk: int
    step: int
    pts_us: int
    duration_us: int
    discontinuity: bool = False
    loop: str = ""

    def after(self, frames: int) -> "FramesHeader":
        """Return the header of the same frames without the first `frames`."""
        if not frames:
            return self
        return replace(self, pts_us=self.pts_us + frames * self.duration_us, discontinuity=False)


@dataclass(frozen=True, slots=True)
class FramesOut:
    """Frames of one chunk, which the viewer is to see."""

    header: FramesHeader
    frames: Frames

    @property
    def session(self) -> str:
        """The session that they belong to, as of every emission."""
        return self.header.session

    @property
    def end_us(self) -> int:
        """When the last frame has been shown."""
        return self.header.pts_us + len(self.frames) * self.header.duration_us


@dataclass(frozen=True, slots=True)
class SamplesOut:
    """Sound of one chunk, which the viewer is to hear; for the fields see `FramesHeader`.

    Attributes:
        pts_us: when the first sample is heard. It may be later than the last one's end: a gap.
        duration_us: of all of them.
    """

    session: str
    stream: str
    chunk: int
    step: int
    pts_us: int
    duration_us: int
    samples: Samples
    discontinuity: bool = False
    loop: str = ""


@dataclass(frozen=True, slots=True)
class TextOut:
    """More text of one utterance: whole words, each with the space behind it.

    Attributes:
        chunk: number of the utterance.
        pts_us: the session's media time, when it was said.
        final: whether the utterance ends with it.
        answers: the turn that it answers; None when no turn was asked.
        loop: which loop speaks.
    """

    session: str
    stream: str
    chunk: int
    step: int
    text: str
    pts_us: int = 0
    final: bool = False
    answers: ControlId | None = None
    loop: str = ""


@dataclass(frozen=True, slots=True)
class ControlApplied:
    """A control acts from `step` on; the frame at `pts_us` is the first that shows it.

    Sent before the frames of `chunk`. The session's event is its wire form.
    """

    session: str
    control: ControlId
    step: int
    chunk: int
    pts_us: int
    unknown_words: tuple[str, ...] = ()
    truncated_at: int | None = None
    dropped_messages: int = 0


@dataclass(frozen=True, slots=True)
class ControlSuperseded:
    """A control never acted: `by` replaced it; None when a full mailbox dropped it.

    The session's event is its wire form.
    """

    session: str
    control: ControlId
    by: ControlId | None


class FaultCode(StrEnum):
    """Why a step was rolled back, or why a prompt could not be read."""

    STEP_RAISED = "step_raised"
    NON_FINITE = "non_finite"
    BAD_SHAPE = "bad_shape"
    BAD_PLAN = "bad_plan"
    TOO_MANY_BLOCKS = "too_many_blocks"
    DEVICE_LOST = "device_lost"
    OUT_OF_MEMORY = "out_of_memory"
    PROMPT_FAILED = "prompt_failed"
    PROMPT_TIMEOUT = "prompt_timeout"


@dataclass(frozen=True, slots=True)
class ControlFailed:
    """A control never acted because it could not be read; nothing has changed.

    Attributes:
        in_effect: what is in effect instead, a prompt or the value of a parameter.
    """

    session: str
    control: ControlId
    code: FaultCode
    message: str
    in_effect: str | float


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step of `loop` was rolled back; the last commit stays in effect.

    Attributes:
        fatal: the loop has ended.
        restarted: it had ended and was restarted: what it was about to say will not come.
    """

    session: str
    code: FaultCode
    chunk: int
    step: int
    message: str
    fatal: bool
    loop: str = ""
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotOut:
    """The durable part of the newest shown chunk, for recovery elsewhere.

    Attributes:
        media_us: when that chunk ended.
    """

    session: str
    chunk: int
    durable: Durable
    media_us: int = 0


@dataclass(frozen=True, slots=True)
class LeadMoved:
    """How far a loop is ahead of a viewer on a line, and may be; told about once a second.

    Attributes:
        allowed_us: unseen media that the line needs.
        unseen_us: media that was put out and not seen.
        delay_us: what an acknowledgement takes when nothing waits.
    """

    session: str
    loop: str
    allowed_us: int
    unseen_us: int
    delay_us: int


Emission = (
    FramesOut
    | SamplesOut
    | TextOut
    | ControlApplied
    | ControlSuperseded
    | ControlFailed
    | StepFailed
    | SnapshotOut
    | LeadMoved
)
