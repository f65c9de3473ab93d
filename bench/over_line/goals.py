"""What each row of `reverie bench --line` must reach."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.bench.over_line.rows import Row
from reverie.bench.over_line.turns import SideSummary

LEAST_RATE = 0.97
MOST_SHOWN_RATIO = 1.2
MOST_OLDER_MS = 300.0
STARVED_RATE = 0.5
STARVED_GAP_MS = 1000.0
STARVED_COMMAND_MS = 500.0
FRAMES_OF_COMMAND = 2


@dataclass(frozen=True, slots=True)
class RowResult:
    """What was measured for one row; bare is None where only the server was."""

    row: Row
    ours: SideSummary
    bare: SideSummary | None


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that a row must reach.

    Attributes:
        met: None where it could not be measured.
    """

    text: str
    met: bool | None


def goals_of(result: RowResult, others: Sequence[RowResult]) -> tuple[Goal, ...]:
    """Return the goals of a row; some are about other rows of the run."""
    row, ours = result.row, result.ours
    match row.about:
        case "rate":
            return (
                Goal(f"rate {LEAST_RATE}", ours.rate >= LEAST_RATE),
                _most("command", ours.command_p50, _command_ms(row)),
            )
        case "act" if row.act == "now":
            return (_most("command", ours.command_p50, _command_ms(row)),)
        case "shown":
            bare = result.bare
            ratio = _ratio(ours.age_p50, bare.age_p50 if bare else None)
            said = "?" if ratio is None else f"{ratio:.2f}"
            met = None if ratio is None else ratio <= MOST_SHOWN_RATIO
            return (Goal(f"{said} of bare's shown, at most {MOST_SHOWN_RATIO}", met),)
        case "congested" if row.rate_kbit:
            free = next((each for each in others if _is_free(each.row, row)), None)
            free_ms = None if free is None else free.ours.age_p50
            allowed = None if free_ms is None else free_ms + MOST_OLDER_MS
            return (_most("shown", ours.age_p50, allowed),)
        case "starved":
            allowed_ms = row.round_trip_ms + row.toy.step_ms + STARVED_COMMAND_MS
            return (
                Goal(f"rate {STARVED_RATE}", ours.rate >= STARVED_RATE),
                _most("gap", ours.longest_gap_ms, STARVED_GAP_MS),
                _most("command", ours.command_p50, allowed_ms),
            )
        case _:
            return ()


def _command_ms(row: Row) -> float:
    """Return how long a key may take: a round trip, a step and two frames."""
    return row.round_trip_ms + row.toy.step_ms + FRAMES_OF_COMMAND * row.toy.frame_ms


def _is_free(row: Row, congested: Row) -> bool:
    return row.about == "congested" and not row.rate_kbit and row.transport == congested.transport


def _most(what: str, found: float | None, allowed_ms: float | None) -> Goal:
    if allowed_ms is None:
        return Goal(f"{what} ?", None)
    return Goal(f"{what} {allowed_ms:.0f}", found is not None and found <= allowed_ms)


def _ratio(ours: float | None, bare: float | None) -> float | None:
    return ours / bare if ours is not None and bare else None
