"""The trials: what sessions do, and what is counted.

Each trial opens sessions in some worlds, runs them, and yields `Sample`s for measures of `bars.py`.
A trial knows the simulator and the shown pictures, and nothing about the model.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reverie.evaluation.model_rig import Ints, ModelRig, RigSessions
from reverie.evaluation.reading import UNREAD, PictureReading, psnr, read, walkers
from reverie.evaluation.samples import Sample
from reverie.evaluation.worlds import EvaluatedWorld, true_states
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.captions import biome_caption, hour_caption, whole_caption
from reverie.models.pocket.simulator.simulator import CELL_PX, WorldState, advance, render

TOUR_FRAMES = 4
"""Frames out, and as many back; also the walk before actions are tried again."""
PROMPT_FRAMES = 4
SHORT_FRAMES = 100
LONG_FRAMES = 1000
STILL_FRAMES = 300
LOOK_EVERY = 10
"""The walker is checked in every tenth frame."""
HABIT = 0.8
"""Probability that a walker repeats his last action."""

BACK = {
    Action.UP: Action.DOWN,
    Action.DOWN: Action.UP,
    Action.LEFT: Action.RIGHT,
    Action.RIGHT: Action.LEFT,
}

Trial = Callable[[ModelRig, Sequence[EvaluatedWorld]], Iterator[Sample]]


def try_actions(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Try every action from the first picture, and again after a short walk."""
    state = true_states(worlds)
    with closing(model_rig.open_sessions(worlds)) as sessions:
        first = sessions.begin()
        yield from one_each(
            "codec", worlds, [psnr(*pair) for pair in zip(first, render(state), strict=True)]
        )
        yield from _every_action(sessions, state, worlds)
        for actions in random_walk(worlds, TOUR_FRAMES):
            sessions.act(actions)
            state = advance(state, actions)
        yield from _every_action(sessions, state, worlds)


def _every_action(
    sessions: RigSessions, state: WorldState, worlds: Sequence[EvaluatedWorld]
) -> Iterator[Sample]:
    choices = [advance(state, np.full(len(worlds), action)) for action in Action]
    renders = np.stack([render(choice) for choice in choices]).astype(np.float32)
    for action in Action:
        made = sessions.act(np.full(len(worlds), action))
        errors = np.square(renders - made).mean(axis=(2, 3, 4))  # [actions, N]
        yield from one_each("actions", worlds, errors.argmin(axis=0) == action)
        sessions.go_back()


