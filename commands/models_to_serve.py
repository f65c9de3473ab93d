"""From options of `reverie serve` to a deployment: which models, with which weights."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.config import Setting


def model_named(text: str) -> dict[str, object]:
    """Read `--model`: a name, a location (named after its module), or `name=location`."""
    name, equals, family = text.partition("=")
    if equals:
        return {"name": name, "family": family}
    if ":" in text or text.endswith(".py"):  # without a name in it, finding it will say so
        place = (text.rpartition(":")[0] or text).removesuffix(".py")
        return {"name": re.split(r"[./\\]", place)[-1], "family": text}
    return {"name": text}


class CheckpointOfModel(argparse.Action):
    """Gives the newest `--model` its weights; without one, the model that is served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Note it; see `argparse.Action`."""
        models = namespace.model = namespace.model or [model_named("pocket")]
        models[-1]["checkpoint"] = str(values)


class DecoderOfModel(argparse.Action):
    """Gives the newest `--model` another decoder; without one, the model served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Note it; see `argparse.Action`."""
        kind, _, path = str(values).partition("=")
        models = namespace.model = namespace.model or [model_named("pocket")]
        models[-1].update(decoder=kind, decoder_path=path or None)


class AdapterOfModel(argparse.Action):
    """Gives the newest `--model` a LoRA; without one, the model that is served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Note it; see `argparse.Action`."""
        name, equals, path = str(values).partition("=")
        merged = option_string == "--lora-merged"
        if merged:
            path = str(values)
            name = re.sub(r"[^a-z0-9_]+", "_", Path(path).stem.lower())
        elif not (equals and name and path):
            parser.error(f"{option_string} takes NAME=PATH, not {values!r}")
        models = namespace.model = namespace.model or [model_named("pocket")]
        models[-1].setdefault("adapters", []).append({"name": name, "path": path, "merged": merged})


def settings_of(chosen: argparse.Namespace) -> "list[Setting]":
    """Return the fields of the deployment that the command line sets."""
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
