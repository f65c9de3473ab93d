"""How a setting is chosen by timing it: on quiet machines, on busy ones, and where one fails."""

from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from reverie.models.contract.speed import ComputeSetting
from reverie.models.services.calibration import (
    SettingTimes,
    Stopwatch,
    TimedUnit,
    choose,
    measure,
    steps_for,
)

PLAIN = ComputeSetting("float32", 1)
HALF = ComputeSetting("bfloat16", 1)
TWO = ComputeSetting("float32", 2)
STEPS = 3


class Machine:
    """Time passes here only while a unit works, and by as much as was written down for it."""

    def __init__(self, costs: dict[ComputeSetting, float]) -> None:
        self.costs = costs
        self.failing: dict[ComputeSetting, Exception] = {}
        self.waits: Iterator[float] = repeat(0.0)  # seconds without the core, by unit
        self.wall_s = self.thread_s = 0.0
        self.units = 0

    @property
    def clock(self) -> Stopwatch:
        return Stopwatch(lambda: self.wall_s, lambda: self.thread_s)

    def prepare(self, setting: ComputeSetting) -> TimedUnit:
        machine = self

        class Works:
            def step(self) -> None:
                if setting in machine.failing:
                    raise machine.failing[setting]
                machine.work(setting)

            def rest(self) -> None:
                machine.work(setting)

        return Works()

    def work(self, setting: ComputeSetting) -> None:
        self.units += 1
        self.thread_s += self.costs[setting]
        self.wall_s += self.costs[setting] + next(self.waits)

    def measured(self, *settings: ComputeSetting, budget_s: float = 2.0) -> list[SettingTimes]:
        return measure(settings, self.prepare, budget_s, self.clock)


def test_a_setting_that_is_clearly_faster_is_chosen_with_its_reason() -> None:
    best, reason = choose(Machine({PLAIN: 0.02, HALF: 0.01}).measured(PLAIN, HALF), STEPS)
    assert best.setting == HALF
    assert reason == "2.0 times as fast as float32 on 1 thread"


@pytest.mark.parametrize("cost", [0.0095, 0.01, 0.02])
def test_the_plain_setting_stays_unless_another_is_clearly_faster(cost: float) -> None:
    best, _ = choose(Machine({PLAIN: 0.01, HALF: cost}).measured(PLAIN, HALF), STEPS)
    assert best.setting == PLAIN


def test_a_machine_that_is_busy_throughout_does_not_change_the_choice() -> None:
    machine = Machine({PLAIN: 0.005, HALF: 0.02})
    machine.waits = chain.from_iterable(repeat((0.1, 0.1, 0.0, 0.0)))  # the plain one waits most
    best, _ = choose(machine.measured(PLAIN, HALF), STEPS)
    assert best.setting == PLAIN
    assert best.speed(STEPS).rate_hz == pytest.approx(1 / 0.02), "as with the core to itself"


def test_a_machine_too_busy_to_measure_gets_the_plain_choice() -> None:
    machine = Machine({PLAIN: 0.02, HALF: 0.001})
    machine.waits = repeat(0.4)
    times = machine.measured(PLAIN, HALF)
    best, reason = choose(times, STEPS)
    assert best.setting == PLAIN
    assert "scatter" in reason
    assert steps_for(best, STEPS, 2, wanted_hz=1000.0) == STEPS, "nothing is known, so all stays"


def test_measurements_that_scatter_are_not_believed() -> None:
    scattered = SettingTimes(HALF, [0.001, 0.01, 0.012], [0.01] * 3)
    plain = SettingTimes(PLAIN, [0.01] * 3, [0.01] * 3)
    assert choose([plain, scattered], STEPS)[0] is plain
    scattered_plain = SettingTimes(PLAIN, [0.01, 0.05, 0.2], [0.01] * 3)
    fast = SettingTimes(HALF, [0.001] * 3, [0.001] * 3)
    assert choose([scattered_plain, fast], STEPS)[0] is scattered_plain


def test_threads_that_wait_for_each_other_in_most_rounds_are_not_chosen() -> None:
    machine = Machine({PLAIN: 0.01, TWO: 0.005})
    # Of the work on two threads, one round in three is fast.
    machine.waits = chain.from_iterable(
        repeat((0, 0, 0.05, 0.05, 0, 0, 0.05, 0.05, 0, 0, 0.0, 0.0))
    )
    best, _ = choose(machine.measured(PLAIN, TWO), STEPS)
    assert best.setting == PLAIN
    quiet = Machine({PLAIN: 0.01, TWO: 0.005})
    assert choose(quiet.measured(PLAIN, TWO), STEPS)[0].setting == TWO


def test_a_setting_that_fails_is_skipped_with_its_reason() -> None:
    machine = Machine({PLAIN: 0.01, HALF: 0.001})
    machine.failing[HALF] = RuntimeError("mkldnn: bf16 is not supported on this CPU\nmore")
    times = machine.measured(PLAIN, HALF)
    assert choose(times, STEPS)[0].setting == PLAIN
    speed = times[1].speed(STEPS)
    assert speed.rate_hz is None
    assert speed.skipped == "RuntimeError: mkldnn: bf16 is not supported on this CPU"


def test_where_the_plain_setting_fails_another_one_serves() -> None:
    machine = Machine({PLAIN: 0.01, HALF: 0.05})
    machine.failing[PLAIN] = RuntimeError("no")
    best, reason = choose(machine.measured(PLAIN, HALF), STEPS)
    assert best.setting == HALF
    assert "cannot be used" in reason


def test_a_calibration_ends_in_time_however_slow_the_machine_is() -> None:
    machine = Machine({PLAIN: 0.5, HALF: 0.7})
    machine.measured(PLAIN, HALF, budget_s=2.0)
    assert machine.wall_s <= 2.0 + 2 * 0.7, "no setting is begun after the end"


def test_a_setting_far_behind_is_not_timed_to_the_end() -> None:
    machine = Machine({PLAIN: 0.001, HALF: 0.01})
    times = machine.measured(PLAIN, HALF)
    assert len(times[1].steps_s) < len(times[0].steps_s)


@pytest.mark.parametrize(("wanted_hz", "steps"), [(20, 3), (30, 2), (100, 2)])
def test_steps_are_as_many_as_the_rate_allows_and_never_too_few(wanted_hz: int, steps: int) -> None:
    times = SettingTimes(PLAIN, [0.01] * 3, [0.01] * 3)  # 25 a second with three, 33 with two
    assert steps_for(times, 3, 2, wanted_hz) == steps
