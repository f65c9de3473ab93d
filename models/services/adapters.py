"""Adapters that each session chooses while it runs, without changing the model's weights.

Every adapter that an operator serves is a parameter `lora_<name>` of the loops, its strength. The
strengths of a session are its `Mix`, a value in its state. A kernel computes with it:

    with adapters.applied(state.mix):
        transformer(...)

A cache of such results must be keyed by the mix, or be rebuilt when the mix changes. At strength 0
a layer computes exactly what it computes without the adapter.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor, nn

from reverie.models.contract.controls import ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption
from reverie.models.services.adapter_layers import PlacedAddition, PlacedPair
from reverie.models.services.lora import LoraAddition, LoraFile, Rename
from reverie.models.services.lora_files import read_lora
from reverie.models.services.merging import MergedWeights

PREFIX = "lora_"
"""The prefix of an adapter's parameter, before the adapter's own name."""

Mix = tuple[tuple[str, float], ...]
"""Active adapters and their strengths, in the operator's order; none has strength 0."""

OFF: Mix = ()


@dataclass(frozen=True, slots=True)
class ServedAdapter:
    """One adapter that sessions can choose.

    Attributes:
        version: a hash of its content.
        components: the ones that it changes.
    """

    option: AdapterOption
    version: str
    components: frozenset[str]

    @property
    def parameter(self) -> ParameterSpec:
        """The number that a session sets."""
        option = self.option
        label = f"Strength of {option.name}: 0 is off"
        return ParameterSpec(
            f"{PREFIX}{option.name}", option.strength, 0.0, option.most, label=label
        )


Placed = PlacedPair | PlacedAddition


class Adapters:
    """The adapters of one instance. The active mix belongs to the computing thread."""

    def __init__(
        self, served: Sequence[tuple[AdapterOption, LoraFile]] = (), root: nn.Module | None = None
    ):
        """Attach adapters to the layers that they name; all of them must fit.

        Args:
            served: in the order in which strengths are added up.
            root: holds the components by their names.

        Raises:
            CheckpointError: one has values that are not finite; no layer has changed.
        """
        self._served = {
            option.name: ServedAdapter(option, file.version, file.components)
            for option, file in served
        }
        self._here = threading.local()
        layers: dict[str, dict[str, list[Placed]]] = {}
        for option, file in served:
            for path, addition in _placed(option, file, root):
                layers.setdefault(path, {}).setdefault(option.name, []).append(addition)
        for path, placed in layers.items():
            assert root is not None, "something was placed in it"
            root.get_submodule(path).register_forward_hook(partial(self._added, placed))

    def __bool__(self) -> bool:
        return bool(self._served)

    @property
    def parameters(self) -> tuple[ParameterSpec, ...]:
        """What the loops declare."""
        return tuple(adapter.parameter for adapter in self._served.values())

    def mix(self, parameters: Mapping[str, float], before: Mix = OFF) -> Mix:
        """Return the mix after some parameters were set; those that are not named stay."""
        stood = dict(before)
        strengths = (
            (name, float(parameters.get(f"{PREFIX}{name}", stood.get(name, 0.0))))
            for name in self._served
        )
        return tuple((name, strength) for name, strength in strengths if strength)

    @property
    def names(self) -> tuple[str, ...]:
        """Names and versions of all adapters, active or not."""
        return tuple(f"{name}:{adapter.version}" for name, adapter in self._served.items())

    def versions(self, mix: Mix, component: str | None = None) -> tuple[str, ...]:
        """Return the mix as part of a cache key.

        Args:
            component: leave out adapters that do not change it; None includes all.
        """
        return tuple(
            f"{name}@{strength!r}:{self._served[name].version}"
            for name, strength in mix
            if component is None or component in self._served[name].components
        )

    @contextmanager
    def applied(self, mix: Mix) -> Iterator[None]:
        """Activate a mix for this thread."""
        before: Mix = getattr(self._here, "mix", OFF)
        self._here.mix = mix
        try:
            yield
        finally:
            self._here.mix = before

    def _added(
        self,
        of_layer: Mapping[str, Sequence[Placed]],
        layer: nn.Module,
        inputs: tuple[Tensor, ...],
        output: Tensor,
    ) -> Tensor | None:
        mix: Mix = getattr(self._here, "mix", OFF)
        changes = [
            placed.change(inputs[0], strength)
            for name, strength in mix
            for placed in of_layer.get(name, ())
        ]
        return sum(changes, output) if changes else None


def _placed(
    option: AdapterOption, file: LoraFile, root: nn.Module | None
) -> Iterator[tuple[str, Placed]]:
    """Read an adapter's changes, by the layers whose output they change."""
    for path, pair in file.pairs.items():
        with _about(option, path):
            yield path, PlacedPair.of(pair, _layer(root, path))
    additions: dict[str, dict[str, LoraAddition]] = {}
    for name, addition in file.placed(root).items() if root is not None else ():
        path, _, parameter = name.rpartition(".")
        additions.setdefault(path, {})[parameter] = addition
    for path, of_layer in additions.items():
        assert root is not None, "something was found in it"
        with _about(option):
            yield path, PlacedAddition.of(root.get_submodule(path), of_layer)


NO_ADAPTERS = Adapters()


@dataclass(frozen=True, slots=True)
class FittedAdapters:
    """An operator's adapters after loading.

    Attributes:
        selectable: those that sessions choose.
        merged: names, strengths and versions of those that were merged into the weights.
    """

    selectable: Adapters
    merged: tuple[str, ...] = ()

    def version(self, weights: str) -> str:
        """Return the version of weights that these were merged into, or can be chosen with."""
        return "+".join((weights, *self.merged, *self.selectable.names))


NONE_FITTED = FittedAdapters(NO_ADAPTERS)


def fit_adapters(
    options: Sequence[AdapterOption],
    components: Mapping[str, nn.Module],
    rename: Rename,
    base: Callable[[str], Tensor] | None = None,
) -> FittedAdapters:
    """Merge adapters into weights or attach them; nothing changes unless all of them fit.

    Args:
        options: the adapters that the operator serves.
        components: modules by name.
        rename: from the public name of a weight to its name here, the component in front.
        base: see `MergedWeights`.

    Raises:
        CheckpointError: a file cannot be read, or does not fit; names everything that is wrong.
    """
    if not options:
        return NONE_FITTED
    root = nn.ModuleDict(dict(components))
    files = []
    for option in options:
        with _about(option):
            file = read_lora(Path(option.path), rename, option.name)
            file.inspect(root).require_fit()
        files.append((option, file))
    merged = [(option, file) for option, file in files if option.merged]
    MergedWeights(root, base).merge([(file, option.strength) for option, file in merged])
    selectable = Adapters([(option, file) for option, file in files if not option.merged], root)
    return FittedAdapters(
        selectable, tuple(f"{o.name}@{o.strength!r}:{file.version}" for o, file in merged)
    )


@contextmanager
def _about(option: AdapterOption, *where: str) -> Iterator[None]:
    """Name the adapter in an error."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(": ".join((f"adapter {option.name}", *where, str(error)))) from error


def _layer(root: nn.Module | None, path: str) -> nn.Linear:
    layer = root.get_submodule(path) if root is not None else None
    assert isinstance(layer, nn.Linear), f"{path} was found to be a linear layer"
    return layer
