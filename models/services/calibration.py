"""Choose a way to compute by timing it, when a model is loaded.

A machine may be busy while this runs. So all settings take turns, in rounds; of each only the
fastest rounds count; and the plain setting stays unless another one is clearly faster. A setting
of one thread is timed by the processor time of that thread, which does not grow while another
process has the core. With several threads that says nothing: they wait for each other, so such a
setting must be faster in most rounds, waiting included.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from reverie.models.contract.speed import ComputeSetting, SettingSpeed

CLEARLY = 1.1
"""How much faster than the plain setting another one must be."""
SETTLED = 1.15
"""How far apart the two fastest rounds of a setting may be."""
ROUNDS, FEWEST_ROUNDS = 12, 3


class TimedUnit(Protocol):
    """The work of a picture under one setting."""

    def step(self) -> None:
        """Run one denoise step.

        Raises:
            Exception: it cannot be run here under this setting.
        """

    def rest(self) -> None:
        """Run what a picture needs besides its denoise steps."""


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """The clocks, in seconds: of the world, and of this thread's processor time."""

    wall: Callable[[], float] = time.perf_counter
    thread: Callable[[], float] = time.thread_time


@dataclass(slots=True)
class SettingTimes:
    """The rounds of one setting: seconds of a step and of the rest, in each.

    Attributes:
        failure: why it cannot be used; empty when it can.
    """

    setting: ComputeSetting
    steps_s: list[float] = field(default_factory=list)
    rests_s: list[float] = field(default_factory=list)
    failure: str = ""

    def picture_s(self, steps: int) -> float:
        """Return the seconds of a picture: at its best, or usually where threads have to wait."""
        of = min if self.setting.threads == 1 else median
        return steps * of(self.steps_s) + of(self.rests_s)

    @property
    def settled(self) -> bool:
        """Whether there are enough rounds, and the fastest ones agree."""
        if len(self.steps_s) < FEWEST_ROUNDS:
            return False
        first, second = sorted(self.steps_s)[:2]
        return second <= SETTLED * first

    def speed(self, steps: int) -> SettingSpeed:
        """Return it for people."""
        if not self.steps_s:
            return SettingSpeed(self.setting, None, self.failure or "there was no time for it")
        return SettingSpeed(self.setting, 1 / self.picture_s(steps))


def measure(
    settings: Sequence[ComputeSetting],
    prepare: Callable[[ComputeSetting], TimedUnit],
    budget_s: float,
    clock: Stopwatch = Stopwatch(),
) -> list[SettingTimes]:
    """Time settings in turns, the first of them first, for at most about `budget_s`.

    Args:
        settings: what to compare.
        prepare: makes a setting ready and returns its work; called again before each round.
    """
    end_s = clock.wall() + budget_s
    times = [SettingTimes(setting) for setting in settings]
    for turn in range(ROUNDS + 1):
        for each in times:
            if clock.wall() >= end_s:
                return times
            if not each.failure and not _hopeless(each, times[0]):
                _time(each, prepare, clock, counts=turn > 0)
    return times


def _hopeless(each: SettingTimes, plain: SettingTimes) -> bool:
    """Tell whether a setting has been far behind for long enough."""
    enough = min(len(each.steps_s), len(plain.steps_s)) >= FEWEST_ROUNDS
    return enough and min(each.steps_s) > 1.5 * min(plain.steps_s)


def _time(
    each: SettingTimes,
    prepare: Callable[[ComputeSetting], TimedUnit],
    clock: Stopwatch,
    *,
    counts: bool,
) -> None:
    try:
        unit = prepare(each.setting)
        now = clock.thread if each.setting.threads == 1 else clock.wall
        begun_s = now()
        unit.step()
        between_s = now()
        unit.rest()
        done_s = now()
    except Exception as error:  # whatever a library says of a kind of number that it lacks
        each.failure = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        each.steps_s.clear()
        each.rests_s.clear()
        return
    if counts:  # the first time, libraries prepare their own things
        each.steps_s.append(between_s - begun_s)
        each.rests_s.append(done_s - between_s)


def choose(times: Sequence[SettingTimes], steps: int) -> tuple[SettingTimes, str]:
    """Return the fastest setting, and why; the first is the plain one, and stays when in doubt."""
    plain, *others = times
    usable = [each for each in others if each.settled]
    if plain.failure:
        best = min(usable, key=lambda each: each.picture_s(steps), default=plain)
        return best, f"{plain.setting} cannot be used here: {plain.failure}"
    if not plain.settled:
        return plain, "the measurements scatter, so the plain setting stays"
    best = min([plain, *usable], key=lambda each: each.picture_s(steps))
    if best is plain or best.picture_s(steps) * CLEARLY > plain.picture_s(steps):
        return plain, "no other setting is clearly faster" if others else "there is no other"
    faster = plain.picture_s(steps) / best.picture_s(steps)
    return best, f"{faster:.1f} times as fast as {plain.setting}"


def steps_for(times: SettingTimes, most: int, fewest: int, wanted_hz: float) -> int:
    """Return the most denoise steps that keep a rate; `most` where the measurements scatter."""
    if not times.settled:
        return most
    for steps in range(most, fewest, -1):
        if 1 / times.picture_s(steps) >= wanted_hz:
            return steps
    return fewest
