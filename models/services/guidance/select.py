"""The guidance of an instance: its operator chooses the policy, and each session the scale."""

from collections.abc import Callable

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.services.guidance.policies import (
    AdaptiveGuidance,
    CFGPolicy,
    CombineSpace,
    EmbeddedGuidance,
    NoGuidance,
    OneBatchGuidance,
    TwoPassGuidance,
)

AUTO = "auto"

GuidanceFactory = Callable[[float], CFGPolicy]
"""From the weight of the prompt to a policy; a weight of 1 is no guidance."""

_POLICIES: dict[str, Callable[[float, CombineSpace], CFGPolicy]] = {
    "one_batch": lambda scale, space: OneBatchGuidance(scale, space),
    "two_pass": lambda scale, space: TwoPassGuidance(scale, space),
    "adaptive": lambda scale, space: AdaptiveGuidance(scale, space=space),
}


def guidance_of(
    options: LoadOptions, space: CombineSpace, *, takes_scale: bool, model: str
) -> GuidanceFactory:
    """Return the guidance of an instance's sessions.

    Args:
        space: what predictions are combined as.
        takes_scale: whether the weights take the scale as an input, which excludes other policies.

    Raises:
        OptionError: the model does not support the policy.
    """
    name = options.guidance
    if takes_scale:
        if name not in (AUTO, "embedded"):
            raise OptionError(
                f"guidance: these weights of {model} support auto, embedded, not {name!r}"
            )
        return lambda scale: EmbeddedGuidance(scale, space)
    known = (AUTO, *_POLICIES)
    if name not in known:
        raise OptionError(f"guidance: {model} supports {', '.join(known)}, not {name!r}")
    policy = _POLICIES["one_batch" if name == AUTO else name]
    return lambda scale: NoGuidance(space) if scale == 1 else policy(scale, space)
