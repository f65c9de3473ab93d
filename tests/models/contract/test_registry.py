"""Finding families: by file, by module, by entry point, and what is said when it fails."""

from pathlib import Path
from textwrap import dedent

import pytest
from stub_model import LOCATION

from reverie.models.contract.errors import OptionError, SpecError, UnknownModelError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.parallel import ParallelPlan
from reverie.models.contract.registry import find_family, installed_families

FAMILY = """
    from __future__ import annotations
    from dataclasses import dataclass, replace
    from stub_model import StubFamily

    @dataclass(frozen=True, slots=True)
    class Note:
        text: str

    def family():
        return StubFamily(frames=len(Note("abc").text))

    def contradiction():
        class Worse(StubFamily):
            @property
            def spec(self):
                return replace(StubFamily().spec, components=())
        return Worse()

    class Half:
        spec = None
        load = None

    class Wordy(Half):
        kernel = None

    def broken():
        import no_such_module
"""


@pytest.fixture
def location(tmp_path: Path) -> str:
    path = tmp_path / "my_model.py"
    path.write_text(dedent(FAMILY))
    return str(path)


def test_a_family_in_a_file_is_found_and_works() -> None:
    family = find_family(LOCATION)
    instance = family.load(LoadOptions(device="cpu"))
    assert family.kernel("world_model", instance).spec.name == "world_model"


def test_a_file_may_use_what_any_module_may(location: str) -> None:
    assert find_family(f"{location}:family").spec.loops[0].chunk_frames == 3


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    for folder, frames in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.py").write_text(
            f"from stub_model import StubFamily\ndef family(): return StubFamily({frames})\n"
        )
    families = [find_family(f"{tmp_path}/{folder}/model.py:family") for folder in "ab"]
    assert [family.spec.loops[0].chunk_frames for family in families] == [1, 2]


def test_a_family_in_a_module_is_found() -> None:
    assert find_family("stub_model:StubFamily").spec.name == "stub"


def test_a_description_that_contradicts_itself_is_refused(location: str) -> None:
    with pytest.raises(SpecError):
        find_family(f"{location}:contradiction")


def test_what_cannot_be_loaded_is_unknown_and_the_reason_is_told(
    location: str, tmp_path: Path
) -> None:
    (tmp_path / "typo.py").write_text("def family(:\n")
    for name, words in {
        "no_such_model": "installed: ",
        f"{location}:nothing": "nothing",
        f"{location}:broken": "no_such_module",
        f"{tmp_path}/none.py:family": "none.py",
        f"{tmp_path}/typo.py:family": "syntax",
        "no_such_module:family": "no_such_module",
        "": "unknown model ''",
    }.items():
        with pytest.raises(UnknownModelError, match=words):
            find_family(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("json:dumps", "must be callable without arguments"),
        ("json:__name__", "must be callable without arguments"),
        ("json:JSONDecoder", "no spec and no load and no kernel"),
        ("LOCATION:Half", "does not make a model family: it has no kernel$"),
        ("LOCATION:Wordy", "its spec is not a ModelSpec"),
        ("LOCATION:nothing", r"my_model\.py has no 'nothing'$"),
        ("mine.py", "to load a file, write mine.py:NAME"),
    ],
)
def test_what_makes_no_family_is_said_in_a_line(location: str, name: str, words: str) -> None:
    with pytest.raises(UnknownModelError, match=words) as refused:
        find_family(name.replace("LOCATION", location))
    assert "\n" not in str(refused.value)


def test_listing_what_is_installed_loads_none_of_it() -> None:
    assert "pocket" in installed_families()


def test_a_plan_that_the_model_cannot_follow_is_refused_before_it_is_loaded() -> None:
    with pytest.raises(
        OptionError,
        match=r"parallel\.tensor must divide the 12 attention heads of model wan, not 5",
    ):
        find_family("wan", ParallelPlan(tensor=5))


def test_a_plan_that_only_this_version_cannot_follow_is_refused_too() -> None:
    with pytest.raises(
        OptionError, match=r"parallel\.tensor must be 1, not 4: this version runs .* one"
    ):
        find_family("wan", ParallelPlan(tensor=4))
