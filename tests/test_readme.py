"""What the README shows is what the repository holds."""

import ast
import re
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


def test_the_example_is_shown_as_it_is_and_fits_in_thirty_lines() -> None:
    example = (ROOT / "examples" / "plasma.py").read_text(encoding="utf-8")
    assert example in blocks("python")
    tree = ast.parse(example)
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


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_every_file_that_is_named_is_there(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    named = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.[a-z]+)?)`", text)
    told = [name for name in linked + named if not name.startswith("runs/")]
    assert [name for name in told if not (ROOT / name).exists()] == []
