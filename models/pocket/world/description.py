"""The training record of a frame that pocket has just committed."""

import torch

from reverie.models.contract.behavior import Behavior
from reverie.models.pocket.network.sampler import frame_noise, noise_levels
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.world.prompts import read_prompt
from reverie.models.pocket.world.state import PocketState


def described(state: PocketState, vocabulary: Vocabulary) -> Behavior | None:
    """Return latents (`clean`), noise (`noise`, standard normal) and text (`words`, ids).

    The first frame is given, not generated: it has no levels and no noise. All tensors are on the
    CPU, float32 [Z, h, w] except the ids. None for a state without a frame in progress.
    """
    clean_Zhw = state.point_Zhw
    if clean_Zhw is None:
        return None
    words = read_prompt(vocabulary, state.prompt, state.biome, state.hour).ids
    tensors = {
        "clean": clean_Zhw.float().cpu().clone(),
        "words": torch.tensor(words, dtype=torch.long),
    }
    made = bool(state.window)
    if made:
        tensors["noise"] = frame_noise(state.seed, state.frame, tuple(clean_Zhw.shape))
    acting = {} if state.action is Action.WAIT else {"move": state.action.name.lower()}
    levels = noise_levels(state.steps) if made else ()
    return Behavior(state.prompt, acting, levels, tensors)
