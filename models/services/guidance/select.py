"""How an instance guides, as its operator chose when it was loaded; how much, each session says."""

from collections.abc import Callable

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.services.guidance.policies import (
    Adaptive,
    CFGPolicy,
    CombineSpace,
    Embedded,
    OneBatch,
    TwoPass,
    Unguided,
)

AUTO = "auto"

Guiding = Callable[[float], CFGPolicy]
"""From the weight of the prompt to a policy; a weight of 1 is no guidance."""

_POLICIES: dict[str, Callable[[float, CombineSpace], CFGPolicy]] = {
    "one_batch": lambda scale, space: OneBatch(scale, space),
    "two_pass": lambda scale, space: TwoPass(scale, space),
    "adaptive": lambda scale, space: Adaptive(scale, space=space),
}


def guiding_of(
    options: LoadOptions, space: CombineSpace, *, takes_scale: bool, model: str
) -> Guiding:
    """Return how sessions of an instance are guided.

    Args:
        space: what predictions are combined as.
        takes_scale: whether the weights take the scale as an input; then nothing else guides them.

    Raises:
        OptionError: the model has no such guidance.
    """
    name = options.guidance
    if takes_scale:
        if name not in (AUTO, "embedded"):
            raise OptionError(f"guidance: {model} is told the scale, so it is embedded, not {name}")
        return lambda scale: Embedded(scale, space)
    known = (AUTO, *_POLICIES)
    if name not in known:
        raise OptionError(f"guidance: {model} has {', '.join(known)}, not {name!r}")
    policy = _POLICIES["one_batch" if name == AUTO else name]
    return lambda scale: Unguided(space) if scale == 1 else policy(scale, space)
