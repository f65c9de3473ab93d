"""`reverie models`: what can be served, and whether a checkpoint fits."""

import argparse

from reverie.commands.grammar import FAILED, Commands, complain


def add(commands: Commands) -> None:
    """Add the command that lists what is installed."""
    models = commands.add_parser(
        "models",
        help="list what can be served",
        description="List the installed models: what they run, what they can do, the memory that "
        "a session takes, and licences. No weights are read for it.",
    )
    models.add_argument(
        "--load", action="store_true", help="load each as well, to see whether it can be served"
    )
    models.set_defaults(command=_models)
    commands_of = models.add_subparsers(title="commands", metavar="COMMAND")
    check = commands_of.add_parser(
        "check",
        help="say whether a checkpoint fits, without loading it",
        description="Compare the tensors of a checkpoint with the model that they imply: names, "
        "shapes, types; see whether its parts belong together, and what it lacks to be served. "
        "Only headers are read. Exit status 1 when it cannot be served as it is.",
    )
    check.add_argument("path", metavar="PATH", help="a folder or a file")
    check.add_argument(
        "--model", metavar="MODEL", help="which family (default: the one that it is found to be of)"
    )
    check.add_argument(
        "--checkpoint",
        metavar="BASE",
        help="of a LoRA, the checkpoint that it is for (default: the published sizes)",
    )
    check.add_argument(
        "--parts",
        metavar="DIR",
        help="of a checkpoint, the folder of what else it needs (default: next to it)",
    )
    check.add_argument(
        "--adapter", metavar="NAME", help="of a file with several LoRAs, the one to check"
    )
    check.set_defaults(command=_check_checkpoint)


def _models(chosen: argparse.Namespace) -> int:
    from reverie.models.services.catalogue import as_text, catalogue

    print(as_text(catalogue(load=chosen.load)))
    return 0


def _check_checkpoint(chosen: argparse.Namespace) -> int:
    from reverie.models.contract.errors import ModelError
    from reverie.models.services.checkpoint_match import CheckRequest, checked, recognised

    request = CheckRequest(chosen.path, chosen.parts, chosen.checkpoint, chosen.adapter)
    try:
        if chosen.model is None:
            name, report = recognised(request)
            print(f"{name}, ", end="")
        else:
            report = checked(chosen.model, request)
    except ModelError as error:
        return complain(str(error), FAILED)
    print("\n".join(report.told()))
    return 0 if report.fits else FAILED
