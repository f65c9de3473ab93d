"""The list of installed models, as `reverie models` prints it.

It follows from the descriptions of the families: no weights are read or needed. A family with
several public sizes has a description of each in `variants`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reverie.models.contract.errors import ModelError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.registry import ModelFamily, find_family, installed_families
from reverie.models.contract.spec import ModelSpec
from reverie.models.contract.speed import MeasuredSpeed
from reverie.models.services.licences import PublicWeights, public_weights

UNKNOWN = "unknown"
CALIBRATION_S = 2.0
"""How long a model may time itself, as in serving."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model, in words.

    Attributes:
        loops: the capabilities of each loop, by its name.
        memory: of one session, by size of the model; a size without a name is the only one.
        licence: of the family.
        weights_licence: of the public weights, in the family's own words.
        weights: the licences of public weights, where they are known.
        fault: why the model cannot be served; empty when it can, or when it was not tried.
        speed: what was measured and chosen when it was loaded; None where nothing was.
    """

    name: str
    title: str = UNKNOWN
    programs: tuple[str, ...] = ()
    loops: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory: tuple[tuple[str, str], ...] = ()
    licence: str = UNKNOWN
    weights_licence: str = UNKNOWN
    weights: tuple[PublicWeights, ...] = ()
    fault: str = ""
    speed: MeasuredSpeed | None = None


def catalogue(*, load: bool = False) -> list[CatalogueEntry]:
    """Describe every installed model; a broken one is listed with its fault.

    Args:
        load: also load each model, to see whether it can be served here.
    """
    return [_entry(name, load=load) for name in sorted(installed_families())]


def as_text(entries: Sequence[CatalogueEntry]) -> str:
    """Return entries as text, a paragraph each."""
    return "\n\n".join("\n".join(_lines(entry)) for entry in entries)


def memory_of(spec: ModelSpec) -> str:
    """Return the memory of one session, in words; in half precision where the model has it."""
    usual, precision = spec.kept_chunks(LoadOptions().history_chunks), spec.precisions[-1]
    most, least = (spec.bytes_a_session(chunks, precision) for chunks in (usual, 1))
    if most is None or least is None:
        return "depends on the weights"
    if not most:
        return "almost none"
    return f"{_size(most)} in {precision} with a history of {usual} chunks, {_size(least)} with 1"


def _entry(name: str, *, load: bool) -> CatalogueEntry:
    try:
        family = find_family(name)
        spec = family.spec
        sizes: Mapping[str, ModelSpec] = getattr(family, "variants", {"": spec})
        loaded = _loaded(family) if load else spec
        memory = tuple((size, memory_of(variant)) for size, variant in sizes.items())
    except Exception as error:  # variants are a third party's code: the list continues without it
        return CatalogueEntry(name, fault=_said(error))
    return CatalogueEntry(
        name=name,
        title=spec.title,
        programs=tuple(program.name for program in spec.programs),
        loops=tuple(
            (loop.name, tuple(sorted(spec.capabilities.rows.get(loop.name, ()))))
            for loop in spec.loops
        ),
        memory=memory,
        licence=spec.licence,
        weights_licence=spec.weights_licence or UNKNOWN,
        weights=public_weights(family, spec.name),
        fault=loaded if isinstance(loaded, str) else "",
        speed=None if isinstance(loaded, str) else loaded.speed,
    )


def _loaded(family: ModelFamily) -> ModelSpec | str:
    """Return the description of the loaded model, or why it cannot be loaded."""
    try:
        options = LoadOptions(device="cpu", sessions=1, calibration_s=CALIBRATION_S)
        return family.load(options).spec
    except Exception as error:  # as above
        return _said(error)


def _said(error: Exception) -> str:
    """Return an error in one line; an unexpected one with its class."""
    if isinstance(error, ModelError):
        return str(error)
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _lines(entry: CatalogueEntry) -> Iterator[str]:
    yield f"{entry.name}: {entry.title}" if entry.title != UNKNOWN else entry.name
    if entry.programs:
        yield f"  programs   {', '.join(entry.programs)}"
    for name, capabilities in entry.loops:
        yield f"  loop       {name}: {', '.join(capabilities) or 'no capabilities'}"
    for size, memory in entry.memory:
        yield f"  memory     {f'{size}: ' if size else ''}{memory}"
    if entry.loops and entry.weights:
        yield f"  licence    {entry.licence}; licences of public weights:"
        yield from (f"    {weights}" for weights in entry.weights)
    elif entry.loops:
        yield f"  licence    {entry.licence}; public weights: {entry.weights_licence}"
    if entry.speed is not None:
        yield f"  speed      {entry.speed}"
        yield from (f"    {tried}" for tried in entry.speed.tried)
    if entry.fault:
        yield f"  cannot be served here: {entry.fault}"


def _size(count: int) -> str:
    """Return a number of bytes with the unit in which it is 1 to 1023."""
    power = min((count.bit_length() - 1) // 10, len(_UNITS) - 1) if count else 0
    value = count / 1024**power
    return f"{value:.0f} {_UNITS[power]}" if value >= 100 else f"{value:.3g} {_UNITS[power]}"
