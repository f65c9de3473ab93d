"""What is drawn from, against the library's own processors in the library's own order."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import GenerationConfig

from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.sampling import SamplingOptions, draw, scores_of, seeded_state

MODEL, _ = random_model()
VOCABULARY = 40

options = st.builds(
    SamplingOptions,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    top_p=st.sampled_from([0.01, 0.5, 0.9, 1.0]),
    top_k=st.sampled_from([0, 1, 5, VOCABULARY, 100]),
    min_p=st.sampled_from([0.0, 0.1, 0.7, 1.0]),
    repetition_penalty=st.sampled_from([0.7, 1.0, 1.3, 2.0]),
)
# Whole numbers, so that many scores are equal: what a limit does with equals is told apart.
logits = st.lists(st.integers(-12, 12), min_size=VOCABULARY, max_size=VOCABULARY)
before = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=12)


def processed(logits_V: Tensor, chosen: SamplingOptions, there: list[int]) -> Tensor:
    """Return the scores as `generate` makes them, with the processors that it would choose."""
    sampled = chosen.temperature > 0
    make: Any = GenerationConfig
    config = make(
        do_sample=sampled,
        temperature=chosen.temperature or None,
        top_k=chosen.top_k,
        top_p=chosen.top_p,
        min_p=chosen.min_p or None,
        repetition_penalty=chosen.repetition_penalty,
        num_beams=1,
    )
    model: Any = MODEL
    processors = model._get_logits_processor(
        generation_config=config, input_ids_seq_length=len(there), device="cpu"
    )
    scores: Tensor = processors(torch.tensor([there]), logits_V[None].clone())
    return scores[0]


@settings(deadline=None, max_examples=300)
@given(logits, options, before)
def test_scores_are_those_of_the_librarys_processors(
    given_logits: list[int], chosen: SamplingOptions, there: list[int]
) -> None:
    logits_V = torch.tensor(given_logits, dtype=torch.float32) / 2
    assert torch.equal(scores_of(logits_V, chosen, there), processed(logits_V, chosen, there))


@pytest.mark.parametrize("seed", range(4))
def test_a_draw_is_the_librarys_draw_under_the_same_seed(seed: int) -> None:
    chosen = SamplingOptions(1.1, top_p=0.9, top_k=30, min_p=0.02, repetition_penalty=1.2)
    state, made, wanted = seeded_state(seed), [3], [3]
    random = torch.Generator().manual_seed(100 + seed)
    rows = torch.randn(20, VOCABULARY, generator=random) * 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for logits_V in rows:
            shares = processed(logits_V, chosen, wanted).softmax(dim=-1)
            wanted.append(int(torch.multinomial(shares, 1)))
    for logits_V in rows:
        token, state = draw(logits_V, chosen, state, made)
        made.append(token)
    assert made == wanted
    assert len(set(made)) > 5
