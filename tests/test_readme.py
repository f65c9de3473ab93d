"""What the README shows is what the repository holds."""

import ast
import re
import runpy
from contextlib import aclosing
from pathlib import Path

import pytest
import yaml

from reverie.config import Deployment, Setting
from reverie.host import Engine

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_readme_is_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []


def test_the_example_fits_in_thirty_lines() -> None:
    tree = ast.parse((ROOT / "examples" / "plasma.py").read_text(encoding="utf-8"))
    written = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.expr)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    assert len(written) <= 30


def plasma(name: str = "plasma") -> Deployment:
    models = [{"name": name, "family": f"{ROOT / 'examples' / 'plasma.py'}:family"}]
    settings = [
        Setting(("pool", "mode"), "inline", "test"),
        Setting(("pool", "models"), models, "test"),
    ]
    return Deployment.read(settings=settings)


@pytest.mark.timeout(60)
def test_the_walk_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = blocks("python")[0]
    monkeypatch.setattr(Engine, "from_deployment", lambda: Engine(plasma("pocket")))
    exec(compile(walk, "walk.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "100 pictures of (120, 160, 3)\n"


async def test_the_example_plays() -> None:
    async with (
        Engine.from_deployment(plasma()) as engine,
        engine.session(prompt="embers") as session,
        aclosing(session.stream()) as events,
    ):
        pictures = []
        async for event in events:
            if event.type == "media.chunk":
                pictures.append(session.picture(event))
                if len(pictures) == 3:
                    break
    assert pictures[0].shape == (120, 160, 3)
    assert (pictures[0] != pictures[2]).any()


@pytest.mark.parametrize("block", blocks("python"))
def test_every_python_block_is_python(block: str) -> None:
    ast.parse(block)


def test_the_deployment_shown_is_valid(tmp_path: Path) -> None:
    (block,) = blocks("yaml")
    assert yaml.safe_load(block)
    file = tmp_path / "deployment.yaml"
    file.write_text(block, encoding="utf-8")
    assert Deployment.read(file).server.port == 9000


def test_the_page_of_settings_is_fresh() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "configuration.py"))
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == made["page"](), "run: python docs/configuration.py"
    settings = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, flags=re.MULTILINE)
    assert [name for name, meaning in settings if not meaning.strip()] == []
    assert re.findall(r"annotated|secretstr", page) == []


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "ARCHITECTURE.md",
        *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    ],
)
def test_every_file_that_is_named_is_there(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    folder = (ROOT / page).parent
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    named = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.[a-z]+)?)`", text)
    told = [ROOT / name for name in named if folder == ROOT and not name.startswith("runs/")]
    told += [folder / name for name in linked]
    assert [path for path in told if not path.exists()] == []


def test_every_module_that_the_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    bare = set(re.findall(r"`([a-z_0-9]+\.(?:py|js))`", text))
    at_the_root = {path.name for path in ROOT.iterdir()}
    assert sorted(bare - at_the_root) == []
