"""`reverie train`: train the embedded model."""

import argparse
from pathlib import Path

from reverie.commands.grammar import FAILED, Commands, complain


def add(commands: Commands) -> None:
    """Add the command that trains a model."""
    train = commands.add_parser("train", help="train a model that ships with reverie")
    families = train.add_subparsers(title="models", metavar="MODEL", required=True)
    pocket = families.add_parser(
        "pocket",
        help="the embedded world model",
        description="Train the embedded model: the codec, then the world model on its latents, "
        "then the narrator. The same seed gives the same weights on one machine. Training can be "
        "stopped at any time: the next run continues from the newest checkpoint. The weights so "
        "far can be served.",
    )
    pocket.add_argument(
        "--out",
        type=Path,
        default=Path("runs/pocket"),
        metavar="FOLDER",
        help="folder for checkpoints and weights (default: %(default)s)",
    )
    pocket.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    pocket.add_argument(
        "--stage",
        choices=("all", "codec", "world", "narrator"),
        default="all",
        help="default: %(default)s",
    )
    pocket.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: %(default)s"
    )
    pocket.add_argument(
        "--preset",
        choices=("pocket", "tiny"),
        default="pocket",
        help="sizes and schedule; tiny is for a quick try (default: %(default)s)",
    )
    pocket.add_argument("--minutes", type=float, help="stop after this time, with a checkpoint")
    pocket.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
    pocket.add_argument(
        "--fresh", action="store_true", help="start again, and ignore checkpoints in --out"
    )
    pocket.set_defaults(command=_train_pocket)


def _train_pocket(chosen: argparse.Namespace) -> int:
    from reverie.engine.rollouts import Rollouts
    from reverie.models.pocket.training.export import export
    from reverie.models.pocket.training.loop import checkpoint_path
    from reverie.models.pocket.training.options import TrainOptions
    from reverie.models.pocket.training.run import train

    options = TrainOptions(
        out=chosen.out,
        seed=chosen.seed,
        stage=chosen.stage,
        device=chosen.device,
        preset=chosen.preset,
        max_minutes=chosen.minutes,
        resume=not chosen.fresh,
        threads=chosen.threads,
    )
    try:
        train(options, Rollouts)
    except FileNotFoundError as error:
        return complain(str(error), FAILED)
    if checkpoint_path(options.out, "world").exists():
        weights = options.out / "pocket.safetensors"
        version = export(options.out, weights, options.preset, options.seed)
        print(f"weights {version} are in {weights}")
        if options.preset == "pocket":  # only these sizes can be served
            print(f"play them: REVERIE_POOL__MODELS__0__CHECKPOINT={weights} reverie serve")
    return 0
