"""How a driver treats its session."""

from dataclasses import dataclass

from reverie.models.contract.spec import Lead


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """How a driver treats its session.

    Attributes:
        lead: how far it may run ahead of its viewer (`ProgramSpec.lead`).
        history_chunks: how far back a rewind can go (`LoadOptions.history_chunks`).
        snapshot_every_us: media time between two `SnapshotOut`; the first comes after one chunk.
        snapshots: how many a session may keep by name.
        receipt_for_opening: whether the prompt that it begins with gets one (`OPENING`).
        has_successor: whether another driver takes over what waits when the loop has failed for
            good; else it is given up then.
        capture: whether a `BehaviorRecord` of every chunk is kept for `take_behavior`.
    """

    lead: Lead = Lead()  # noqa: RUF009  # frozen
    history_chunks: int = 8
    snapshot_every_us: int = 2_000_000
    snapshots: int = 8
    capture: bool = False
    receipt_for_opening: bool = False
    has_successor: bool = False


DEFAULT_OPTIONS = DriverOptions()
