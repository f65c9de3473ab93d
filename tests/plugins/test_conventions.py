"""What agents expect of a plugin: how it registers, what it imports, and how it is shipped."""

import logging
import subprocess
import sys
import tomllib
from pathlib import Path

from livekit.agents import Plugin
from livekit.agents.voice.avatar import AvatarSession
from livekit.plugins import reverie_world

PROJECT = Path(__file__).parents[2] / "plugins" / "livekit-plugins-reverie-world"
PACKAGE = PROJECT / "livekit" / "plugins" / "reverie_world"


def said_by(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def test_it_registers_under_its_name_with_its_version_and_logger() -> None:
    [plugin] = [each for each in Plugin.registered_plugins if "reverie" in each.title]
    assert plugin.title == plugin.package == "livekit.plugins.reverie_world"
    assert plugin.version == reverie_world.__version__
    assert plugin.logger is logging.getLogger("livekit.plugins.reverie_world")


def test_a_world_session_is_an_avatar_session() -> None:
    world = reverie_world.WorldSession()
    assert isinstance(world, AvatarSession)
    assert world.provider == "reverie"


def test_importing_it_loads_nothing_that_runs_a_world() -> None:
    code = (
        "import sys; from livekit.plugins import reverie_world;"
        "reverie_world.WorldSession(prompt='a desert');"
        "print([each for each in ('torch', 'reverie', 'aiortc') if each in sys.modules])"
    )
    assert said_by(code) == "[]\n"


def test_off_the_main_thread_the_framework_says_why_it_cannot_be_imported() -> None:
    code = (
        "import threading, livekit.agents\n"
        "def late():\n"
        "    try:\n"
        "        import livekit.plugins.reverie_world\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "thread = threading.Thread(target=late); thread.start(); thread.join()\n"
    )
    assert "main thread" in said_by(code)


def test_the_shared_namespaces_stay_namespaces() -> None:
    above = [PROJECT, PROJECT / "livekit", PROJECT / "livekit" / "plugins"]
    assert not [folder for folder in above if (folder / "__init__.py").exists()]


def test_all_of_it_is_shipped_with_its_types_and_versions_as_agents_demand() -> None:
    with (PROJECT / "pyproject.toml").open("rb") as file:
        described = tomllib.load(file)
    assert "livekit.plugins.reverie_world" in described["tool"]["setuptools"]["packages"]
    assert described["tool"]["setuptools"]["package-data"] == {
        "livekit.plugins.reverie_world": ["py.typed"]
    }
    assert (PACKAGE / "py.typed").exists()
    assert "livekit-agents>=1.7,<2" in described["project"]["dependencies"]
    assert not [
        need for need in described["project"]["dependencies"] if need.startswith("livekit=")
    ]
