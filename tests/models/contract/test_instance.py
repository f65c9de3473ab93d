"""Options that a family would not heed are refused before anything of it is loaded."""

from dataclasses import replace

import pytest
from stub_model import StubFamily

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import AdapterOption, LoadOptions, require_taken
from reverie.models.contract.registry import find_family

STUB = StubFamily().spec


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LoadOptions(adapters=(AdapterOption("ink", "ink"),)), "stub takes no adapters"),
        (LoadOptions(decoder="taehv"), "stub has no decoder 'taehv'; it has its own alone"),
        (LoadOptions(decoder_path="x.pth"), "decoder_path is given, and no decoder"),
        (LoadOptions(guidance="adaptive"), "guidance: stub has auto alone, not 'adaptive'"),
        (LoadOptions(precision="float16"), "no precision 'float16'; it has auto, float32"),
    ],
)
def test_what_nobody_would_heed_is_refused_by_its_option(options: LoadOptions, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        require_taken(options, STUB)


@pytest.mark.parametrize("name", ["causal_lm", "diamond", "oasis", "echo"])
def test_a_family_without_guidance_takes_no_choice_of_it(name: str) -> None:
    with pytest.raises(OptionError, match=f"guidance: {name} has auto alone"):
        require_taken(LoadOptions(guidance="two_pass"), find_family(name).spec)


@pytest.mark.parametrize("name", ["pocket", "wan"])
def test_a_family_with_guidance_takes_a_choice_of_it(name: str) -> None:
    require_taken(LoadOptions(guidance="two_pass"), find_family(name).spec)


def test_what_is_heeded_passes() -> None:
    require_taken(LoadOptions(), STUB)
    require_taken(LoadOptions(precision="bfloat16"), replace(STUB, precisions=("bfloat16",)))
