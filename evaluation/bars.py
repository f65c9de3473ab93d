"""The measures, and how good each has to be.

A bar is missed when even the upper end of the interval lies below it. `known_shortfalls.json` lists
the bars that the shipped weights are known to miss, each with its figure and the reason. The table
shows them as short; only a figure that is worse than the listed one by more than its interval
fails. The list is for one version of the weights; for other versions it is empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from reverie.evaluation.samples import Estimate

KNOWN_SHORTFALLS = Path(__file__).parent / "known_shortfalls.json"


class Unit(StrEnum):
    """The unit of a figure."""

    SHARE = "share"
    """Of trials that succeed."""
    PORTION = "portion"
    """The mean of a value between 0 and 1 for each trial."""
    DB = "dB"


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes:
        name: its name in samples.
        title: its name in the table.
        bar: the least acceptable figure; None is reported and not judged.
    """

    name: str
    title: str
    unit: Unit
    bar: float | None


def _share(name: str, title: str, bar: float | None = None) -> Measure:
    return Measure(name, title, Unit.SHARE, bar)


def _portion(name: str, title: str) -> Measure:
    return Measure(name, title, Unit.PORTION, None)


MEASURES = (
    Measure("codec", "codec: a picture there and back", Unit.DB, 32.0),
    _share("actions", "action followed, of five", 0.95),
    _share("prompt_colours", "prompt: asked colours, 4 frames later", 0.90),
    _share("prompt_kept", "prompt: tiles that keep their kind", 0.80),
    _share("late_prompt_colours", "the same after 100 frames: asked colours"),
    _share("late_prompt_kept", "the same after 100 frames: tiles kept"),
    _share("walk_100_tiles", "walking 100 frames: legal tiles", 0.85),
    _share("walk_1000_tiles", "walking 1,000 frames: legal tiles", 0.80),
    _share("walk_1000_colours", "walking 1,000 frames: right colours", 0.95),
    _share("walk_walker", "on the way: walker right", 0.95),
    _share("still_tiles", "standing 300 frames: legal tiles", 0.80),
    _share("still_colours", "standing 300 frames: right colours", 0.95),
    _share("still_walker", "meanwhile: walker right", 0.95),
    _share("still_kept", "standing 300 frames: tiles that keep their kind"),
    Measure("memory", "four steps out and back: what stayed in view", Unit.DB, 22.0),
    _share("narration_facts", "narration: stated facts that are true", 0.90),
    _share("narration_answers", "narration: questions answered rightly", 0.85),
    _share("narration_walking", "narration of a first step: true facts"),
    _portion("true_commonest", "commonest kind of tile on true maps"),
    _portion("walk_100_commonest", "the same after 100 frames of walking"),
    _portion("walk_1000_commonest", "the same after 1,000 frames"),
)


class Shortfall(BaseModel):
    """A bar that is known to be missed.

    Attributes:
        figure: the known figure; a share or dB.
        why: the reason, for the table's reader.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    figure: float = Field(ge=0, le=100, allow_inf_nan=False)
    why: str = Field(min_length=10, max_length=300)


class KnownShortfalls(BaseModel):
    """The bars that one version of the weights is known to miss.

    Attributes:
        weights: the version.
        measures: by the name of the measure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: str
    measures: dict[str, Shortfall]

    def of(self, weights: str) -> dict[str, Shortfall]:
        """Return the known shortfalls of these weights: none for another version."""
        return self.measures if weights == self.weights else {}


def known_shortfalls(path: Path = KNOWN_SHORTFALLS) -> KnownShortfalls:
    """Read the list.

    Raises:
        ValueError: the list is malformed, or names a measure without a bar.
    """
    found = KnownShortfalls.model_validate_json(path.read_bytes())
    barred = {measure.name for measure in MEASURES if measure.bar is not None}
    if unknown := sorted(set(found.measures) - barred):
        raise ValueError(f"{path.name} lists measures without a bar: {', '.join(unknown)}")
    return found


class BarResult(StrEnum):
    """How a figure compares with its bar."""

    TOLD = "told"
    """The measure has no bar."""
    MET = "met"
    WITHIN = "within its interval"
    """Below the bar, by less than the interval."""
    SHORT = "short, and known"
    """Missed, and no worse than the listed figure."""
    MISSED = "missed"


def judge(measure: Measure, found: Estimate, known: Mapping[str, Shortfall]) -> BarResult:
    """Compare a figure with its bar and with the known shortfalls."""
    if measure.bar is None:
        return BarResult.TOLD
    if found.value >= measure.bar:
        return BarResult.MET
    if found.high >= measure.bar:
        return BarResult.WITHIN
    listed = known.get(measure.name)
    return BarResult.SHORT if listed and found.high >= listed.figure else BarResult.MISSED
