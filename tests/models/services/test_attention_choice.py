"""Every family attends with the backend that an operator chose, and makes the same with each."""

from dataclasses import replace

import pytest
from contract import CASES, ContractCase
from torch import Tensor

from reverie.kernels import attention
from reverie.models.contract.errors import OptionError

FAMILIES = {case.name: case for case in CASES if case.name in {"pocket", "wan", "diamond", "oasis"}}
SPEAKER = next(case for case in CASES if case.name == "causal_lm")
CHUNKS = 2


def attending(case: ContractCase, backend: str) -> ContractCase:
    return replace(case, options=replace(case.options, attention=backend))


class Counted:
    """The plain backend, that knows how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
        self.calls += 1
        return attention.plain(q_BAQd, k_BAKd, v_BAKd)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    backend = Counted()
    monkeypatch.setitem(attention.BACKENDS, "plain", backend)
    return backend


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_makes_the_same_pictures_with_each_backend(name: str, counted: Counted) -> None:
    made = {}
    for backend in ("plain", "sdpa", "products"):
        rig = attending(FAMILIES[name], backend).rig()
        rig.open(FAMILIES[name].request())
        made[backend] = rig.run_shown("s1", CHUNKS)
    assert counted.calls
    # A picture is rounded, and one that came out a level brighter is what the next is made from.
    FAMILIES[name].assert_same(made["plain"], made["sdpa"], tolerance=3)
    FAMILIES[name].assert_same(made["plain"], made["products"], tolerance=3)


def test_a_language_model_says_the_same_with_each_of_its_librarys_backends() -> None:
    made = {}
    for backend in ("auto", "plain", "sdpa"):
        rig = attending(SPEAKER, backend).rig()
        rig.open(SPEAKER.request())
        made[backend] = rig.run_shown("s1", 1)
    SPEAKER.assert_same(made["auto"], made["plain"])
    SPEAKER.assert_same(made["auto"], made["sdpa"])


@pytest.mark.parametrize("name", [*FAMILIES, "causal_lm"])
@pytest.mark.parametrize("backend", ["quick", "flash"])
def test_a_backend_that_is_not_here_is_refused_by_its_field(name: str, backend: str) -> None:
    case = SPEAKER if name == "causal_lm" else FAMILIES[name]
    with pytest.raises(OptionError, match=r"attention: .*(unknown backend|flash)"):
        attending(case, backend).rig()


@pytest.mark.parametrize("name", ["pocket", "diamond", "oasis"])
def test_a_family_without_a_table_of_blocks_says_which_backends_it_has(name: str) -> None:
    with pytest.raises(OptionError, match="attention: unknown backend 'triton'; known:"):
        attending(FAMILIES[name], "triton").rig()


def test_wan_says_what_a_table_of_blocks_needs() -> None:
    with pytest.raises(OptionError, match="attention: triton"):
        attending(FAMILIES["wan"], "triton").rig()


def test_a_model_that_reads_blocks_in_place_names_that_backend_too() -> None:
    with pytest.raises(OptionError, match=r"unknown backend 'quick'; .*flash, triton$"):
        attending(FAMILIES["wan"], "quick").rig()
