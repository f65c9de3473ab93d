"""Walks of the model itself, kept from step to step, with the frames that they should have shown.

A model that is trained only on true frames never sees the long-term effect of its own errors. These
walks last for hundreds of frames through the serving loop itself (`served_walks.py`). Training
reads the last few frames of each, as the model made them; the targets are legal frames of the same
map (`land_map.py`): DAgger (arXiv:1011.0686) with a simulator that knows the right frame for any
wrong one.

Shapes: B walks of a group, F frames of a clip, P cached frames, Z channels on a grid h x w,
L words of a text.
"""

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor
from reverie.models.pocket.network.text_encoder import pad_ids
from reverie.models.pocket.network.vocabulary import MAX_TOKENS, Vocabulary
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.captions import Caption, words_of
from reverie.models.pocket.simulator.simulator import WorldState, advance, render, tiles_in_view
from reverie.models.pocket.training.clips import (
    agreeing_caption,
    changed_caption,
    reminded_if_short,
)
from reverie.models.pocket.training.land_map import LandMap, carried, discovered, revised, true_map
from reverie.models.pocket.training.legal_tiles import LegalTiles, TileReading
from reverie.models.pocket.training.noise_pairing import kinds_of, new_strip, pair_all
from reverie.models.pocket.training.served_walks import ServedWalks, WalkStart
from reverie.models.pocket.training.states import random_states
from reverie.models.pocket.training.walk_history import (
    WalkProgress,
    empty_history,
    read_back,
    saved,
)

SHORTEST_LIFE, LONGEST_LIFE = 8, 1200
CHANGE_SHARE, STANDING_CHANGE_SHARE = 0.03, 0.006
SETTLES_IN = 4
"""Frames after a change of prompt in which colours may lie between two palettes."""
LOST_ABOVE = 0.6
"""Squared error to the nearest legal frame above which a walk starts again."""
MOST_WORDS = MAX_TOKENS - 4
STANDS = 1.0
HABITS = (0.0, 0.8, 0.97, STANDS)
"""Probabilities that a walker repeats his last action; each walk has one. `STANDS` always waits."""
HABIT_SHARES = (0.15, 0.25, 0.15, 0.45)


