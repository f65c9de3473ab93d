"""The options of `reverie serve` that choose models and weights, as settings of a deployment."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.config import Setting


def model_named(text: str) -> dict[str, object]:
    """Read `--model`: a name, a location (named after its module), or `name=location`."""
    name, equals, family = text.partition("=")
    if equals:
        return {"name": name, "family": family}
    if ":" in text or text.endswith(".py"):  # loading reports a location without a name
        place = (text.rpartition(":")[0] or text).removesuffix(".py")
        return {"name": re.split(r"[./\\]", place)[-1], "family": text}
    return {"name": text}


class OptionOfModel(argparse.Action):
    """An option of the `--model` before it; without one, of the model served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Set the option; see `argparse.Action`."""
        models = namespace.model = namespace.model or [model_named("pocket")]
        try:
            self.note(models[-1], str(values))
        except ValueError as error:
            parser.error(f"{option_string} {error}")

    def note(self, model: dict[str, Any], text: str) -> None:
        """Write the option into the model's settings.

        Raises:
            ValueError: the option does not take this text.
        """
        raise NotImplementedError


class CheckpointOfModel(OptionOfModel):
    """The checkpoint of a model."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a path."""
        model["checkpoint"] = text


class GameOfModel(OptionOfModel):
    """The game that a model was trained on."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a name."""
        model["game"] = text


class PartsOfModel(OptionOfModel):
    """The folder of the other files that a checkpoint needs."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a folder."""
        model["parts"] = text


class DecoderOfModel(OptionOfModel):
    """A decoder instead of the model's own."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a kind, or a kind and a path."""
        kind, _, path = text.partition("=")
        model.update(decoder=kind, decoder_path=path or None)


class AdapterOfModel(OptionOfModel):
    """A LoRA that sessions can choose."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a name and a path."""
        name, equals, path = text.partition("=")
        if not (equals and name and path):
            raise ValueError(f"takes NAME=PATH, not {text!r}")
        add_adapter(model, name, path, merged=False)


class MergedAdapterOfModel(OptionOfModel):
    """A LoRA that is merged into the weights."""

    def note(self, model: dict[str, Any], text: str) -> None:
        """Take a path; the file's name gives the name."""
        name = re.sub(r"[^a-z0-9_]+", "_", Path(text).stem.lower())
        add_adapter(model, name, text, merged=True)


def add_adapter(model: dict[str, Any], name: str, path: str, *, merged: bool) -> None:
    """Add a LoRA to a model's settings."""
    model.setdefault("adapters", []).append({"name": name, "path": path, "merged": merged})


def settings_of(chosen: argparse.Namespace) -> "list[Setting]":
    """Return the settings of the deployment that come from the command line."""
    from reverie.config import Setting

    settings = []
    if chosen.host is not None:
        settings.append(Setting(("server", "host"), chosen.host, "--host"))
    if chosen.port is not None:
        settings.append(Setting(("server", "port"), chosen.port, "--port"))
    if chosen.inline:
        settings.append(Setting(("pool", "mode"), "inline", "--inline"))
    if chosen.model:
        settings.append(Setting(("pool", "models"), chosen.model, "--model"))
    return settings
