"""The command line, as an operator types it."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from stub_model import LOCATION

from reverie import __version__
from reverie.cli import main, make_parser
from reverie.commands.models_to_serve import settings_of
from reverie.commands.serve import _serve_until_stopped
from reverie.config import Deployment
from reverie.models.pocket.checkpoint import load_pocket


def run(*arguments: str) -> int:
    """Run a command and return its exit status, however it ends."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((), ["serve", "models", "train", "eval", "bench", "REVERIE_SERVER__PORT"]),
        (("serve",), ["--config", "--host", "--port", "--model", "--inline", "Ctrl-C"]),
        (("models",), ["--load"]),
        (("train",), ["pocket"]),
        (("train", "pocket"), ["--out", "--seed", "--minutes", "--fresh", "runs/pocket"]),
        (("eval",), ["pocket"]),
        (("eval", "pocket"), ["--quick", "--json", "--steps", "--checkpoint", "--strip"]),
        (("bench",), ["--json", "--model", "--quick", "--frames", "--media", "--line"]),
    ],
)
def test_help_names_the_commands_and_options(
    command: tuple[str, ...], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command, "--help") == 0
    text = capsys.readouterr().out
    assert all(word in text for word in said)


def test_help_imports_nothing_heavy() -> None:
    """Importing them takes longer than the help itself: each command imports what it needs."""
    script = (
        "import sys, reverie.cli as cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'asyncio', 'torch', 'numpy', 'pydantic', 'yaml', 'starlette'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == f"reverie {__version__}"


@pytest.mark.parametrize("arguments", [(), ("dance",), ("serve", "--port", "http"), ("train",)])
def test_a_wrong_command_line_exits_with_status_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert "usage: reverie" in capsys.readouterr().err


def test_an_invalid_setting_is_named_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--port", "70000") == 2
    assert "server.port" in (said := capsys.readouterr().err)
    assert "--port" in said


def test_a_missing_deployment_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("serve", "--config", str(tmp_path / "absent.yaml")) == 2
    assert "absent.yaml" in capsys.readouterr().err


def test_models_lists_the_embedded_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("models") == 0
    assert "pocket" in capsys.readouterr().out


@pytest.mark.timeout(120)
def test_a_model_can_be_trained_and_leaves_its_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("train", "pocket", "--preset", "tiny", "--device", "cpu", "--out", str(tmp_path))
    assert run(*command) == 0
    weights = tmp_path / "pocket.safetensors"
    assert str(weights) in capsys.readouterr().out
    assert load_pocket(weights).world.config.width == 32


def test_training_the_world_needs_a_codec(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path))
    assert run("train", "pocket", "--preset", "tiny", "--stage", "world", *out) == 1
    assert "codec.pt" in capsys.readouterr().err


def test_bench_names_a_missing_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("bench", "--model", "no-such-model") == 1
    assert "no-such-model" in capsys.readouterr().err


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `reverie serve` on a free port in a process of its own, and kill it after the block."""
    command = [sys.executable, "-m", "reverie", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_serve_answers_while_it_loads_and_exits_cleanly_on_sigterm() -> None:
    with serving("--model", f"stub={LOCATION}") as process:
        loading = line(process)
        url = loading.split()[3]
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert line(process) == f"reverie is ready: stub at {url}\n"
        assert httpx.get(f"{url}/readyz").json()["ready"]
        process.send_signal(signal.SIGTERM)
        said, logged = process.communicate(timeout=20)
        assert (process.returncode, said, logged) == (0, "", "")


def test_serve_can_run_models_in_its_own_process() -> None:
    with serving("--inline", "--model", f"stub={LOCATION}") as process:
        line(process)
        assert "ready: stub" in line(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 0


def test_serve_ends_with_a_reason_when_a_model_cannot_be_loaded() -> None:
    with serving("--model", "no-such-model") as process:
        _, logged = process.communicate(timeout=40)
        assert process.returncode == 1
        assert "reverie: model no-such-model cannot be loaded: unknown model" in logged
        assert "Cancelled" not in logged


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"voice": {"engine": "espeak"}}, "voice.engine is espeak, but there is no espeak-ng on"),
        ({"recordings": {"folder": "/dev/null"}}, "recordings.folder cannot be used: "),
    ],
)
async def test_serve_ends_with_a_reason_when_a_folder_or_voice_of_the_deployment_is_missing(
    settings: dict[str, object],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await _serve_until_stopped(Deployment.model_validate(settings)) == 1
    assert said in capsys.readouterr().err


def test_serve_ends_with_a_reason_when_it_cannot_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving("--model", f"stub={LOCATION}", "--port", str(port)) as process:
            _, logged = process.communicate(timeout=40)
            assert process.returncode == 1
            assert logged == (
                f"reverie: cannot listen on 127.0.0.1:{port}: the port is in use; choose another "
                "with --port or REVERIE_SERVER__PORT (make serve PORT=...)\n"
            )


def test_serve_names_a_missing_host() -> None:
    with serving("--model", f"stub={LOCATION}", "--host", "192.0.2.1") as process:
        _, logged = process.communicate(timeout=40)
        assert process.returncode == 1
        assert logged.startswith("reverie: cannot listen on 192.0.2.1:0: ")
        assert "--host" in logged


def test_serve_can_be_stopped_while_it_loads() -> None:
    with serving("--model", f"stub={LOCATION}") as process:
        line(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "name", "family"),
    [
        ("examples/plasma.py:family", "plasma", "examples/plasma.py:family"),
        ("/a/b.c/plasma.py:family", "plasma", "/a/b.c/plasma.py:family"),
        ("/a/plasma.py", "plasma", "/a/plasma.py"),
        ("package.worlds:Fog", "worlds", "package.worlds:Fog"),
        ("fog=package.worlds:Fog", "fog", "package.worlds:Fog"),
        ("fog=pocket", "fog", "pocket"),
        ("pocket", "pocket", ""),
    ],
)
def test_a_model_is_named_after_its_module_unless_a_name_is_given(
    text: str, name: str, family: str
) -> None:
    deployment = Deployment.read(
        settings=settings_of(make_parser().parse_args(["serve", "--model", text]))
    )
    assert [(model.name, model.family) for model in deployment.pool.models] == [(name, family)]


def test_a_game_belongs_to_the_model_before_it() -> None:
    line = ["--model", "diamond", "--checkpoint", "agent.pt", "--game", "Pong", "--model", "pocket"]
    chosen = make_parser().parse_args(["serve", *line])
    diamond, pocket = Deployment.read(settings=settings_of(chosen)).pool.models
    assert (diamond.checkpoint, diamond.game, pocket.game) == ("agent.pt", "Pong", "auto")


def test_adapters_belong_to_the_model_before_them(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--model", "wan", "--lora", "ink=ink.safetensors", "--lora-merged", "d/My Base.pt"]
    chosen = make_parser().parse_args(["serve", "--model", "pocket", *line])
    pocket, wan = Deployment.read(settings=settings_of(chosen)).pool.models
    assert pocket.adapters == ()
    found = [(each.name, each.path, each.merged) for each in wan.adapters]
    assert found == [("ink", "ink.safetensors", False), ("my_base", "d/My Base.pt", True)]
    assert run("serve", "--lora", "ink.safetensors") == 2
    assert "--lora takes NAME=PATH" in capsys.readouterr().err