def _paired_noise(
    states: list[WorldState],
    actions: NDArray[np.int64],
    shape: torch.Size,
    rng: np.random.Generator,
) -> Tensor:
    """Draw noise that agrees with true frames."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    noise_BFZhw = torch.randn(shape, generator=generator)
    places = np.stack([np.stack([s.x, s.y], axis=1) for s in states], axis=1)
    tiles = np.stack([tiles_in_view(s) for s in states], axis=1)
    pair_all(noise_BFZhw.numpy(), actions, places, tiles, rng)
    return noise_BFZhw


def _draw_new_land(
    land: LandMap, state: WorldState, actions: NDArray[np.int64], noise_BZhw: NDArray[np.float32]
) -> None:
    """Set the new tiles of a frame, in place, by its noise."""
    for row, action in enumerate(actions):
        strip = new_strip(int(action), int(state.x[row]), int(state.y[row]))
        if strip is not None:
            kinds = kinds_of(noise_BZhw[row], strip, land.kinds[row])
            land.kinds[row][strip.tiles][strip.shown] = kinds


class WalkGroup:
    """B walks that advance together.

    Args:
        codec: a trained codec.
        config: of the world model.
        vocabulary: the words of prompts.
        walks: B.
        frames: F; at least as many as the cache holds.

    Attributes:
        history: the frames that training reads.
        course: the state of the walks.
        error: mean squared error of the newest frames to the nearest legal ones.
    """

    def __init__(
        self,
        codec: PictureCodec,
        config: WorldConfig,
        vocabulary: Vocabulary,
        walks: int,
        frames: int,
    ) -> None:
        if config.window - 1 > frames:
            raise ValueError(f"a clip of {frames} frames cannot fill a window of {config.window}")
        self._codec, self._legal, self._vocabulary = codec, LegalTiles(codec), vocabulary
        self._device = codec.latent_mean.device
        self._past = config.window - 1
        zeros = np.zeros(walks, np.int64)
        state = WorldState(*(zeros.copy() for _ in fields(WorldState)))
        self.history = empty_history(config, walks, frames, self._device)
        self.course = WalkProgress(state, true_map(state), zeros, zeros.copy(), np.zeros(walks))
        self._captions = [Caption("", None, None)] * walks
        self.error = 0.0

    @property
    def is_new(self) -> bool:
        """Whether it has never advanced, so that it has no frames."""
        return not self.course.settled.any()

    def advance(
        self, served: ServedWalks, frames: int, steps: int, rng: np.random.Generator, step: int
    ) -> None:
        """Make some frames of every walk; walks at their end start again first.

        Args:
            served: makes the frames.
            frames: how many.
            steps: denoise steps a frame.
            rng: for all random draws.
            step: of the training.
        """
        over = np.flatnonzero(self.course.left <= 0)
        if len(over):
            self._begin(over, rng)
        walks = len(self.course.left)
        seeds = [int(seed) for seed in rng.integers(2**62, size=walks)]
        served.open([self._start(row) for row in range(walks)], seeds, steps, step)
        for _ in range(frames):
            self._advance_one(served, rng)
        served.close(walks)

    @torch.no_grad()
    def _advance_one(self, served: ServedWalks, rng: np.random.Generator) -> None:
        prompts = self._change_prompts(rng)
        actions = self._choose_actions(rng)
        made = served.advance(actions.tolist(), prompts)
        made_BZhw = torch.stack([one.tensors["clean"] for one in made]).to(self._device)
        noise_BZhw = torch.stack([one.tensors["noise"] for one in made])
        before = self.course.state
        state = advance(before, actions)
        reading = self._legal.read(made_BZhw, state)
        land = carried(self.course.land, before, state)
        _draw_new_land(land, state, actions, noise_BZhw.numpy())
        aims_BZhw = self._encode(render(state, land.kinds))
        land = discovered(land, reading)
        told = np.where(actions == Action.WAIT, len(Action) + state.facing, actions)
        self._append(made_BZhw, aims_BZhw, noise_BZhw, told)
        self.course.state = state
        self.course.settled += 1
        self.course.land = revised(land, reading, self.course.settled > SETTLES_IN)
        errors = reading.errors.min(axis=-1)
        error = (errors * reading.cells).sum(axis=(1, 2)) / reading.cells.sum(axis=(1, 2))
        lost = (error > LOST_ABOVE) | self._discoloured(reading)
        self.course.left = np.where(lost, 0, self.course.left - 1)
        self.error = float(error.mean())

    def _start(self, row: int) -> WalkStart:
        """Return the start of a session that continues one walk."""
        history, state, past = self.history, self.course.state, self._past
        texts = history.text_BF[row, -past:]
        return WalkStart(
            clean_WZhw=history.made_BFZhw[row, -past:],
            before_Zhw=history.made_BFZhw[row, -past - 1],
            actions=history.action_BF[row, -past:].tolist(),
            words_WL=history.ids_BTL[row][texts],
            prompt=self._captions[row].text,
            biome=Biome(int(state.biome[row])),
            hour=Hour(int(state.hour[row])),
        )

    def _discoloured(self, reading: TileReading) -> NDArray[np.bool_]:
        """Find walks with wrong colours that the text does not name."""
        state, names = self.course.state, self.history.names_BTN[:, 1].cpu().numpy()
        biome, hour = reading.palette // len(Hour), reading.palette % len(Hour)
        biome_lost = (biome != state.biome) & (names[:, 0] == len(Biome))
        hour_lost = (hour != state.hour) & (names[:, 1] == len(Hour))
        lost: NDArray[np.bool_] = biome_lost | hour_lost
        return lost

    def _choose_actions(self, rng: np.random.Generator) -> NDArray[np.int64]:
        stances = self.history.action_BF[:, -1].cpu().numpy()
        last = np.where(stances < len(Action), stances, int(Action.WAIT))
        again = rng.random(len(last)) < self.course.habit
        actions = np.where(again, last, rng.integers(len(Action), size=len(last)))
        return np.where(self.course.habit == STANDS, int(Action.WAIT), actions)

    def _append(
        self,
        made_BZhw: Tensor,
        aims_BZhw: Tensor,
        noise_BZhw: Tensor,
        stances: NDArray[np.int64],
    ) -> None:
        history = self.history
        new = {
            "made_BFZhw": made_BZhw,
            "aims_BFZhw": aims_BZhw,
            "noise_BFZhw": noise_BZhw.to(self._device),
            "action_BF": torch.from_numpy(stances).to(self._device),
            "text_BF": torch.ones(len(stances), dtype=torch.long, device=self._device),
        }
        for name, value in new.items():
            setattr(history, name, torch.cat([getattr(history, name)[:, 1:], value[:, None]], 1))

    def _change_prompts(self, rng: np.random.Generator) -> dict[int, str]:
        """Give a few walks a new prompt; what it does not name stays. Return the prompts by row."""
        state, history = self.course.state, self.history
        standing = self.course.habit == STANDS
        drawn = rng.random(len(state)) < np.where(standing, STANDING_CHANGE_SHARE, CHANGE_SHARE)
        ready = self.course.settled > history.text_BF.shape[1]
        prompts: dict[int, str] = {}
        for row in np.flatnonzero(drawn & ready):
            old = self._captions[row]
            caption = changed_caption(rng, old, Biome(state.biome[row]), Hour(state.hour[row]))
            if len(words_of(caption.text)) > MOST_WORDS:
                caption = agreeing_caption(rng, Biome(state.biome[row]), Hour(state.hour[row]))
            biome, hour = Biome(state.biome[row]), Hour(state.hour[row])
            if caption.biome is not None:
                state.biome[row] = caption.biome
            if caption.hour is not None:
                state.hour[row] = caption.hour
            history.ids_BTL[row, 0], history.names_BTN[row, 0] = (
                history.ids_BTL[row, 1].clone(),
                history.names_BTN[row, 1].clone(),
            )
            history.text_BF[row] = 0
            self._say(int(row), caption, biome, hour)
            self.course.settled[row] = 0
            prompts[int(row)] = caption.text
        return prompts

    def _say(self, row: int, caption: Caption, biome: Biome, hour: Hour) -> None:
        """Put a caption into effect, after a reminder of what it does not name."""
        self._captions[row] = caption
        caption = reminded_if_short(caption, biome, hour)
        ids = self._vocabulary.encode(caption.text).ids
        self.history.ids_BTL[row, 1] = pad_ids([ids])[0].to(self._device)
        self.history.names_BTN[row, 1] = torch.tensor(
            [
                len(Biome) if caption.biome is None else int(caption.biome),
                len(Hour) if caption.hour is None else int(caption.hour),
            ]
        )

    def _begin(
        self,
        rows: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        """WalkStart walks again after F + 1 true frames."""
        history, course, count = self.history, self.course, len(rows)
        state = random_states(rng, count)
        frames = history.action_BF.shape[1]
        actions = rng.integers(len(Action), size=(count, frames))
        states = [state]
        for frame in range(1, frames):
            states.append(advance(states[-1], actions[:, frame]))
        state = states[-1]
        at = torch.from_numpy(rows).to(self._device)
        latents_BFZhw = torch.stack([self._encode(render(s)) for s in states], dim=1)
        history.made_BFZhw[at] = history.aims_BFZhw[at] = latents_BFZhw
        history.noise_BFZhw[at] = _paired_noise(states, actions, latents_BFZhw.shape, rng).to(
            self._device
        )
        facings = np.stack([s.facing for s in states], axis=1)
        told = np.where(actions == Action.WAIT, len(Action) + facings, actions)
        history.action_BF[at] = torch.from_numpy(told).to(self._device)
        history.text_BF[at] = 1
        for name in (field.name for field in fields(WorldState)):
            getattr(course.state, name)[rows] = getattr(state, name)
        land = true_map(state)
        course.land.kinds[rows], course.land.known[rows] = land.kinds, land.known
        lives = np.exp(rng.uniform(np.log(SHORTEST_LIFE), np.log(LONGEST_LIFE), count))
        course.left[rows], course.settled[rows] = lives.astype(np.int64), frames
        course.habit[rows] = rng.choice(HABITS, size=count, p=HABIT_SHARES)
        for index, row in enumerate(rows):
            biome, hour = Biome(state.biome[index]), Hour(state.hour[index])
            self._say(int(row), agreeing_caption(rng, biome, hour), biome, hour)
            history.ids_BTL[row, 0] = history.ids_BTL[row, 1]
            history.names_BTN[row, 0] = history.names_BTN[row, 1]

    @torch.no_grad()
    def _encode(self, frames_BHWC: NDArray[np.uint8]) -> Tensor:
        return self._codec.encode(frames_to_tensor(torch.from_numpy(frames_BHWC).to(self._device)))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next frame depends on."""
        captions = [
            (c.text, *(None if n is None else int(n) for n in (c.biome, c.hour)))
            for c in self._captions
        ]
        return {**saved(self.history, self.course), "captions": captions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.history, self.course = read_back(state, self._device)
        self._captions = [
            Caption(t, None if b is None else Biome(b), None if h is None else Hour(h))
            for t, b, h in state["captions"]
        ]
