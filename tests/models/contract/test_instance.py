"""Options that a family does not support are refused before anything of it is loaded."""

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
        (
            LoadOptions(adapters=(AdapterOption("ink", "ink"),)),
            "adapters: stub does not support LoRAs",
        ),
        (LoadOptions(decoder="taehv"), "decoder: stub supports only its own, not 'taehv'"),
        (LoadOptions(decoder_path="x.pth"), "decoder_path is set, but decoder"),
        (LoadOptions(guidance="adaptive"), "guidance: stub supports only auto, not 'adaptive'"),
        (LoadOptions(precision="float16"), "precision: stub supports auto, float32, not 'float16'"),
    ],
)
def test_what_nobody_would_heed_is_refused_by_its_option(options: LoadOptions, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        require_taken(options, STUB)


@pytest.mark.parametrize("name", ["causal_lm", "diamond", "oasis", "echo"])
def test_a_family_without_guidance_takes_no_choice_of_it(name: str) -> None:
    with pytest.raises(OptionError, match=f"guidance: {name} supports only auto"):
        require_taken(LoadOptions(guidance="two_pass"), find_family(name).spec)


@pytest.mark.parametrize("name", ["pocket", "wan"])
def test_a_family_with_guidance_takes_a_choice_of_it(name: str) -> None:
    require_taken(LoadOptions(guidance="two_pass"), find_family(name).spec)


def test_what_is_heeded_passes() -> None:
    require_taken(LoadOptions(), STUB)
    require_taken(LoadOptions(precision="bfloat16"), replace(STUB, precisions=("bfloat16",)))
