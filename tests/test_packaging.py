"""What is shipped: every package listed, and a wheel with the right files that runs elsewhere."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOT_MODULES = {"__init__.py", "__main__.py", "cli.py", "config.py", "host.py"}
NOT_SHIPPED = {"build", "dist", "docs", "examples", "plugins", "runs", "tests", "typings"}


def setuptools_table() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["tool"]["setuptools"]
    return table


def folders_with_code() -> set[str]:
    """Return the dotted names of all folders that hold an `__init__.py` and are to be shipped."""
    found = set()
    for init in ROOT.rglob("__init__.py"):
        parts = init.parent.relative_to(ROOT).parts
        if not parts or (parts[0] not in NOT_SHIPPED and not parts[0].startswith(".")):
            found.add(".".join(("reverie", *parts)))
    return found


def folder_of(package: str) -> Path:
    return ROOT.joinpath(*package.split(".")[1:])


def expected_files() -> set[str]:
    """Return the wheel's paths as pyproject.toml describes them."""
    table = setuptools_table()
    files = {f"reverie/{name}" for name in ROOT_MODULES}
    for package in table["packages"]:
        folder = folder_of(package)
        inside = "reverie" / folder.relative_to(ROOT)
        if folder != ROOT:
            files |= {(inside / module.name).as_posix() for module in folder.glob("*.py")}
        for pattern in table["package-data"].get(package, ()):
            files |= {
                (inside / path.relative_to(folder)).as_posix() for path in folder.glob(pattern)
            }
    return files


def test_every_folder_with_code_is_a_listed_package() -> None:
    assert set(setuptools_table()["packages"]) == folders_with_code()


def test_the_root_holds_no_module_that_would_be_shipped_by_accident() -> None:
    assert {path.name for path in ROOT.glob("*.py")} == ROOT_MODULES


@pytest.mark.parametrize("package", sorted(setuptools_table()["package-data"]))
def test_every_pattern_of_package_data_finds_something(package: str) -> None:
    for pattern in setuptools_table()["package-data"][package]:
        assert list(folder_of(package).glob(pattern)), f"{package}: {pattern} matches nothing"


def test_every_file_of_the_page_is_shipped() -> None:
    patterns = setuptools_table()["package-data"]["reverie.web_client"]
    for path in (ROOT / "web_client").rglob("*"):
        if path.is_file() and path.suffix not in {".py", ".pyc"} and path.name != "package.json":
            name = path.relative_to(ROOT / "web_client").as_posix()
            assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name


def test_the_weights_fit_the_limit() -> None:
    weights = list((ROOT / "models" / "pocket" / "weights").glob("*.safetensors"))
    assert weights
    assert sum(path.stat().st_size for path in weights) <= 16 * 2**20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the tree, so that no old build can slip into it."""
    tree = tmp_path_factory.mktemp("tree") / "reverie"
    shutil.copytree(
        ROOT,
        tree,
        symlinks=True,
        ignore=shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info", "__pycache__"),
    )
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(out), str(tree)], check=True, timeout=300)
    (built,) = out.glob("reverie-*.whl")
    return built


@pytest.mark.timeout(300)
def test_the_wheel_holds_exactly_the_right_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == expected_files()
    must = {
        "reverie/py.typed",
        "reverie/sessions/protocol/schema.json",
        "reverie/web_client/index.html",
    }
    assert must <= files


@pytest.mark.timeout(300)
def test_the_wheel_runs_from_another_folder_without_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = (
        "import reverie, importlib.resources as r, reverie.models.contract.registry as m;"
        "print(reverie.__file__);"
        "assert (r.files('reverie.web_client') / 'index.html').is_file();"
        "m.find_family('pocket')"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))


def test_texts_name_only_extras_that_there_are_and_no_index_that_has_them() -> None:
    """The package is on no index, so an extra is installed from a checkout: `.[wan]`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    texts = [
        path
        for kind in ("py", "md", "js", "html")
        for path in ROOT.rglob(f"*.{kind}")
        if not {"build", "runs", "typings", ".venv"} & set(path.relative_to(ROOT).parts)
        and path != Path(__file__)
    ]
    named = [(path, text) for path in texts if (text := path.read_text(encoding="utf-8"))]
    assert [path for path, text in named if "reverie[" in text] == []
    told = {name for _, text in named for name in re.findall(r"install '\.\[(\w+)\]'", text)}
    assert told <= extras
    assert {"gpu", "lm", "vad", "wan", "livekit"} <= told
