"""The entry point of training: the codec, the world model on its latents, then the narrator."""

import time

import torch

from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.training.batches import BatchMaker
from reverie.models.pocket.training.checkpoints import read_checkpoint
from reverie.models.pocket.training.codec_training import CodecTraining
from reverie.models.pocket.training.loop import checkpoint_path, run_task
from reverie.models.pocket.training.narration_batches import NarrationBatches
from reverie.models.pocket.training.narrator_training import NarratorTraining
from reverie.models.pocket.training.options import TrainOptions
from reverie.models.pocket.training.presets import Recipe, recipe
from reverie.models.pocket.training.rollouts import RolloutMaker
from reverie.models.pocket.training.world_training import TrainableNets, WorldTraining


def choose_device(name: str) -> torch.device:
    """Return the device that `name` (cpu, cuda or auto) means on this machine."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def train(options: TrainOptions, maker: RolloutMaker) -> None:
    """Train what `options` names, until it is finished or the time limit is reached.

    Args:
        options: what to train.
        maker: runs the serving loop; `reverie.engine.rollouts.Rollouts`, from the composition root.

    Raises:
        FileNotFoundError: the stage is `world` and `options.out` holds no codec.
    """
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    minutes = options.max_minutes
    deadline_s = None if minutes is None else time.monotonic() + 60 * minutes
    chosen = recipe(options.preset)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.stage in ("codec", "all"):
        codec = CodecTraining(chosen.config.codec, chosen.codec, options.seed, device)
        done = run_task(codec, options.out, device, resume=options.resume, deadline_s=deadline_s)
        if not done:
            return
    if options.stage in ("world", "all"):
        world = make_world_training(options, chosen, device, maker)
        done = run_task(world, options.out, device, resume=options.resume, deadline_s=deadline_s)
        if not done:
            return
    if options.stage in ("narrator", "all"):
        narrator = make_narrator_training(options, chosen, device)
        run_task(narrator, options.out, device, resume=options.resume, deadline_s=deadline_s)


def make_world_training(
    options: TrainOptions, chosen: Recipe, device: torch.device, maker: RolloutMaker
) -> WorldTraining:
    """Build the world model's training on the codec in `options.out`."""
    codec = _trained_codec(options, chosen, device)
    schedule = chosen.world
    batches = BatchMaker(
        codec, Vocabulary.of_grammar(), options.seed, schedule.clips, schedule.frames
    )
    return WorldTraining(chosen.config, schedule, batches, options.seed, device, maker)


def make_narrator_training(
    options: TrainOptions, chosen: Recipe, device: torch.device
) -> NarratorTraining:
    """Build the narrator's training on the codec and the world model in `options.out`."""
    nets = TrainableNets(chosen.config).to(device)
    content = read_checkpoint(checkpoint_path(options.out, "world"), device)
    nets.load_state_dict(content["task"]["average"])
    schedule = chosen.narrator
    batches = NarrationBatches(
        _trained_codec(options, chosen, device),
        Vocabulary.of_grammar(),
        NarrationVocabulary.of_grammar(),
        options.seed + 1,  # other texts than in the world model's training
        (schedule.clips, 0, schedule.texts),
    )
    return NarratorTraining(nets, schedule, batches)


def _trained_codec(options: TrainOptions, chosen: Recipe, device: torch.device) -> PictureCodec:
    codec = PictureCodec(chosen.config.codec).to(device)
    content = read_checkpoint(checkpoint_path(options.out, "codec"), device)
    codec.load_state_dict(content["task"]["codec"])
    return codec.eval().requires_grad_(False)
