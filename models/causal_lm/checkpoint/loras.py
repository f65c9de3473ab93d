"""LoRAs for language models, as peft saves them: with the library's own names."""

from pathlib import Path

from torch import nn
from transformers import PreTrainedModel

from reverie.models.causal_lm.checkpoint.contents import bare_model
from reverie.models.causal_lm.config import COMPONENT, RANDOM
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption
from reverie.models.services.adapters import FittedAdapters, fit_adapters
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.lora_files import read_lora


def own_name(name: str) -> str:
    """Return the name of a weight here, with its component in front."""
    return f"{COMPONENT}.{name}"


def fit(options: tuple[AdapterOption, ...], model: PreTrainedModel) -> FittedAdapters:
    """Merge LoRAs into a model, or attach them to it.

    Raises:
        CheckpointError: one cannot be read, or does not fit; nothing has changed.
    """
    return fit_adapters(options, {COMPONENT: model}, own_name)


def check(path: Path, base: str | None, adapter: str | None = None) -> CheckpointReport:
    """Compare a LoRA with the model that it is for; no weights are read.

    Args:
        path: a file or a folder.
        base: the folder of that model.
        adapter: which one to take of a file with several.

    Raises:
        CheckpointError: it cannot be read, is not a LoRA, or no model is named.
    """
    if base is None or base == RANDOM:
        raise CheckpointError(
            "the LoRA needs its language model: name that folder with --checkpoint"
        )
    file = read_lora(path, own_name, adapter)
    return file.inspect(nn.ModuleDict({COMPONENT: bare_model(Path(base))}))
