import numpy as np
import pytest
import torch

from reverie.engine.rollouts import Rollouts
from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import render
from reverie.models.pocket.simulator.walker import action_and_facing
from reverie.models.pocket.training.own_walks import STANDS, WalkGroup
from reverie.models.pocket.training.presets import recipe
from reverie.models.pocket.training.served_walks import ServedWalks
from reverie.models.pocket.training.world_training import TrainableNets

CONFIG = recipe("tiny").config
WALKS, FRAMES = 6, 3


def group_and_served() -> tuple[WalkGroup, ServedWalks]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(4)
        codec, trained = PictureCodec(CONFIG.codec), TrainableNets(CONFIG)
    vocabulary, narration = Vocabulary.of_grammar(), NarrationVocabulary.of_grammar()
    nets = PocketNets(
        codec,
        trained.text.requires_grad_(False),
        trained.world.requires_grad_(False),
        trained.narrator,
        vocabulary,
        narration,
        CONFIG,
        "none",
        torch.device("cpu"),
        torch.float32,
    )
    group = WalkGroup(codec, CONFIG.world, vocabulary, WALKS, FRAMES)
    return group, ServedWalks(nets, Rollouts, WALKS)


def advance(group: WalkGroup, served: ServedWalks, step: int, frames: int = 1) -> None:
    group.advance(served, frames, 2, np.random.default_rng(step), step)


def test_a_walk_begins_after_true_frames() -> None:
    group, served = group_and_served()
    advance(group, served, 0)
    history = group.history
    assert torch.equal(history.made_BFZhw[:, :FRAMES], history.aims_BFZhw[:, :FRAMES])
    assert not torch.equal(history.made_BFZhw[:, FRAMES], history.aims_BFZhw[:, FRAMES])


def test_the_aim_is_the_legal_frame_of_what_was_done() -> None:
    group, served = group_and_served()
    advance(group, served, 0)
    state = group.course.state
    pictures = torch.from_numpy(render(state)).permute(0, 3, 1, 2).float() / 255
    true_BZhw = group._codec.encode(pictures)
    inner = (..., slice(1, -1), slice(1, -1))  # what has just come into view is left to chance
    assert torch.equal(true_BZhw[inner], group.history.aims_BFZhw[:, -1][inner])


def test_prompts_change_and_the_aims_follow() -> None:
    group, served = group_and_served()
    changed = 0
    for step in range(40):
        before = group.course.state.biome.copy(), group.course.state.hour.copy()
        lives = group.course.left.copy()
        advance(group, served, step)
        kept = lives > 0
        moved = (group.course.state.biome != before[0]) | (group.course.state.hour != before[1])
        changed += int((moved & kept).sum())
        named = group.history.names_BTN[:, 1].numpy()
        biome, hour = group.course.state.biome, group.course.state.hour
        assert ((named[:, 0] == biome) | (named[:, 0] == 8)).all()
        assert ((named[:, 1] == hour) | (named[:, 1] == 3)).all()
    assert changed > 0


def test_walks_continue_from_their_saved_state() -> None:
    group, served = group_and_served()
    for step in range(3):
        advance(group, served, step)
    other, _ = group_and_served()
    other.load_state_dict(group.state_dict())
    for step in range(3, 6):
        advance(group, served, step)
        advance(other, served, step)
    assert torch.equal(group.history.made_BFZhw, other.history.made_BFZhw)
    assert torch.equal(group.history.aims_BFZhw, other.history.aims_BFZhw)
    assert np.array_equal(group.course.left, other.course.left)


def test_a_clip_that_cannot_fill_the_cache_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        WalkGroup(PictureCodec(CONFIG.codec), CONFIG.world, Vocabulary.of_grammar(), 2, 2)


def test_a_walker_who_stands_waits_for_the_whole_walk() -> None:
    group, served = group_and_served()
    advance(group, served, 0)
    group.course.habit[:] = STANDS
    for step in range(1, 6):
        group.course.left[:] = 100
        advance(group, served, step, frames=2)
    told = [action_and_facing(stance) for stance in group.history.action_BF[:, -1].tolist()]
    assert [action for action, _ in told] == [Action.WAIT] * WALKS
    assert [facing for _, facing in told] == group.course.state.facing.tolist()


def test_every_walk_is_reminded_of_its_colours() -> None:
    group, served = group_and_served()
    for step in range(12):
        advance(group, served, step)
        named = group.history.names_BTN[:, 1].numpy()
        assert np.array_equal(named[:, 0], group.course.state.biome)
        assert np.array_equal(named[:, 1], group.course.state.hour)


def test_a_walk_is_made_by_the_loop_that_serves() -> None:
    """The very frames of a session that begins on the same frames with the same seed."""
    group, served = group_and_served()
    advance(group, served, 0)
    group.course.left[:] = 100
    group.course.habit[:] = STANDS
    starts = [group._start(row) for row in range(WALKS)]
    seeds = [int(s) for s in np.random.default_rng(1).integers(2**62, size=WALKS)]
    served.open(starts, seeds, 2, 1)
    made = served.advance([0] * WALKS, {})
    served.close(WALKS)
    rng = np.random.default_rng(1)
    group.course.settled[:] = 0  # no prompt changes
    group.advance(served, 1, 2, rng, 1)
    newest = group.history.made_BFZhw[:, -1]
    assert torch.equal(newest, torch.stack([one.tensors["clean"] for one in made]))
