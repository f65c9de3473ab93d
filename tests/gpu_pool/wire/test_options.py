import pytest
from pydantic import ValidationError

from reverie.gpu_pool import ModelOptions, PoolOptions
from reverie.gpu_pool.wire.options import crowded_threads
from reverie.models.contract.instance import AdapterOption, LoadOptions
from reverie.models.contract.parallel import ParallelPlan


def test_a_name_is_all_that_must_be_said() -> None:
    options = PoolOptions(models=(ModelOptions(name="pocket"),))
    assert options.mode == "process"
    assert options.models[0].load_options() == LoadOptions(calibration_s=2.0)


def test_what_an_operator_says_of_a_model_reaches_its_family() -> None:
    told = ModelOptions.model_validate(
        {"name": "wan", "attention": "triton", "parallel": {"tensor": 4}, "game": "Pong"}
    )
    assert told.load_options().game == "Pong"
    assert told.load_options().attention == "triton"
    assert told.load_options().parallel == ParallelPlan(tensor=4)


def test_an_adapter_is_off_until_it_is_chosen_and_merged_in_full() -> None:
    told = ModelOptions.model_validate(
        {
            "name": "wan",
            "adapters": [
                {"name": "ink", "path": "ink.safetensors"},
                {"name": "base", "path": "lora.pt", "merged": True},
                {"name": "oil", "path": "oil", "strength": 0.5, "most": 1.5},
            ],
        }
    )
    assert told.load_options().adapters == (
        AdapterOption("ink", "ink.safetensors", strength=0.0, most=2.0),
        AdapterOption("base", "lora.pt", merged=True, strength=1.0),
        AdapterOption("oil", "oil", strength=0.5, most=1.5),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": ({"name": "a", "adapters": [{"name": "x"}]},)},
        {"models": ({"name": "a", "adapters": [{"name": "X y", "path": "p"}]},)},
        {"models": ({"name": "a", "adapters": [{"name": "x", "path": "p", "strength": 3}]},)},
        {"models": ({"name": "a", "adapters": [{"name": "x", "path": "p"}] * 2},)},
        {"models": ()},
        {"models": ({"name": "a"}, {"name": "a"})},
        {"models": ({"name": ""},)},
        {"models": ({"name": "../a"},)},
        {"models": ({"name": "a", "sessions": 0},)},
        {"models": ({"name": "a", "colour": "red"},)},
        {"models": ({"name": "a", "parallel": {"tensor": 0}},)},
        {"models": ({"name": "a", "parallel": {"pipeline": 2}},)},
        {"models": ({"name": "a"},), "mode": "thread"},
        {"models": ({"name": "a"},), "step_limit_s": 0},
        {"models": ({"name": "a"},), "step_limit_s": float("inf")},
        {"models": ({"name": "a"},), "step_limit_s": float("nan")},
        {"models": ({"name": "a"},), "waiting_line": -1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PoolOptions.model_validate(wrong)


@pytest.mark.parametrize(
    ("threads", "cores", "warned"),
    [((2,), 2, False), ((2,), 1, True), ((0, 2), 2, True), ((0, 0), 1, False), ((4, 4), 6, True)],
)
def test_more_named_threads_than_cores_are_warned_of(
    threads: tuple[int, ...], cores: int, warned: bool
) -> None:
    models = tuple(
        ModelOptions(name=f"model-{index}", threads=count) for index, count in enumerate(threads)
    )
    warning = crowded_threads(PoolOptions(models=models), cores)
    assert bool(warning) is warned
    if warned:
        assert f"model-{len(threads) - 1}: {threads[-1]}" in warning
        assert f"on {cores} cores" in warning
