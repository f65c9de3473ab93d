"""What `auto` means for the embedded model: it is measured, and what is named stays."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from tiny_pocket import tiny_options, tiny_weights

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions, require_taken
from reverie.models.contract.speed import ComputeSetting
from reverie.models.pocket.calibration import (
    FEWEST_STEPS,
    Networks,
    PocketChoice,
    PocketUnit,
    calibrated,
    slower,
)
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.spec import DEFAULT_STEPS, POCKET, Pocket
from reverie.models.services.calibration import SettingTimes
from reverie.models.services.placement import type_of

OPEN = replace(tiny_options(), precision="auto", threads=0, calibration_s=20.0)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def networks(precision: str) -> PocketNets:
    return load_pocket(tiny_weights(), torch.device("cpu"), type_of(precision))


def without_half(precision: str) -> PocketNets:
    if precision == "bfloat16":
        raise RuntimeError("bfloat16 is not supported here")
    return networks(precision)


def choice(
    options: LoadOptions, *, cores: int = 2, plain: str = "float32", load: Networks = networks
) -> PocketChoice:
    return calibrated(options, POCKET, plain, load, cores=cores)


def settings(found: PocketChoice) -> set[ComputeSetting]:
    return {tried.setting for tried in found.speed.tried}


def test_all_precisions_are_compared_and_the_networks_are_of_the_one_that_is_told() -> None:
    found = choice(OPEN)
    assert settings(found) == {ComputeSetting("float32", 1), ComputeSetting("bfloat16", 1)}
    assert found.nets.dtype is type_of(found.speed.setting.precision)
    assert torch.get_num_threads() == found.speed.setting.threads == 1
    assert found.speed.declared_hz == 12.0


def test_threads_leave_a_core_to_the_server_and_are_shared_among_workers() -> None:
    assert {each.threads for each in settings(choice(OPEN, cores=2))} == {1}
    assert {each.threads for each in settings(choice(OPEN, cores=3))} == {1, 2}
    shared = replace(OPEN, workers=2)
    assert {each.threads for each in settings(choice(shared, cores=4))} == {1}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_precision_that_a_deployment_names_is_never_overruled(precision: str) -> None:
    found = choice(replace(OPEN, precision=precision), plain="bfloat16")
    assert found.speed.setting.precision == precision
    assert {each.precision for each in settings(found)} == {precision}


def test_threads_that_a_deployment_names_stay_and_are_compared_with_one() -> None:
    found = choice(replace(OPEN, precision="float32", threads=2))
    assert found.speed.setting == ComputeSetting("float32", 2)
    assert settings(found) == {ComputeSetting("float32", 2), ComputeSetting("float32", 1)}
    assert torch.get_num_threads() == 2


def test_threads_that_make_it_slower_are_warned_of() -> None:
    slow = SettingTimes(ComputeSetting("float32", 2), [0.2] * 3, [0.1] * 3)
    fast = SettingTimes(ComputeSetting("float32", 1), [0.02] * 3, [0.01] * 3)
    assert "threads: 2 makes 1.4 pictures a second here, and threads: 1 makes 14.3" in slower(
        slow, [fast], 3
    )
    assert slower(fast, [slow], 3) == ""


def test_steps_that_a_deployment_names_are_never_overruled() -> None:
    assert choice(replace(OPEN, steps=4)).speed.steps == 4
    assert choice(replace(OPEN, steps=1)).speed.steps == 1


def test_steps_are_chosen_within_what_the_bars_allow() -> None:
    assert FEWEST_STEPS <= choice(OPEN).speed.steps <= DEFAULT_STEPS


def test_a_precision_that_cannot_be_loaded_is_skipped_with_its_reason() -> None:
    found = choice(OPEN, load=without_half)
    assert found.speed.setting.precision == "float32"
    skipped = {each.setting.precision: each.skipped for each in found.speed.tried}
    assert skipped == {
        "float32": "",
        "bfloat16": "RuntimeError: bfloat16 is not supported here",
    }


def test_a_unit_whose_numbers_are_not_finite_is_refused() -> None:
    nets = networks("float32")
    unit = PocketUnit(nets)
    unit.step()
    nets.world.leave.bias.data.fill_(float("nan"))
    with pytest.raises(ArithmeticError, match="not finite"):
        unit.step()


def test_sessions_begin_with_the_steps_that_were_chosen() -> None:
    instance = Pocket().load(replace(OPEN, steps=2))
    defaults = {each.name: each.default for each in instance.spec.program_parameters("world")}
    assert defaults["steps"] == 2
    assert instance.spec.speed is not None
    assert instance.spec.speed.steps == 2


def test_without_a_calibration_nothing_is_measured_and_the_plain_choice_stays() -> None:
    instance = Pocket().load(replace(OPEN, calibration_s=0.0))
    assert instance.spec.speed is None
    assert instance.spec is POCKET


@pytest.mark.parametrize("steps", [5, 100])
def test_more_steps_than_the_model_takes_are_refused(steps: int) -> None:
    with pytest.raises(OptionError, match="steps: pocket takes 1 to 4"):
        require_taken(LoadOptions(steps=steps), POCKET)
