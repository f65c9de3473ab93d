import numpy as np
import pytest
import torch

from reverie.models.pocket.codec import Codec
from reverie.models.pocket.nets import fast_dtype
from reverie.models.pocket.sampler import noise_levels
from reverie.models.pocket.simulator import render
from reverie.models.pocket.training.own_walks import WalkGroup
from reverie.models.pocket.training.presets import recipe
from reverie.models.pocket.training.world_training import Dreamer
from reverie.models.pocket.vocabulary import Vocabulary

CONFIG = recipe("tiny").config
WALKS, FRAMES = 6, 3


def group_and_nets() -> tuple[WalkGroup, Dreamer]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(4)
        codec, dreamer = Codec(CONFIG.codec), Dreamer(CONFIG)
    dreamer.world.to(fast_dtype(torch.device("cpu")))
    group = WalkGroup(codec, CONFIG.world, Vocabulary.of_grammar(), WALKS, FRAMES)
    return group, dreamer


def advance(group: WalkGroup, nets: Dreamer, step: int) -> None:
    group.advance(nets.world, nets.text, noise_levels(2), np.random.default_rng(step))


def test_a_walk_begins_behind_true_frames() -> None:
    group, nets = group_and_nets()
    advance(group, nets, 0)
    history = group.history
    assert torch.equal(history.made_BFZhw[:, :FRAMES], history.aims_BFZhw[:, :FRAMES])
    assert not torch.equal(history.made_BFZhw[:, FRAMES], history.aims_BFZhw[:, FRAMES])


def test_the_aim_is_the_legal_frame_of_what_was_done() -> None:
    group, nets = group_and_nets()
    advance(group, nets, 0)
    state = group.course.state
    pictures = torch.from_numpy(render(state)).permute(0, 3, 1, 2).float() / 255
    true_BZhw = group._codec.encode(pictures)
    inner = (..., slice(1, -1), slice(1, -1))  # what has just come into view is left to chance
    assert torch.equal(true_BZhw[inner], group.history.aims_BFZhw[:, -1][inner])


def test_prompts_change_and_the_aims_follow() -> None:
    group, nets = group_and_nets()
    changed = 0
    for step in range(40):
        before = group.course.state.biome.copy(), group.course.state.hour.copy()
        lives = group.course.left.copy()
        advance(group, nets, step)
        kept = lives > 0
        moved = (group.course.state.biome != before[0]) | (group.course.state.hour != before[1])
        changed += int((moved & kept).sum())
        named = group.history.names_BTN[:, 1].numpy()
        biome, hour = group.course.state.biome, group.course.state.hour
        assert ((named[:, 0] == biome) | (named[:, 0] == 8)).all()
        assert ((named[:, 1] == hour) | (named[:, 1] == 3)).all()
    assert changed > 0


def test_walks_go_on_from_their_saved_state() -> None:
    group, nets = group_and_nets()
    for step in range(3):
        advance(group, nets, step)
    other, _ = group_and_nets()
    other.load_state_dict(group.state_dict())
    for step in range(3, 6):
        advance(group, nets, step)
        advance(other, nets, step)
    assert torch.equal(group.history.made_BFZhw, other.history.made_BFZhw)
    assert torch.equal(group.history.aims_BFZhw, other.history.aims_BFZhw)
    assert np.array_equal(group.course.left, other.course.left)


def test_a_clip_that_cannot_fill_the_cache_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        WalkGroup(Codec(CONFIG.codec), CONFIG.world, Vocabulary.of_grammar(), 2, 2)
