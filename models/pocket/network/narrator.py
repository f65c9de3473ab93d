"""The narrator: text through the blocks of the world model, with the cached frames in its context.

Its own parameters are few: an embedding (its transpose is the head), positions, one vector in place
of noise level, action and prompt, and a low-rank product next to each matrix of the blocks
(`adapter.py`). Its tokens see the cache of the last frames as the next frame would, have the slot
after the newest one, and see the tokens before them. They have a cache of their own.

Shapes: B sessions, R texts on each one's frames, T new tokens, t tokens so far, P cached frames,
V tokens of the vocabulary, D channels, A heads of size d.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.pocket.config import NarratorConfig, WorldConfig
from reverie.models.pocket.narration.vocabulary import SLOT_IDS
from reverie.models.pocket.network.adapter import BlockAdapter
from reverie.models.pocket.network.frame_inputs import Past
from reverie.models.pocket.network.world_model import WorldModel


@dataclass(frozen=True, slots=True)
class SpokenTokens:
    """The cache of a text.

    Attributes:
        tokens: t, how many there are.
        layers: for each layer keys (rotated) and values, both [B, R, A, t, d].
    """

    tokens: int
    layers: tuple[tuple[Tensor, Tensor], ...]

    def for_texts(self, texts: int) -> "SpokenTokens":
        """Return the cache of R texts that begin with the same tokens."""
        spread = tuple(
            (k.expand(-1, texts, -1, -1, -1), v.expand(-1, texts, -1, -1, -1))
            for k, v in self.layers
        )
        return SpokenTokens(self.tokens, spread)

    def without(self, first: int) -> "SpokenTokens":
        """Drop the first tokens; the positions of later tokens stay the same."""
        layers = tuple((k[..., first:, :], v[..., first:, :]) for k, v in self.layers)
        return SpokenTokens(self.tokens, layers)


@dataclass(frozen=True, slots=True)
class NarratorOutput:
    """The output of one call.

    Attributes:
        scores_BRTV: of the next token, or of what a slot reads; float32.
        said: the cache with the new tokens in it.
    """

    scores_BRTV: Tensor
    said: SpokenTokens


class Narrator(nn.Module):
    """Embedding, positions, condition and head of the texts."""

    def __init__(self, config: NarratorConfig, world: WorldConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, world.width)
        self.positions = nn.Embedding(config.positions, world.width)
        self.condition = nn.Parameter(torch.zeros(world.condition))
        self.scale = nn.Parameter(torch.ones(world.width))
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.adapters = nn.ModuleList(BlockAdapter(world, config.rank) for _ in range(world.layers))
        nn.init.normal_(self.words.weight, std=0.3)
        nn.init.normal_(self.positions.weight, std=0.3)

    def look(self, world: WorldModel, past: Past) -> NarratorOutput:
        """Read every slot of the newest frame: one text a session, which begins all others."""
        slots = torch.tensor(SLOT_IDS, device=self.words.weight.device)
        sessions = len(past.layers[0][0])
        output: NarratorOutput = self(world, slots.expand(sessions, 1, -1), past)
        return output

    def forward(
        self, world: WorldModel, ids_BRT: Tensor, past: Past, said: SpokenTokens | None = None
    ) -> NarratorOutput:
        """Read T more tokens of every text.

        Args:
            world: the world model, whose blocks are used.
            ids_BRT: token ids.
            past: the cached frames, from `WorldModel.read_past`; at most `window - 1`.
            said: the cache from earlier calls; None at the beginning.
        """
        first = 0 if said is None else said.tokens
        end = first + ids_BRT.shape[-1]
        x_BRTD = self.words(ids_BRT) + self.positions.weight[first:end]
        angle = world.text_angle(past.frames, x_BRTD.dtype)
        layers = []
        for index, block in enumerate(world.stack()):
            before = None if said is None else said.layers[index]
            adapter = self.adapters[index]
            assert isinstance(adapter, BlockAdapter), "the list holds nothing else"
            output = block.read(x_BRTD, self.condition, angle, past.layers[index], before, adapter)
            x_BRTD = output.x_BRTD
            layers.append((output.k_BRAtd, output.v_BRAtd))
        normal = functional.layer_norm(x_BRTD, x_BRTD.shape[-1:]) * self.scale
        scores = functional.linear(normal, self.words.weight, self.bias).float()
        return NarratorOutput(scores, SpokenTokens(end, tuple(layers)))
