"""What a checkpoint's `generation_config.json` says of how to speak: where a session begins.

A checkpoint that says nothing of sampling, or that it does not sample, takes the likeliest token.
What it says of ways to sample that are not here is named in the log, and not heeded.
"""

import logging
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

LONGEST = 256
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "no_repeat_ngram_size": (None, 0),
    "typical_p": (None, 1.0),
    "top_h": (None,),
    "epsilon_cutoff": (None, 0.0),
    "eta_cutoff": (None, 0.0),
    "num_beams": (None, 1),
    "min_new_tokens": (None, 0),
    "min_length": (None, 0),
    "bad_words_ids": (None, []),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "sequence_bias": (None,),
    "guidance_scale": (None, 1.0),
    "penalty_alpha": (None, 0.0),
}
"""What would change an answer and is not done here, with the values that change nothing."""


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """How a checkpoint speaks unless a session says otherwise.

    Attributes:
        temperature: 0 takes the likeliest token.
        longest: tokens of an answer at most.
        ends: tokens that end an answer.
        stops: texts that end it.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    longest: int = LONGEST
    ends: frozenset[int] = frozenset()
    stops: tuple[str, ...] = ()


def read_generation_defaults(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> GenerationDefaults:
    """Return what a checkpoint says; the library has read the file into the model."""
    said = model.generation_config
    ends = getattr(said, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    ids = [] if ends is None else ends if isinstance(ends, list) else [ends]
    stops = getattr(said, "stop_strings", None) or ()
    _warn_of_the_rest(said)
    samples = bool(getattr(said, "do_sample", None))
    return GenerationDefaults(
        temperature=_number(said, "temperature", 1.0) if samples else 0.0,
        top_p=_number(said, "top_p", 1.0) if samples else 1.0,
        top_k=int(_number(said, "top_k", 0)) if samples else 0,
        min_p=_number(said, "min_p", 0.0) if samples else 0.0,
        repetition_penalty=_number(said, "repetition_penalty", 1.0),
        longest=int(_number(said, "max_new_tokens", LONGEST)),
        ends=frozenset(ids),
        stops=(stops,) if isinstance(stops, str) else tuple(stops),
    )


def _number(said: object, name: str, otherwise: float) -> float:
    value = getattr(said, name, None)
    return otherwise if value is None else float(value)


def _warn_of_the_rest(said: object) -> None:
    unheeded = [
        f"{name} {getattr(said, name)!r}"
        for name, neutral in _NEUTRAL.items()
        if getattr(said, name, None) not in neutral
    ]
    if unheeded:
        logger.warning("generation_config.json is not heeded in: %s", ", ".join(unheeded))
