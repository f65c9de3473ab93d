"""The command, as a person types it."""

from pathlib import Path

import pytest

from reverie import __version__
from reverie.cli import main


def run(*arguments: str) -> int:
    """Run a command and return its exit status, however it ends."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((), ["serve", "models", "train", "bench", "REVERIE_SERVER__PORT"]),
        (("serve",), ["--config", "--host", "--port", "--model", "--inline", "Ctrl-C"]),
        (("models",), ["--no-load"]),
        (("train",), ["pocket"]),
        (("train", "pocket"), ["--out", "--seed", "--minutes", "--fresh", "runs/pocket"]),
        (("bench",), ["--json", "--model", "--quick", "--frames"]),
    ],
)
def test_help_tells_what_can_be_said(
    command: tuple[str, ...], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command, "--help") == 0
    text = capsys.readouterr().out
    assert all(word in text for word in said)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == f"reverie {__version__}"


@pytest.mark.parametrize("arguments", [(), ("dance",), ("serve", "--port", "http"), ("train",)])
def test_what_is_not_understood_ends_with_status_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert "usage: reverie" in capsys.readouterr().err


def test_an_invalid_setting_is_named_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--port", "70000") == 2
    assert "server.port" in (said := capsys.readouterr().err)
    assert "--port" in said


def test_a_deployment_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("serve", "--config", str(tmp_path / "absent.yaml")) == 2
    assert "absent.yaml" in capsys.readouterr().err


def test_models_lists_the_embedded_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("models", "--no-load") == 0
    assert "pocket" in capsys.readouterr().out


def test_a_bench_of_a_model_that_is_not_there_fails_and_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("bench", "--model", "no-such-model") == 1
    assert "no-such-model" in capsys.readouterr().err
