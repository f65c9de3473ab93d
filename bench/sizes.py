"""How much a run measures: everything in full, or what fits into a time at the speed there is."""

from dataclasses import dataclass, replace

WARM_UP_CHUNKS = 8
"""Chunks that are not counted: until then the context window still fills."""

QUICK_S = 90.0
"""What a quick run may take after it has timed the model."""

SHARES = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure, and how long.

    Attributes:
        rounds: how often bare loop and runtime take turns, and keys and no keys.
        chunks: how many chunks each of them makes in one turn.
        presses: how many commands are timed.
        frames: length of the memory run.
        recordings: how often a session is recorded and not recorded.
        settle_frames: that are not counted after a recording has begun or ended.
        tales: turns with words and without.
        speaking_frames: of one such turn at least: a narrator is silent for a while between two
            utterances.
        traced_chunks: in which waits of one loop for another are counted.
        quick: whether it is made smaller where it would take too long.
        share: how much smaller it was made.
    """

    model: str = "pocket"
    rounds: int = 30
    chunks: int = 10
    presses: int = 20
    frames: int = 20_000
    recordings: int = 30
    settle_frames: int = 24
    tales: int = 10
    speaking_frames: int = 60
    traced_chunks: int = 150
    quick: bool = False
    share: float = 1.0

    @classmethod
    def chosen(cls, model: str, *, quick: bool, frames: int | None) -> "BenchOptions":
        """Return the options for a run that is thorough, or as small as `sized` makes it."""
        if not quick:
            return cls(model, frames=frames or 20_000)
        return cls(
            model,
            rounds=9,
            chunks=8,
            presses=8,
            frames=frames or 400,
            recordings=4,
            tales=3,
            quick=True,
        )

    def total_frames(self, chunk_frames: int) -> int:
        """Return how many frames are shown for all of it, for a model of such chunks."""
        turn, warm = self.chunks * chunk_frames, WARM_UP_CHUNKS * chunk_frames
        speed = warm + self.rounds * (2 * turn + 2 * chunk_frames)
        keys = warm + self.presses * 4 * chunk_frames + warm + self.rounds * 2 * turn
        recorded = self.settle_frames + self.recordings * 2 * (turn + self.settle_frames)
        told = self.traced_chunks * chunk_frames
        told += self.tales * 2 * (self.settle_frames + max(turn, self.speaking_frames))
        return speed + keys + 2 * recorded + told + self.frames


def sized(options: BenchOptions, fps: float, chunk_frames: int) -> BenchOptions:
    """Return the largest of some sizes that fits into `QUICK_S`, else the smallest."""
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
        tales=part(options.tales, 2),
        speaking_frames=part(options.speaking_frames, 24),
        traced_chunks=part(options.traced_chunks, 30),
        share=share,
    )
