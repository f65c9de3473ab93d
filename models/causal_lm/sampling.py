"""From logits to the next token, as transformers' `generate` draws it.

The order is the library's: repetition penalty, temperature, top-k, top-p, min-p. Randomness is the
state of a generator, which is passed in and returned: it belongs to the session and not to the
process. With the same seed, drawn once a token, it gives the tokens that `generate` gives after
`torch.manual_seed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the next token is drawn.

    Attributes:
        temperature: 0 takes the likeliest token.
        top_p: the likeliest tokens that together have this share; 1 is all of them.
        top_k: this many of the likeliest tokens; 0 is all of them.
        min_p: tokens at least this likely, relative to the likeliest; 0 is all of them.
        repetition_penalty: how much less likely a token is that occurred before; 1 is no penalty.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


def seeded_state(seed: int) -> Tensor:
    """Return the state of a fresh generator."""
    return torch.Generator().manual_seed(seed).get_state()


def draw(
    logits_V: Tensor, options: SamplingOptions, state: Tensor, there: Sequence[int] = ()
) -> tuple[int, Tensor]:
    """Return the next token and the generator's next state.

    Args:
        logits_V: of the whole vocabulary.
        options: how to draw.
        state: from `seeded_state` or the previous draw; it is not modified.
        there: the tokens before it, including those of the prompt.
    """
    scores_V = scores_of(logits_V, options, there)
    if options.temperature == 0:
        return int(scores_V.argmax()), state
    generator = torch.Generator()
    generator.set_state(state)
    token = torch.multinomial(scores_V.softmax(dim=-1), 1, generator=generator)
    return int(token), generator.get_state()


def scores_of(logits_V: Tensor, options: SamplingOptions, there: Sequence[int] = ()) -> Tensor:
    """Return the scores to draw from; they are minus infinity for excluded tokens."""
    scores_V = _penalised(logits_V.float().cpu(), options.repetition_penalty, there)
    if options.temperature == 0:
        return scores_V
    scores_V = _within_top_k(scores_V / options.temperature, options.top_k)
    return _above_min_p(_within_top_p(scores_V, options.top_p), options.min_p)


def _penalised(scores_V: Tensor, penalty: float, there: Sequence[int]) -> Tensor:
    if penalty == 1 or not there:
        return scores_V
    tokens = torch.tensor(sorted(set(there)))
    scores = scores_V[tokens]
    return scores_V.scatter(0, tokens, torch.where(scores < 0, scores * penalty, scores / penalty))


def _within_top_k(scores_V: Tensor, top_k: int) -> Tensor:
    if not 0 < top_k < len(scores_V):
        return scores_V
    least = scores_V.topk(top_k).values[-1]
    return scores_V.masked_fill(scores_V < least, -torch.inf)


def _within_top_p(scores_V: Tensor, top_p: float) -> Tensor:
    if top_p >= 1:
        return scores_V
    ascending, order = scores_V.sort(descending=False)
    behind = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
    behind[-1] = False  # the likeliest always stays
    return scores_V.masked_fill(torch.zeros_like(behind).scatter(0, order, behind), -torch.inf)


def _above_min_p(scores_V: Tensor, min_p: float) -> Tensor:
    if min_p <= 0:
        return scores_V
    shares_V = scores_V.softmax(dim=-1)
    unlikely = shares_V < min_p * shares_V.max()
    return scores_V.masked_fill(unlikely, -torch.inf)
