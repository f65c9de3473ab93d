"""How much a run measures: everything in full, or what fits into a time limit."""

from dataclasses import dataclass, replace

WARM_UP_CHUNKS = 8
"""Chunks that are not counted, because the context window still fills."""

QUICK_S = 90.0
"""The time limit of a quick run after it has timed the model."""

SHARES = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure, and how long.

    Attributes:
        rounds: number of turns of bare loop and runtime, and with and without keys.
        chunks: chunks of one turn.
        presses: how many commands are timed.
        frames: length of the memory run.
        recordings: number of turns with and without recording.
        settle_frames: frames that are not counted after a recording has begun or ended.
        speech_turns: number of turns with and without narration.
        speaking_frames: least number of frames of one such turn, because a narrator is silent for a
            while between two utterances.
        quick: whether a run that would take too long is made smaller.
        share: the size of the run, as a share of the largest.
    """

    model: str = "pocket"
    rounds: int = 30
    chunks: int = 10
    presses: int = 20
    frames: int = 20_000
    recordings: int = 30
    settle_frames: int = 24
    speech_turns: int = 10
    speaking_frames: int = 60
    quick: bool = False
    share: float = 1.0

    @classmethod
    def chosen(cls, model: str, *, quick: bool, frames: int | None) -> "BenchOptions":
        """Return the options for a full run, or for a quick one, which `sized` can make smaller."""
        if not quick:
            return cls(model, frames=frames or 20_000)
        return cls(
            model,
            rounds=9,
            chunks=8,
            presses=8,
            frames=frames or 400,
            recordings=4,
            speech_turns=3,
            quick=True,
        )

    def total_frames(self, chunk_frames: int) -> int:
        """Return how many frames all measurements take, for chunks of this size."""
        turn, warm = self.chunks * chunk_frames, WARM_UP_CHUNKS * chunk_frames
        speed = warm + self.rounds * (2 * turn + 2 * chunk_frames)
        keys = warm + self.presses * 4 * chunk_frames + warm + self.rounds * 2 * turn
        recorded = self.settle_frames + self.recordings * 2 * (turn + self.settle_frames)
        spoken = self.speech_turns * 2 * (self.settle_frames + max(turn, self.speaking_frames))
        return speed + keys + 2 * recorded + spoken + self.frames


def sized(options: BenchOptions, fps: float, chunk_frames: int) -> BenchOptions:
    """Return the largest size that fits into `QUICK_S`, else the smallest."""
    if not options.quick:
        return options
    sizes = [_shrunk(options, share) for share in SHARES]
    fitting = (size for size in sizes if size.total_frames(chunk_frames) <= fps * QUICK_S)
    return next(fitting, sizes[-1])


def _shrunk(options: BenchOptions, share: float) -> BenchOptions:
    def part(count: int, least: int) -> int:
        return min(count, max(least, round(count * share)))

    return replace(
        options,
        rounds=part(options.rounds, 2),
        chunks=part(options.chunks, 4),
        presses=part(options.presses, 3),
        frames=part(options.frames, 100),
        recordings=part(options.recordings, 2),
        settle_frames=part(options.settle_frames, 6),
        speech_turns=part(options.speech_turns, 2),
        speaking_frames=part(options.speaking_frames, 24),
        share=share,
    )
