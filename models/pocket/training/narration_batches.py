"""The narrator's training data: frames in context, and texts about the last of them.

Half of the frames are the simulator's, half the newest of the model's own walks, whose map is known
too. A batch has one number P of frames in context, drawn for every step.

Shapes: B clips, P frames, Z channels on a grid h x w, L words of a prompt, R texts of a clip, T
tokens of a text.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.pocket.narration.facts import SLOTS, Truth, truths
from reverie.models.pocket.narration.questions import ask
from reverie.models.pocket.narration.sentences import say_doing, say_place, say_side
from reverie.models.pocket.narration.vocabulary import (
    ANSWER,
    PAD,
    SIDE_OF,
    UNKNOWN,
    NarrationVocabulary,
    Topic,
)
from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor
from reverie.models.pocket.network.frame_inputs import Past
from reverie.models.pocket.network.narrator import Narrator
from reverie.models.pocket.network.sampler import CONTEXT_LEVEL
from reverie.models.pocket.network.text_encoder import TextEncoder, pad_ids
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.captions import Caption
from reverie.models.pocket.simulator.simulator import WorldState, advance, render, stack_states
from reverie.models.pocket.training.clips import agreeing_caption, reminded_if_short, stances_of
from reverie.models.pocket.training.own_walks import WalkGroup
from reverie.models.pocket.training.states import random_actions, random_states

STREAM = 6  # separates the narrator's random numbers from all others
FRAME_COUNT_SHARES = (0.35, 0.15, 0.1, 0.1, 0.3)
"""How often there are 1, 2, ... frames in context."""
FRESH_SHARE = 0.2
UNPROMPTED_SHARE = 0.25
NOISE = 0.15
UNHEARD_SHARE = 0.02
HIDDEN_SHARE = 0.7
"""How often frames and slots are hidden once the notes are written. If they were never hidden, the
narrator would read them instead of the notes, and search them badly."""
TOPIC_SHARE = 0.2
TRAINED_SHARES = (0.1, 0.18, 0.34, 0.2, 0.18)
"""Shares of the kinds of questions: those that need a search take longest to learn."""


@dataclass(frozen=True, slots=True)
class NarrationBatch:
    """The tensors of one training step of the narrator.

    Attributes:
        clean_BPZhw: the frames in context.
        previous_BPZhw: the frames before them; zeros before a session's first frame.
        action_BP: the stance behind each frame.
        prompt_BL: word ids of the prompt.
        glance_BS: what each slot should read.
        ids_BRT: texts, `PAD` after their ends.
        goal_BRT: the token that should come after each, `PAD` where none is learnt.
        hidden: whether the texts see only the notes.
    """

    clean_BPZhw: Tensor
    previous_BPZhw: Tensor
    action_BP: Tensor
    prompt_BL: Tensor
    glance_BS: Tensor
    ids_BRT: Tensor
    goal_BRT: Tensor
    hidden: bool


@dataclass(frozen=True, slots=True)
class NarratorContext:
    """Frames, and what is true of the last of them."""

    clean_BPZhw: Tensor
    previous_BPZhw: Tensor
    action_BP: Tensor
    prompt_BL: Tensor
    truths: list[Truth]


class NarrationBatches:
    """Makes batches; each is a pure function of the seed, the step, and the walks.

    Args:
        codec: a trained codec.
        vocabulary: the words of prompts.
        narration: the tokens of texts.
        seed: of all randomness.
        sizes: clips of the simulator, clips of own walks, texts of a clip.
    """

    def __init__(
        self,
        codec: PictureCodec,
        vocabulary: Vocabulary,
        narration: NarrationVocabulary,
        seed: int,
        sizes: tuple[int, int, int],
    ) -> None:
        self._codec, self._vocabulary, self._narration = codec, vocabulary, narration
        self._seed, (self._clips, self._own, self._texts) = seed, sizes

    def make(self, step: int, walks: WalkGroup | None, longest: int) -> NarrationBatch:
        """Return the batch of a step.

        Args:
            step: of the training.
            walks: walks of the model whose newest frames are described as well; None for none.
            longest: the largest number of frames in context.
        """
        rng = np.random.default_rng([self._seed, STREAM, step])
        shares = np.array(FRAME_COUNT_SHARES[:longest])
        frames = 1 + int(rng.choice(len(shares), p=shares / shares.sum()))
        contexts = [self._true_contexts(rng, frames)]
        if walks is not None:
            contexts.append(self._own_contexts(walks, frames))
        told = [truth for context in contexts for truth in context.truths]
        ids_BRT, goal_BRT = self._write(rng, told)
        device = self._codec.latent_mean.device
        glance = torch.tensor([self._narration.glance(truth) for truth in told])
        return NarrationBatch(
            torch.cat([context.clean_BPZhw for context in contexts]),
            torch.cat([context.previous_BPZhw for context in contexts]),
            torch.cat([context.action_BP for context in contexts]),
            torch.cat([context.prompt_BL for context in contexts]),
            glance.to(device),
            ids_BRT.to(device),
            goal_BRT.to(device),
            hidden=bool(rng.random() < HIDDEN_SHARE),
        )

    def _true_contexts(self, rng: np.random.Generator, frames: int) -> NarratorContext:
        states = [random_states(rng, self._clips)]
        actions = random_actions(rng, self._clips, frames)
        fresh = rng.random(self._clips) < FRESH_SHARE
        actions[fresh, 0] = Action.WAIT
        for frame in range(frames):
            states.append(advance(states[-1], actions[:, frame]))
        facings = np.stack([state.facing for state in states[1:]], axis=1)
        told = stances_of(rng, actions, facings)
        latents_BFZhw = self._encode(states)
        shape, generator = latents_BFZhw.shape, torch.Generator()
        generator.manual_seed(int(rng.integers(2**62)))
        size = NOISE * torch.rand((shape[0], 1, 1, 1, 1), generator=generator)
        latents_BFZhw += (size * torch.randn(shape, generator=generator)).to(latents_BFZhw.device)
        previous_BPZhw = latents_BFZhw[:, :-1].clone()
        previous_BPZhw[torch.from_numpy(fresh), 0] = 0
        return NarratorContext(
            latents_BFZhw[:, 1:],
            previous_BPZhw,
            torch.from_numpy(told).to(latents_BFZhw.device),
            self._prompts(rng, states[0]).to(latents_BFZhw.device),
            truths(states[-1], actions[:, -1]),
        )

    def _own_contexts(self, walks: WalkGroup, frames: int) -> NarratorContext:
        history, course, own = walks.history, walks.course, slice(0, self._own)
        stances = history.action_BF[:, -1].cpu().numpy()
        actions = np.where(stances < len(Action), stances, int(Action.WAIT))
        return NarratorContext(
            history.made_BFZhw[own, -frames:],
            history.made_BFZhw[own, -frames - 1 : -1],
            history.action_BF[own, -frames:],
            history.ids_BTL[own, 1],
            truths(course.state, actions, course.land.kinds)[own],
        )

    @torch.no_grad()
    def _encode(self, states: list[WorldState]) -> Tensor:
        pictures = torch.from_numpy(render(stack_states(states)))
        latents = self._codec.encode(frames_to_tensor(pictures.to(self._codec.latent_mean.device)))
        return latents.view(len(states), -1, *latents.shape[1:]).transpose(0, 1).clone()

    def _prompts(self, rng: np.random.Generator, state: WorldState) -> Tensor:
        """Write prompts that agree with the worlds, as in sessions; some are empty."""
        ids = []
        for row in range(len(state)):
            biome, hour = Biome(int(state.biome[row])), Hour(int(state.hour[row]))
            caption = reminded_if_short(agreeing_caption(rng, biome, hour), biome, hour)
            if rng.random() < UNPROMPTED_SHARE:
                caption = Caption("", None, None)
            ids.append(self._vocabulary.encode(caption.text).ids)
        return pad_ids(ids)

    def _write(self, rng: np.random.Generator, told: list[Truth]) -> tuple[Tensor, Tensor]:
        """Write texts, and the next token for each of their tokens: both [B, R, T]."""
        texts = [self._text(rng, truth) for truth in told for _ in range(self._texts)]
        longest = max(len(ids) for ids, _ in texts) - 1
        ids_NT, goal_NT = (torch.full((len(texts), longest), PAD) for _ in range(2))
        for row, (ids, first) in enumerate(texts):
            ids_NT[row, : len(ids) - 1] = torch.tensor(ids[:-1])
            goal_NT[row, first - 1 : len(ids) - 1] = torch.tensor(ids[first:])
        shape = (len(told), self._texts, longest)
        return ids_NT.view(shape), goal_NT.view(shape)

    def _text(self, rng: np.random.Generator, truth: Truth) -> tuple[tuple[int, ...], int]:
        """Write one text; also return which token is the first of the answer."""
        narration = self._narration
        if rng.random() < TOPIC_SHARE:
            topic = Topic(int(rng.integers(len(Topic))))
            return (narration.topic_id(topic), *narration.encode(say(topic, truth))), 1
        question = ask(rng, truth, TRAINED_SHARES)
        asked = narration.encode_question(question.text).ids
        heard = [UNKNOWN if rng.random() < UNHEARD_SHARE else token for token in asked[1:-1]]
        return (asked[0], *heard, ANSWER, *narration.encode(question.answer)), len(asked)


def say(topic: Topic, truth: Truth) -> str:
    """Return the true sentence on a topic."""
    if topic is Topic.PLACE:
        return say_place(truth)
    return say_doing(truth) if topic is Topic.DOING else say_side(truth, SIDE_OF[topic])


def narration_loss(
    batch: NarrationBatch, text: TextEncoder, world: WorldModel, narrator: Narrator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the cross-entropies of slots and of words, and the share of slots read correctly.

    Words are learnt after true notes.
    """
    B, frames = batch.action_BP.shape
    level_BP = torch.full((B, frames), CONTEXT_LEVEL, device=batch.clean_BPZhw.device)
    prompt_BPT = text(batch.prompt_BL)[:, None].expand(-1, frames, -1)
    seen = world(batch.clean_BPZhw, level_BP, batch.previous_BPZhw, batch.action_BP, prompt_BPT)
    past = world.read_past(seen.k_BFLAND.unbind(1), seen.v_BFLAND.unbind(1))
    looked = narrator.look(world, past)
    noted = narrator(world, batch.glance_BS[:, None], past, looked.said)
    said = noted.said.for_texts(batch.ids_BRT.shape[1])
    if batch.hidden:
        nothing = tuple((k[:, :, :0], v[:, :, :0]) for k, v in past.layers)
        past, said = Past(past.frames, nothing), said.without(SLOTS)
    spoken = narrator(world, batch.ids_BRT, past, said)
    scores_BSV = looked.scores_BRTV[:, 0]
    slot_loss = functional.cross_entropy(scores_BSV.flatten(0, 1), batch.glance_BS.flatten())
    word_loss = functional.cross_entropy(
        spoken.scores_BRTV.flatten(0, 2), batch.goal_BRT.flatten(), ignore_index=PAD
    )
    right = (scores_BSV.detach().argmax(dim=-1) == batch.glance_BS).float().mean()
    return slot_loss, word_loss, right
