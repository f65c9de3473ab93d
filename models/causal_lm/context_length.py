"""How many tokens a language model attends to: limited by the model, the operator and memory."""

import logging
from collections.abc import Callable

from reverie.models.causal_lm.config import CONTEXT, PAGE_TOKENS
from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.spec import ModelSpec

logger = logging.getLogger(__name__)

LEAST = 2 * PAGE_TOKENS


def context_for(
    longest: int | None,
    options: LoadOptions,
    spec_of: Callable[[int], ModelSpec],
    precision: str,
    free_bytes: int,
) -> int:
    """Return how many tokens to attend to, in whole pages.

    Args:
        longest: the most positions of the model; None: there is no limit.
        options: what the operator asks for.
        spec_of: the model's description for a context.
        precision: the one that it computes in.
        free_bytes: memory for the caches of all sessions.

    Raises:
        OptionError: the operator asks for more than the model can, or for less than two pages.
    """
    if options.context:
        if longest is not None and options.context > longest:
            most = f"at most {longest} tokens for this model"
            raise OptionError(f"context: must be {most}, not {options.context}")
        if options.context < LEAST:
            raise OptionError(f"context: must be at least {LEAST} tokens, not {options.context}")
        return options.context // PAGE_TOKENS * PAGE_TOKENS
    own = max(PAGE_TOKENS, (longest or CONTEXT) // PAGE_TOKENS * PAGE_TOKENS)
    context = own
    while context // 2 >= CONTEXT and _bytes(spec_of(context), options, precision) > free_bytes:
        context = context // 2 // PAGE_TOKENS * PAGE_TOKENS
    if context < own:
        logger.warning(
            "the context is %d tokens instead of %d, because %d sessions with more do not fit in "
            "memory (see the settings context and sessions)",
            context, own, options.sessions,
        )  # fmt: skip
    return context


def _bytes(spec: ModelSpec, options: LoadOptions, precision: str) -> int:
    return options.sessions * (spec.bytes_a_session(1, precision) or 0)
