"""Figures and their intervals."""

import numpy as np
import pytest

from reverie.evaluation.samples import Sample, estimate, student, wilson


def one_each(hits: int, worlds: int) -> list[Sample]:
    return [Sample("m", world, float(world < hits), 1) for world in range(worlds)]


def test_wilsons_interval_is_that_of_the_books() -> None:
    assert wilson(0.9, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert wilson(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


@pytest.mark.parametrize(
    ("freedom", "true"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (23, 2.069), (500, 1.965)],
)
def test_students_quantile_is_near_the_tables(freedom: int, true: float) -> None:
    assert student(freedom) == pytest.approx(true, rel=0.01)


def test_independent_trials_have_wilsons_interval() -> None:
    found = estimate(one_each(18, 20), share=True)
    assert (found.value, found.trials, found.worlds) == (0.9, 20, 20)
    assert (found.low, found.high) == wilson(0.9, 20)


def test_trials_that_are_alike_within_worlds_count_as_few() -> None:
    alike = [Sample("m", world, 40.0 * (world < 15), 40) for world in range(20)]
    mixed = [Sample("m", world, 30.0 - (world % 3), 40) for world in range(20)]
    of_alike, of_mixed = estimate(alike, share=True), estimate(mixed, share=True)
    assert of_alike.trials == of_mixed.trials == 800
    few, many = wilson(0.75, 20), wilson(of_mixed.value, 800)
    assert of_alike.high - of_alike.low > 0.95 * (few[1] - few[0])
    assert of_mixed.high - of_mixed.low == pytest.approx(many[1] - many[0], rel=0.01)


def test_without_a_failure_the_worlds_are_the_trials() -> None:
    perfect = [Sample("m", world, 40.0, 40) for world in range(6)]
    found = estimate(perfect, share=True)
    assert (found.value, found.low, found.high) == (1.0, *wilson(1.0, 6))


def test_samples_of_one_world_are_joined_before_anything_is_counted() -> None:
    parts = [Sample("m", world % 4, float(world < 8), 1) for world in range(16)]
    whole = [Sample("m", world, 2.0, 4) for world in range(4)]
    assert estimate(parts, share=True) == estimate(whole, share=True)


def test_the_interval_of_shares_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):  # each world has a share of its own, 0.8 on average
        shares = rng.beta(4, 1, size=16)
        hits = rng.binomial(45, shares)
        found = estimate([Sample("m", w, float(h), 45) for w, h in enumerate(hits)], share=True)
        held += found.low <= 0.8 <= found.high
    assert 0.92 < held / 400 <= 1


def test_means_have_students_interval_over_worlds() -> None:
    found = estimate([Sample("m", world, value, 1) for world, value in enumerate((20, 22, 24, 26))],
                     share=False)  # fmt: skip
    assert found.value == 23
    half = student(3) * np.std([20, 22, 24, 26], ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((23 - half, 23 + half))


def test_one_world_says_nothing_of_others() -> None:
    assert estimate([Sample("m", 3, 60.0, 2)], share=False).low == 30
    assert estimate([Sample("m", 3, 1.0, 2)], share=True).high > 0.85


def test_what_is_between_nought_and_one_has_an_interval_in_between() -> None:
    uneven = [Sample("m", world, value, 1) for world, value in enumerate((0.4, 0.99, 1.0))]
    free, bound = estimate(uneven, share=False), estimate(uneven, share=False, most=1.0)
    assert free.high > 1
    assert (bound.low, bound.high) == (free.low if free.low > 0 else 0, 1)


def test_an_estimate_needs_trials() -> None:
    with pytest.raises(ValueError, match="there are no trials"):
        estimate([Sample("m", 0, 0.0, 0)], share=True)
