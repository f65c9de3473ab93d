from functools import cache

import torch
from tiny_pocket import tiny_weights
from torch import Tensor

from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.frame_inputs import Past
from reverie.models.pocket.network.narrator import NarratorOutput, SpokenTokens
from reverie.models.pocket.network.networks import PocketNets

CPU = torch.device("cpu")
SESSIONS, TEXTS = 2, 3


@cache
def nets() -> PocketNets:
    return load_pocket(tiny_weights(), CPU, torch.float32)


def frames_in_sight(frames: int, seed: int = 0, sessions: int = SESSIONS) -> Past:
    config = nets().config.world
    generator = torch.Generator().manual_seed(seed)
    shape = (frames, sessions, config.layers, config.heads, config.tokens, config.head_size)
    keys, values = (torch.randn(shape, generator=generator) for _ in range(2))
    return nets().world.read_past(keys.unbind(0), values.unbind(0))


def some_ids(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.randint(30, len(nets().narration), shape, generator=generator)


@torch.inference_mode()
def read(ids_BRT: Tensor, past: Past, said: SpokenTokens | None = None) -> NarratorOutput:
    output: NarratorOutput = nets().narrator(nets().world, ids_BRT, past, said)
    return output


def test_tokens_one_by_one_score_as_in_one_call() -> None:
    past, ids_BRT = frames_in_sight(3), some_ids(SESSIONS, TEXTS, 7)
    whole = read(ids_BRT, past)
    said: SpokenTokens | None = None
    for token in range(7):
        output = read(ids_BRT[..., token : token + 1], past, said)
        said = output.said
        assert torch.allclose(
            output.scores_BRTV[:, :, 0], whole.scores_BRTV[:, :, token], atol=1e-4
        )
    assert said is not None
    for (k, v), (whole_k, whole_v) in zip(said.layers, whole.said.layers, strict=True):
        assert torch.allclose(k, whole_k, atol=1e-4)
        assert torch.allclose(v, whole_v, atol=1e-4)


def test_a_question_behind_a_look_scores_as_both_in_one_call() -> None:
    past = frames_in_sight(5)
    look = nets().narrator.look(nets().world, past)
    ids_BRT = some_ids(SESSIONS, TEXTS, 4)
    after = read(ids_BRT, past, look.said.for_texts(TEXTS))
    first = read(ids_BRT[:, :1, :], past, look.said)
    assert torch.allclose(after.scores_BRTV[:, :1], first.scores_BRTV, atol=1e-4)


def test_a_token_sees_nothing_that_comes_after_it() -> None:
    past, ids_BRT = frames_in_sight(2), some_ids(SESSIONS, 1, 6)
    other = ids_BRT.clone()
    other[..., 4:] = 31
    one, two = read(ids_BRT, past).scores_BRTV, read(other, past).scores_BRTV
    assert torch.equal(one[:, :, :4], two[:, :, :4])
    assert not torch.allclose(one[:, :, 5], two[:, :, 5])


def test_every_cached_frame_counts() -> None:
    ids_BRT = some_ids(SESSIONS, 1, 3)
    shorter, longer = frames_in_sight(2), frames_in_sight(3)
    assert not torch.allclose(read(ids_BRT, shorter).scores_BRTV, read(ids_BRT, longer).scores_BRTV)


def test_texts_and_sessions_do_not_see_each_other() -> None:
    past, ids_BRT = frames_in_sight(2), some_ids(SESSIONS, TEXTS, 5)
    alone = Past(2, tuple((k[:1], v[:1]) for k, v in past.layers))
    together = read(ids_BRT, past).scores_BRTV[0, 1]
    assert torch.allclose(read(ids_BRT[:1, 1:2], alone).scores_BRTV[0, 0], together, atol=1e-4)
