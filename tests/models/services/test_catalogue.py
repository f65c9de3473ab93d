"""The list of models, for people."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from stub_model import StubFamily

from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.registry import ModelFamily
from reverie.models.contract.spec import ModelSpec
from reverie.models.services import catalogue as listed
from reverie.models.services.catalogue import CatalogueEntry, as_text, catalogue, memory_of


@pytest.fixture(scope="module")
def entries() -> dict[str, CatalogueEntry]:
    return {entry.name: entry for entry in catalogue()}


class Weightless(StubFamily):
    """Has a description, and nothing to load."""

    def load(self, options: LoadOptions) -> ModelInstance:
        raise CheckpointError("there are no weights")


class NamedOasis(StubFamily):
    """Has the name of a family that ships."""

    @property
    def spec(self) -> ModelSpec:
        return replace(super().spec, name="oasis")


class Contradicting(StubFamily):
    """Cannot even be described."""

    def __init__(self) -> None:
        raise ImportError("no module called elsewhere")


def test_every_family_is_listed_with_its_loops_and_what_they_can_do(
    entries: dict[str, CatalogueEntry],
) -> None:
    assert {"pocket", "wan", "diamond", "oasis", "causal_lm"} <= set(entries)
    pocket = entries["pocket"]
    assert pocket.programs[0] == "world"
    assert [name for name, _ in pocket.loops[:2]] == ["world_model", "ar_decode"]
    assert "actions" in dict(pocket.loops)["world_model"]
    assert "actions" not in dict(pocket.loops)["restyle"]
    assert all(entry.fault == "" for entry in entries.values())


@pytest.mark.parametrize("name", ["pocket", "wan", "diamond", "oasis"])
def test_the_memory_of_a_session_is_known_without_weights(
    entries: dict[str, CatalogueEntry], name: str
) -> None:
    assert all("iB in " in memory for _, memory in entries[name].memory)


def test_every_public_size_of_a_family_has_its_memory(entries: dict[str, CatalogueEntry]) -> None:
    assert [size for size, _ in entries["wan"].memory] == ["1.3B", "14B"]
    assert [size for size, _ in entries["diamond"].memory] == ["atari", "csgo"]


def test_the_memory_of_a_language_model_is_left_to_its_weights(
    entries: dict[str, CatalogueEntry],
) -> None:
    assert entries["causal_lm"].memory == (("", "depends on the weights"),)


@pytest.mark.parametrize(
    ("name", "weights", "licence", "commercial"),
    [
        ("wan", "Self-Forcing", "CC BY-NC-SA 4.0", False),
        ("wan", "LongLive-1.3B", "CC BY-NC-SA 4.0", False),
        ("wan", "Wan2.1-T2V-1.3B", "Apache-2.0", True),
        ("oasis", "Oasis-500M", "MIT", True),
    ],
)
def test_licences_of_public_weights_are_told_with_the_page_that_names_them(
    entries: dict[str, CatalogueEntry], name: str, weights: str, licence: str, commercial: bool
) -> None:
    [found] = [each for each in entries[name].weights if each.name == weights]
    assert (found.licence, found.commercial) == (licence, commercial)
    [line] = [line for line in as_text([entries[name]]).splitlines() if f" {weights}: " in line]
    assert ("not for commercial use" in line) is not commercial
    assert f"({found.source})" in line


@pytest.mark.parametrize("name", ["pocket", "wan", "diamond", "oasis", "causal_lm", "echo"])
def test_nothing_is_unknown_of_the_families_that_ship(
    entries: dict[str, CatalogueEntry], name: str
) -> None:
    assert "unknown" not in as_text([entries[name]])


def test_a_strangers_family_is_not_taken_for_one_that_ships_under_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    families: dict[str, Callable[[], ModelFamily]] = {"oasis": NamedOasis}
    monkeypatch.setattr(listed, "installed_families", lambda: families)
    monkeypatch.setattr("reverie.models.contract.registry.installed_families", lambda: families)
    [entry] = catalogue()
    assert entry.weights == ()
    assert "public weights: unknown" in as_text([entry])


def test_memory_is_told_in_a_unit_that_can_be_read() -> None:
    assert (
        memory_of(StubFamily().spec) == "416 B in float32 with a history of 8 chunks, 192 B with 1"
    )


@pytest.mark.parametrize(
    ("family", "load", "fault"),
    [
        (Weightless, False, ""),
        (Weightless, True, "there are no weights"),
        (Contradicting, False, "cannot load model 'stub': no module called elsewhere"),
    ],
)
def test_a_model_that_cannot_be_served_is_listed_with_its_fault(
    monkeypatch: pytest.MonkeyPatch, family: Callable[[], ModelFamily], load: bool, fault: str
) -> None:
    found = {"stub": family}
    monkeypatch.setattr(listed, "installed_families", lambda: found)
    monkeypatch.setattr("reverie.models.contract.registry.installed_families", lambda: found)
    [entry] = catalogue(load=load)
    assert entry.fault == fault


def raising(error: Exception) -> Callable[[], ModelFamily]:
    def family() -> ModelFamily:
        raise error

    return family


class Unprecise(StubFamily):
    """Has an unknown precision."""

    def __init__(self, *precisions: str) -> None:
        super().__init__()
        self.precisions = precisions

    @property
    def spec(self) -> ModelSpec:
        return replace(super().spec, precisions=self.precisions)


class Unspoken(StubFamily):
    """Does not even get so far as to describe itself."""

    @property
    def variants(self) -> dict[str, ModelSpec]:
        raise ZeroDivisionError("by zero")


BROKEN: dict[str, tuple[Callable[[], ModelFamily], str]] = {
    "name": (raising(NameError("no torhc")), "cannot load model 'name': NameError: no torhc"),
    "type": (raising(TypeError("one\ntwo")), "cannot load model 'type': TypeError: one"),
    "key": (raising(KeyError("x")), "cannot load model 'key': KeyError: 'x'"),
    "silent": (raising(AssertionError()), "cannot load model 'silent': AssertionError"),
    "none": (Unprecise, "model stub has no precision"),
    "float7": (lambda: Unprecise("float7"), "model stub has the unknown precision 'float7'"),
    "variants": (Unspoken, "ZeroDivisionError: by zero"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_one_broken_family_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    made, fault = BROKEN[broken]
    found: dict[str, Callable[[], ModelFamily]] = {broken: made, "stub": StubFamily}
    monkeypatch.setattr(listed, "installed_families", lambda: found)
    monkeypatch.setattr("reverie.models.contract.registry.installed_families", lambda: found)
    faults = {entry.name: entry.fault for entry in catalogue()}
    assert faults["stub"] == ""
    assert faults[broken].startswith(fault)


def test_an_entry_is_a_paragraph_and_its_fault_stands_below() -> None:
    entry = CatalogueEntry(
        "wave",
        title="A wave",
        programs=("world",),
        loops=(("world_model", ("actions", "fork")), ("bare", ())),
        memory=(("", "1 GiB"), ("large", "2 GiB")),
        licence="MIT",
        fault="no weights",
    )
    assert as_text([entry, CatalogueEntry("broken", fault="no module")]).splitlines() == [
        "wave: A wave",
        "  programs   world",
        "  loop       world_model: actions, fork",
        "  loop       bare: no capabilities",
        "  memory     1 GiB",
        "  memory     large: 2 GiB",
        "  licence    MIT; public weights: unknown",
        "  cannot be served here: no weights",
        "",
        "broken",
        "  cannot be served here: no module",
    ]
