"""Finding model families: those that ship, those that packages add, and a file of your own.

A third party adds a family with an entry point in group `reverie.models`, whose value is called
without arguments and returns a `ModelFamily`. `package.module:Name` and `path/to/file.py:Name` work
without installing anything.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from reverie.models.errors import UnknownModelError
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import LoopKernel
from reverie.models.spec import ModelSpec

GROUP = "reverie.models"


class ModelFamily(Protocol):
    """Everything that the runtime needs of a model."""

    @property
    def spec(self) -> ModelSpec:
        """The description; reading it loads nothing."""

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load the weights and allocate the cache pools.

        Raises:
            CheckpointError: the weights do not fit.
        """

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of the loop called `loop`."""


def installed_families() -> dict[str, Callable[[], ModelFamily]]:
    """Return the factories of every family that a package declares, by name; loads none of them."""
    return {entry.name: partial(_made, entry) for entry in entry_points(group=GROUP)}


def find_family(name: str) -> ModelFamily:
    """Return the family called `name`, validated.

    Args:
        name: an installed family, `package.module:Name`, or `path/to/file.py:Name`.

    Raises:
        UnknownModelError: there is none of that name.
        SpecError: its description contradicts itself.
    """
    family = _from_location(name) if ":" in name else _from_entry_point(name)
    family.spec.validate()
    return family


def _from_entry_point(name: str) -> ModelFamily:
    families = installed_families()
    if name not in families:
        known = ", ".join(sorted(families)) or "none"
        raise UnknownModelError(f"no model called {name!r}; installed: {known}")
    try:
        return families[name]()
    except (ImportError, AttributeError, OSError) as error:
        raise UnknownModelError(f"cannot load model {name!r}: {error}") from error


def _made(entry: EntryPoint) -> ModelFamily:
    return cast(ModelFamily, entry.load()())


def _from_location(location: str) -> ModelFamily:
    place, _, attribute = location.rpartition(":")
    try:
        module = (
            _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        )
        return cast(Callable[[], ModelFamily], getattr(module, attribute))()
    except (ImportError, AttributeError, OSError, SyntaxError) as error:
        raise UnknownModelError(f"cannot load model {location!r}: {error}") from error


def _load_file(path: Path) -> Any:
    name = f"{__name__}.file_{blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by its name
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