def try_prompts(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Change biome, hour or both by a prompt after the first picture."""
    state = true_states(worlds)
    with closing(model_rig.open_sessions(worlds)) as sessions:
        sessions.begin()
        kinds = read(render(state), state).kinds
        yield from _recolour(sessions, state, worlds, kinds, "prompt")


def try_short_walks(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Read the picture after `SHORT_FRAMES` of walking, and change the colours then."""
    state = true_states(worlds)
    with closing(model_rig.open_sessions(worlds)) as sessions:
        made = sessions.begin()
        yield from one_each("true_commonest", worlds, read(render(state), state).commonest)
        for actions in random_walk(worlds, SHORT_FRAMES):
            made, state = sessions.act(actions), advance(state, actions)
        found = read(made, state)
        yield from _map_samples(found, worlds, "walk_100")
        yield from _recolour(sessions, state, worlds, found.kinds, "late_prompt")


def try_long_walks(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Read the picture after `SHORT_FRAMES` and `LONG_FRAMES`; check the walker on the way."""
    state = true_states(worlds)
    with closing(model_rig.open_sessions(worlds)) as sessions:
        sessions.begin()
        for number, actions in enumerate(random_walk(worlds, LONG_FRAMES), start=1):
            made, state = sessions.act(actions), advance(state, actions)
            if number % LOOK_EVERY == 0:
                yield from one_each("walk_walker", worlds, walkers(made, state))
            if number == SHORT_FRAMES:
                yield from _map_samples(read(made, state), worlds, "walk_100")
            if number == LONG_FRAMES:
                found = read(made, state)
                yield from _map_samples(found, worlds, "walk_1000")
                yield from one_each("walk_1000_colours", worlds, found.coloured)


def try_standing(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Stand still for `STILL_FRAMES`."""
    state = true_states(worlds)
    kinds = read(render(state), state).kinds
    with closing(model_rig.open_sessions(worlds)) as sessions:
        made = sessions.begin()
        wait = np.full(len(worlds), Action.WAIT)
        for number in range(1, STILL_FRAMES + 1):
            made, state = sessions.act(wait), advance(state, wait)
            if number % LOOK_EVERY == 0:
                yield from one_each("still_walker", worlds, walkers(made, state))
        found = read(made, state)
        for row, world in enumerate(worlds):
            legal, readable = int(found.legal[row]), int(found.readable[row])
            yield Sample("still_tiles", world.seed, legal, readable)
        yield from one_each("still_colours", worlds, found.coloured)
        yield from _kept("still_kept", worlds, kinds, found.kinds)


def try_memory(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Walk out and back, each world another way; compare the part that never left the view."""
    state = true_states(worlds)
    with closing(model_rig.open_sessions(worlds)) as sessions:
        made = sessions.begin()
        ways = np.array([list(BACK)[world.number % len(BACK)] for world in worlds])
        back = np.array([BACK[Action(way)] for way in ways])
        for actions in [ways] * TOUR_FRAMES + [back] * TOUR_FRAMES:
            made, state = sessions.act(actions), advance(state, actions)
        stayed = [_stayed(Action(way)) for way in ways]
        found = [
            psnr(picture[part], true[part])
            for picture, true, part in zip(made, render(state), stayed, strict=True)
        ]
        yield from one_each("memory", worlds, found)


def _stayed(way: Action) -> tuple[slice, slice]:
    """Return the rows and columns that are in view all the time."""
    lost_px, whole = TOUR_FRAMES * CELL_PX, slice(None)
    parts = {
        Action.UP: (slice(-lost_px), whole),
        Action.DOWN: (slice(lost_px, None), whole),
        Action.LEFT: (whole, slice(-lost_px)),
        Action.RIGHT: (whole, slice(lost_px, None)),
    }
    return parts[way]


def _recolour(
    sessions: RigSessions,
    state: WorldState,
    worlds: Sequence[EvaluatedWorld],
    kinds_NT: NDArray[np.uint8],
    measure: str,
) -> Iterator[Sample]:
    """Give every world a new prompt, and read the picture after `PROMPT_FRAMES` of waiting."""
    requests = [_requested(world) for world in worlds]
    sessions.say([request.prompt for request in requests])
    state = replace(
        state,
        biome=np.array([request.biome for request in requests]),
        hour=np.array([request.hour for request in requests]),
    )
    wait = np.full(len(worlds), Action.WAIT)
    for _ in range(PROMPT_FRAMES):
        made, state = sessions.act(wait), advance(state, wait)
    found = read(made, state)
    yield from one_each(f"{measure}_colours", worlds, found.coloured)
    yield from _kept(f"{measure}_kept", worlds, kinds_NT, found.kinds)


def _kept(
    measure: str,
    worlds: Sequence[EvaluatedWorld],
    before_NT: NDArray[np.uint8],
    after_NT: NDArray[np.uint8],
) -> Iterator[Sample]:
    """Count the tiles that keep their kind."""
    for world, before, after in zip(worlds, before_NT, after_NT, strict=True):
        readable = before != UNREAD
        kept = (before == after) & readable
        yield Sample(measure, world.seed, int(kept.sum()), int(readable.sum()))


def _requested(world: EvaluatedWorld) -> EvaluatedWorld:
    """Draw a prompt: half name both biome and hour, a quarter each name one of them."""
    rng = np.random.default_rng([world.seed, 1])
    biome = Biome((world.biome + int(rng.integers(1, len(Biome)))) % len(Biome))
    hour = Hour((world.hour + int(rng.integers(1, len(Hour)))) % len(Hour))
    match world.number % 4:
        case 0 | 1:
            caption = whole_caption(rng, biome, hour)
        case 2:
            caption, hour = biome_caption(rng, biome), world.hour
        case _:
            caption, biome = hour_caption(rng, hour), world.biome
    return replace(world, prompt=caption.text, biome=biome, hour=hour)


def random_walk(worlds: Sequence[EvaluatedWorld], frames: int) -> Iterator[Ints]:
    """Draw a random walk for each world: `frames` times [N]."""
    rngs = [np.random.default_rng([world.seed, 2]) for world in worlds]
    actions = np.array([rng.integers(len(Action)) for rng in rngs])
    for _ in range(frames):
        drawn = np.array([rng.integers(len(Action)) for rng in rngs])
        again = np.array([rng.random() < HABIT for rng in rngs])
        actions = np.where(again, actions, drawn)
        yield actions


def _map_samples(
    found: PictureReading, worlds: Sequence[EvaluatedWorld], measure: str
) -> Iterator[Sample]:
    yield from one_each(f"{measure}_commonest", worlds, found.commonest)
    for row, world in enumerate(worlds):
        legal, readable = int(found.legal[row]), int(found.readable[row])
        yield Sample(f"{measure}_tiles", world.seed, legal, readable)


def one_each(
    measure: str, worlds: Sequence[EvaluatedWorld], values: Sequence[float] | NDArray[np.generic]
) -> Iterator[Sample]:
    """Yield one trial for each world."""
    for world, value in zip(worlds, values, strict=True):
        yield Sample(measure, world.seed, float(value), 1)
