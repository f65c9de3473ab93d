"""Training clips: walks with texts, some of them with a change of prompt in the middle.

Shapes: B clips, F frames that the model makes, H = W = 128 pixels.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.network.vocabulary import MAX_TOKENS
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.captions import (
    Caption,
    append_caption,
    caption_for,
    reminded,
    words_of,
)
from reverie.models.pocket.simulator.simulator import (
    WorldState,
    advance,
    render,
    stack_states,
    tiles_in_view,
)
from reverie.models.pocket.training.states import random_actions, random_states

Ints = NDArray[np.int64]

CHANGE_SHARE = 0.35
FRESH_SHARE = 0.2
REMINDED_SHARE = 0.6
UNKNOWN_FACING_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Clips:
    """A batch of clips.

    Attributes:
        frames: uint8 [B, F + 1, H, W, 3]; the first is only the previous frame of the second.
        actions: [B, F], the action behind the frame.
        captions: two for each clip, before and after the change; equal when nothing changes.
        caption_index: [B, F], which of the two is in effect.
        fresh: [B], whether the session starts at the second frame, so that it has no past.
        tinted: `frames` in the colours of another biome and hour.
        places: [B, F, 2], x and y of the view, in cells.
        tiles: [B, F, T, T], the tiles in view.
        stances: [B, F], the stances of the walker.
    """

    frames: NDArray[np.uint8]
    actions: Ints
    captions: tuple[tuple[Caption, Caption], ...]
    caption_index: Ints
    fresh: NDArray[np.bool_]
    tinted: NDArray[np.uint8]
    places: Ints
    tiles: NDArray[np.uint8]
    stances: Ints


def make_clips(rng: np.random.Generator, count: int, frames: int) -> Clips:
    """Draw `count` clips of `frames` frames; a pure function of the generator."""
    start = random_states(rng, count)
    actions = random_actions(rng, count, frames)
    fresh = rng.random(count) < FRESH_SHARE
    changes_at = np.where(rng.random(count) < CHANGE_SHARE, rng.integers(1, frames, count), frames)
    captions = [_draw_captions(rng, start, row, changes_at[row] < frames) for row in range(count)]
    goal_biome = np.array(
        [_named(new.biome, start.biome[i]) for i, (_, new) in enumerate(captions)]
    )
    goal_hour = np.array([_named(new.hour, start.hour[i]) for i, (_, new) in enumerate(captions)])
    states = [start]
    for frame in range(frames):
        state = advance(states[-1], actions[:, frame])
        changed = frame >= changes_at
        state = replace(
            state,
            biome=np.where(changed, goal_biome, start.biome),
            hour=np.where(changed, goal_hour, start.hour),
        )
        states.append(state)
    return Clips(
        frames=_pictures(states),
        actions=actions,
        captions=tuple(captions),
        caption_index=(np.arange(frames) >= changes_at[:, None]).astype(np.int64),
        fresh=fresh,
        tinted=_pictures(_tinted(rng, states)),
        places=np.stack([np.stack([s.x, s.y], axis=1) for s in states[1:]], axis=1),
        tiles=np.stack([tiles_in_view(s) for s in states[1:]], axis=1),
        stances=stances_of(rng, actions, np.stack([s.facing for s in states[1:]], axis=1)),
    )


def stances_of(rng: np.random.Generator, actions_BF: Ints, facing_BF: Ints) -> Ints:
    """Return the stances of walkers; some walks hide the facing."""
    told = np.where(actions_BF == Action.WAIT, len(Action) + facing_BF, actions_BF)
    unknown = rng.random((len(actions_BF), 1)) < UNKNOWN_FACING_SHARE
    return np.where(unknown, actions_BF, told)


def _pictures(states: list[WorldState]) -> NDArray[np.uint8]:
    """Render the frames of clips: [B, F, H, W, 3]."""
    pictures = render(stack_states(states))
    return pictures.reshape(len(states), -1, *pictures.shape[1:]).swapaxes(0, 1)


def _tinted(rng: np.random.Generator, states: list[WorldState]) -> list[WorldState]:
    """Give every clip a random biome and hour, the same for all of its frames."""
    biome = rng.integers(len(Biome), size=len(states[0]))
    hour = rng.integers(len(Hour), size=len(states[0]))
    return [replace(state, biome=biome, hour=hour) for state in states]


def _named(name: int | None, current: int) -> int:
    return int(current) if name is None else int(name)


def _draw_captions(
    rng: np.random.Generator, start: WorldState, row: int, changes: bool
) -> tuple[Caption, Caption]:
    biome, hour = Biome(int(start.biome[row])), Hour(int(start.hour[row]))
    old = agreeing_caption(rng, biome, hour)
    new = changed_caption(rng, old, biome, hour) if changes else old
    if rng.random() >= REMINDED_SHARE:
        return old, new
    return reminded_if_short(old, biome, hour), reminded_if_short(new, biome, hour)


def reminded_if_short(caption: Caption, biome: Biome, hour: Hour) -> Caption:
    """Put a reminder before a caption, unless the text would exceed the model's limit."""
    longer = reminded(caption, biome, hour)
    return longer if len(words_of(longer.text)) <= MAX_TOKENS else caption


def changed_caption(rng: np.random.Generator, old: Caption, biome: Biome, hour: Hour) -> Caption:
    """Draw a text that changes a world's biome, its hour, or both."""
    what = rng.choice(3, p=[0.35, 0.35, 0.30])
    goal_biome = biome if what == 1 else Biome(int(rng.integers(len(Biome))))
    goal_hour = hour if what == 0 else Hour(int(rng.integers(len(Hour))))
    say_all = rng.random() < 0.4
    new = caption_for(
        rng,
        goal_biome if say_all or what != 1 else None,
        goal_hour if say_all or what != 0 else None,
    )
    return append_caption(rng, old, new) if rng.random() < 0.6 else new


def agreeing_caption(rng: np.random.Generator, biome: Biome, hour: Hour) -> Caption:
    """Draw a text that agrees with a world: it names none, part, or all, or all after a change."""
    kind = rng.choice(5, p=[0.15, 0.1, 0.1, 0.4, 0.25])
    named = [(None, None), (biome, None), (None, hour), (biome, hour), (biome, hour)][kind]
    caption = caption_for(rng, *named)
    if kind < 4:
        return caption
    detour = caption_for(
        rng, Biome(int(rng.integers(len(Biome)))), Hour(int(rng.integers(len(Hour))))
    )
    return append_caption(rng, detour, caption)
