"""What a driver emits: chunk numbers, the media time of frames, and the order of both."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from reverie.engine.emissions import (
    Emission,
    FaultCode,
    FramesHeader,
    FramesOut,
    SamplesOut,
    SnapshotOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import ControlId
from reverie.engine.open_chunk import OpenChunk
from reverie.engine.outputs import (
    CheckedFrames,
    CheckedOutput,
    CheckedSamples,
    OutputClock,
    is_media,
)
from reverie.models.contract.loop import Durable, TextOutput
from reverie.models.contract.spec import LoopSpec

SKEW_US = 40_000
"""How far the streams of a loop may come apart; less than the eye and the ear notice."""


class Emitter:
    """Emissions of one session, waiting to be taken.

    Attributes:
        session: the session that they belong to.
        chunk: number of the chunk in progress; a number is never used twice.
    """

    def __init__(
        self,
        session: str,
        loop: LoopSpec,
        chunk: int,
        pts_us: int,
        snapshot_every_us: int,
        peer_us: Callable[[], int] | None = None,
    ) -> None:
        """Continue with chunk number `chunk` at `pts_us`.

        Args:
            session: the session that they belong to.
            loop: the loop that puts them out.
            chunk: number of the next chunk.
            pts_us: media time of the next frame.
            snapshot_every_us: media time between two snapshots; 0 puts none out. Where no media
                time passes, for a conversation without pictures, each chunk makes one.
            peer_us: the media time of another loop, for one that has no clock of its own.
        """
        self.session = session
        self.chunk = chunk
        self._loop = loop
        self._clock = OutputClock(loop.streams, pts_us)
        self._peer_us = peer_us
        self._snapshot_every_us = snapshot_every_us
        self._shown_us = self._snapshot_due_us = pts_us
        self._jumped: set[str] = set()  # streams whose next frames do not follow
        self._unended: dict[str, TextOut] = {}  # the newest words of each stream's utterance
        self._emissions: list[Emission] = []

    @property
    def next_us(self) -> int:
        """Media time at which the next frame begins."""
        return self._clock.next_us if self._peer_us is None else self._peer_us()

    def take(self) -> list[Emission]:
        """Return everything since the last call, and forget it."""
        emissions, self._emissions = self._emissions, []
        return emissions

    def tell(self, emission: Emission) -> None:
        """Add an emission."""
        self._emissions.append(emission)

    def outputs(
        self, outputs: Sequence[CheckedOutput], open_chunk: OpenChunk, step: int, *, final: bool
    ) -> None:
        """Put outputs out, and before the first of a chunk the receipts for what acts in it.

        Args:
            outputs: of one unit.
            open_chunk: the chunk that they belong to.
            step: the unit's number.
            final: whether the chunk ends with them.
        """
        if outputs:
            self.receipts(open_chunk)
            open_chunk.frames_out = True
            open_chunk.media_out = open_chunk.media_out or any(map(is_media, outputs))
        for output in outputs:
            if isinstance(output, CheckedFrames):
                self._emissions.append(self._frames(output, step))
            elif isinstance(output, CheckedSamples):
                self._emissions.append(self._samples(output, step))
            else:
                self._emissions.append(self._text(output, step, final))

    def receipts(self, open_chunk: OpenChunk) -> None:
        """Give the receipts that a chunk still owes."""
        self._emissions.extend(open_chunk.receipts(self.session, self.chunk, self.next_us))

    def shown(self, durable: Callable[[], Durable | None]) -> int:
        """Note that the chunk is out; return how long it lasts, in microseconds.

        Args:
            durable: makes a snapshot of the state after it, when one is due.
        """
        for text in self._unended.values():
            self._emissions.append(replace(text, text="", pts_us=self.next_us, final=True))
        self._unended.clear()
        self._clock.catch_up(SKEW_US)
        chunk, media_us = self.chunk, self.next_us - self._shown_us
        self.chunk += 1
        self._shown_us = self.next_us
        timeless = self._peer_us is None and not self._loop.has_media
        due = timeless or self.next_us >= self._snapshot_due_us
        if self._snapshot_every_us and due:
            snapshot = durable()
            if snapshot is not None:
                self._emissions.append(SnapshotOut(self.session, chunk, snapshot, self.next_us))
                self._snapshot_due_us = self.next_us + self._snapshot_every_us
        return media_us

    def jump(self, open_chunk: OpenChunk) -> None:
        """Mark what comes next as not following; `open_chunk` is the chunk that was given up."""
        self.chunk += open_chunk.frames_out
        self._unended.clear()
        self._clock.align()
        self._shown_us = self._snapshot_due_us = self.next_us
        self._jumped = {stream.name for stream in self._loop.streams}

    def go_on_at(self, media_us: int) -> None:
        """Begin the next frame at `media_us`, unless that has passed."""
        self._clock.align(media_us)
        self._shown_us = self._snapshot_due_us = self.next_us

    def failed(self, code: FaultCode, step: int, message: str, fatal: bool) -> None:
        """Tell that a step was rolled back."""
        loop = self._loop.name
        failed = StepFailed(self.session, code, self.chunk, step, message, fatal, loop)
        self._emissions.append(failed)

    def _text(self, output: TextOutput, step: int, final: bool) -> TextOut:
        out = TextOut(
            session=self.session,
            stream=output.stream,
            chunk=self.chunk,
            step=step,
            text=output.text,
            pts_us=self.next_us,
            final=final,
            answers=ControlId(output.answers) if output.answers else None,
            loop=self._loop.name,
        )
        self._unended.pop(output.stream, None)
        if not final:
            self._unended[output.stream] = out
        return out

    def _samples(self, output: CheckedSamples, step: int) -> SamplesOut:
        pts_us = self._clock.put_out(output.stream, len(output.samples))
        return SamplesOut(
            session=self.session,
            stream=output.stream,
            chunk=self.chunk,
            step=step,
            pts_us=pts_us,
            duration_us=self._clock.stream_us(output.stream) - pts_us,
            samples=output.samples,
            discontinuity=self._has_jumped(output.stream),
            loop=self._loop.name,
        )

    def _frames(self, output: CheckedFrames, step: int) -> FramesOut:
        header = FramesHeader(
            session=self.session,
            stream=output.stream,
            chunk=self.chunk,
            step=step,
            pts_us=self._clock.put_out(output.stream, len(output.frames)),
            duration_us=self._clock.duration_us(output.stream),
            discontinuity=self._has_jumped(output.stream),
            loop=self._loop.name,
        )
        return FramesOut(header, output.frames)

    def _has_jumped(self, stream: str) -> bool:
        """Tell, once, that what comes next of a stream does not follow."""
        jumped = stream in self._jumped
        self._jumped.discard(stream)
        return jumped
