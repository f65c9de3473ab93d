"""The public names, pinned: a change here is a change for every user of reverie."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import reverie

ROOMS = (
    "bench",
    "engine",
    "evaluation",
    "gpu_pool",
    "kernels",
    "media",
    "models",
    "rtc",
    "sessions",
)


def test_these_names_are_public() -> None:
    assert sorted(reverie.__all__) == [
        "Deployment",
        "Engine",
        "FrameGenerator",
        "FrameGeneratorFamily",
        "LoopKernel",
        "ModelFamily",
        "ModelInstance",
        "ModelSpec",
        "Session",
        "__version__",
        "commands",
        "connect",
        "events",
    ]


@pytest.mark.parametrize("name", sorted(reverie.__all__))
def test_every_public_name_can_be_had_and_is_described(name: str) -> None:
    value = getattr(reverie, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Dream'"):
        _ = reverie.Dream


def test_importing_the_package_loads_no_torch() -> None:
    script = "import reverie, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("room", ROOMS)
def test_every_package_documents_itself_and_its_public_names(room: str) -> None:
    module = import_module(f"reverie.{room}")
    assert module.__doc__
    assert "Placeholder" not in module.__doc__
    for name in getattr(module, "__all__", ()):
        assert hasattr(module, name), name
