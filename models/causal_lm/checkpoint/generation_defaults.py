"""The sampling defaults of a checkpoint: what its `generation_config.json` says.

A checkpoint without sampling, or with `do_sample` false, takes the likeliest token. Settings of
sampling methods that are not implemented here are ignored, with a warning in the log.
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
"""Settings that are not implemented, with the values that have no effect."""


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """How a checkpoint samples unless a session chooses otherwise.

    Attributes:
        temperature: 0 takes the likeliest token.
        longest: the most tokens of an answer.
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
    """Return a checkpoint's defaults; the library has read the file into the model."""
    said = model.generation_config
    ends = getattr(said, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    ids = [] if ends is None else ends if isinstance(ends, list) else [ends]
    stops = getattr(said, "stop_strings", None) or ()
    _warn_of_unsupported(said)
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


def _warn_of_unsupported(said: object) -> None:
    unsupported = [
        f"{name} {getattr(said, name)!r}"
        for name, neutral in _NEUTRAL.items()
        if getattr(said, name, None) not in neutral
    ]
    if unsupported:
        logger.warning(
            "generation_config.json has settings that are ignored: %s", ", ".join(unsupported)
        )
