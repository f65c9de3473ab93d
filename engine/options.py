"""How a driver treats its session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """How a driver treats its session.

    Attributes:
        lead_chunks: chunks that may be put out and not yet seen (`ProgramSpec.lead_chunks`).
        history_chunks: how far back a rewind can go (`LoadOptions.history_chunks`).
        snapshot_every_us: media time between two `SnapshotOut`; the first comes after one chunk.
        snapshots: how many a session may keep by name.
        receipt_for_opening: whether the prompt that it begins with gets one (`OPENING`).
        has_successor: whether another driver takes over what waits when the loop has failed for
            good; else it is given up then.
        capture: whether a `BehaviorRecord` of every chunk is kept for `take_behavior`.
    """

    lead_chunks: int = 1
    history_chunks: int = 8
    snapshot_every_us: int = 2_000_000
    snapshots: int = 8
    capture: bool = False
    receipt_for_opening: bool = False
    has_successor: bool = False


DEFAULT_OPTIONS = DriverOptions()
