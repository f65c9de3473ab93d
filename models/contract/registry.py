"""Finding model families: those that ship, those that packages add, and a file of your own.

A third party adds a family with an entry point in group `reverie.models`, whose value is called
without arguments and returns a `ModelFamily`. `package.module:Name` and `path/to/file.py:Name` work
without installing anything.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from reverie.models.contract.errors import ModelError, UnknownModelError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.parallel import ONE_DEVICE, ParallelPlan, require_one_device
from reverie.models.contract.spec import ModelSpec

GROUP = "reverie.models"

_PARTS = ("spec", "load", "kernel")


class ModelFamily(Protocol):
    """Everything that the runtime needs from a model."""

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


def find_family(name: str, plan: ParallelPlan = ONE_DEVICE) -> ModelFamily:
    """Return the family called `name`, validated.

    Args:
        name: an installed family, `package.module:Name`, or `path/to/file.py:Name`.
        plan: how the model is spread over devices.

    Raises:
        UnknownModelError: there is none of that name, or the object is not a family.
        SpecError: its description contradicts itself.
        OptionError: the model cannot follow the plan, or this version cannot.
    """
    family = _from_location(name) if ":" in name else _from_entry_point(name)
    _described(name, family).validate(plan)
    require_one_device(plan)
    return family


def _described(name: str, family: ModelFamily) -> ModelSpec:
    """Return the description of an object that a third party made, if it is a family."""
    try:
        missing = [part for part in _PARTS if not hasattr(family, part)]
        spec: object = None if missing else family.spec
    except Exception as error:  # a property of the family's may raise anything
        raise _broken(name, error) from error
    if isinstance(spec, ModelSpec):
        return spec
    lacks = f"it has no {' and no '.join(missing)}" if missing else "its spec is not a ModelSpec"
    raise UnknownModelError(f"{name!r} does not make a model family: {lacks}")


def _from_entry_point(name: str) -> ModelFamily:
    families = installed_families()
    if name not in families:
        known = ", ".join(sorted(families)) or "none"
        hint = f"; to load a file, write {name}:NAME" if name.endswith(".py") else ""
        raise UnknownModelError(f"unknown model {name!r}; installed: {known}{hint}")
    try:
        return families[name]()
    except Exception as error:  # a third party's module may raise anything on import
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> UnknownModelError:
    """Return a one-line error for a family whose own code raised."""
    what = str(error).partition("\n")[0]
    if not isinstance(error, ImportError | OSError | SyntaxError | ModelError):
        what = f"{type(error).__name__}: {what}" if what else type(error).__name__
    return UnknownModelError(f"cannot load model {name!r}: {what}")


def _made(entry: EntryPoint) -> ModelFamily:
    return cast(ModelFamily, entry.load()())


def _from_location(location: str) -> ModelFamily:
    place, _, attribute = location.rpartition(":")
    try:
        module = (
            _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        )
        make = getattr(module, attribute, None)
    except Exception as error:  # as above
        raise _broken(location, error) from error
    if make is None:
        raise UnknownModelError(f"cannot load model {location!r}: {place} has no {attribute!r}")
    if not callable(make) or not _takes_nothing(make):
        raise UnknownModelError(
            f"{location!r} must be callable without arguments and return a family"
        )
    try:
        return cast(Callable[[], ModelFamily], make)()
    except Exception as error:  # as above
        raise _broken(location, error) from error


def _takes_nothing(make: Callable[..., object]) -> bool:
    try:
        inspect.signature(make).bind()
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        pass
    return True


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
