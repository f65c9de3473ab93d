"""`reverie models`: what can be served, and whether a checkpoint fits."""

import argparse

from reverie.commands.grammar import FAILED, Commands, complain


def add(commands: Commands) -> None:
    """Add the command that lists what is installed."""
    models = commands.add_parser(
        "models",
        help="list what can be served",
        description="List the installed models: their programs and capabilities, the memory that "
        "a session takes, and licences. The command reads no weights.",
    )
    models.add_argument(
        "--load", action="store_true", help="also load each model, to see whether it can be served"
    )
    models.set_defaults(command=_models)
    commands_of = models.add_subparsers(title="commands", metavar="COMMAND")
    check = commands_of.add_parser(
        "check",
        help="say whether a checkpoint fits, without loading it",
        description="Compare the names, shapes and types of a checkpoint's tensors with the model "
        "that they imply; check that its parts belong together; list what is missing. The command "
        "reads headers only. The exit status is 1 when the checkpoint cannot be served as it is.",
    )
    check.add_argument("path", metavar="PATH", help="a folder or a file")
    check.add_argument(
        "--model", metavar="MODEL", help="the model family (default: recognised by the tensors)"
    )
    check.add_argument(
        "--checkpoint",
        metavar="BASE",
        help="for a LoRA: the checkpoint that it adapts (default: the published sizes)",
    )
    check.add_argument(
        "--parts",
        metavar="DIR",
        help="for a checkpoint: the folder of the other files that it needs (default: its own)",
    )
    check.add_argument(
        "--adapter", metavar="NAME", help="for a file with several LoRAs: the one to check"
    )
    check.set_defaults(command=_check_checkpoint)


def _models(chosen: argparse.Namespace) -> int:
    from reverie.models.services.catalogue import as_text, catalogue

    print(as_text(catalogue(load=chosen.load)))
    return 0


def _check_checkpoint(chosen: argparse.Namespace) -> int:
    from reverie.models.contract.errors import ModelError
    from reverie.models.services.checkpoint_match import CheckRequest, check, recognise

    request = CheckRequest(chosen.path, chosen.parts, chosen.checkpoint, chosen.adapter)
    try:
        if chosen.model is None:
            name, report = recognise(request)
            print(f"{name}, ", end="")
        else:
            report = check(chosen.model, request)
    except ModelError as error:
        return complain(str(error), FAILED)
    print("\n".join(report.full_lines()))
    return 0 if report.fits else FAILED
