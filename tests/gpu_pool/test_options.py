import pytest
from pydantic import ValidationError

from reverie.gpu_pool import ModelOptions, PoolOptions
from reverie.models.instance import LoadOptions


def test_a_name_is_all_that_must_be_said() -> None:
    options = PoolOptions(models=(ModelOptions(name="pocket"),))
    assert options.mode == "process"
    assert options.models[0].load_options() == LoadOptions()


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": ()},
        {"models": ({"name": "a"}, {"name": "a"})},
        {"models": ({"name": ""},)},
        {"models": ({"name": "../a"},)},
        {"models": ({"name": "a", "sessions": 0},)},
        {"models": ({"name": "a", "colour": "red"},)},
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
