"""All parts of a Wan checkpoint, compared with the model before any is read: one report for all.

A folder holds the transformer in one of the public layouts (`layouts.py`; `transformer_files.py`
says which file is taken), the VAE (`vae/` as diffusers has it, or the original `Wan2.1_VAE.pth`),
the text encoder (`text_encoder/` and `tokenizer/` as transformers has them), and may hold
`causal.json` with fields of `CausalConfig` and `"height"` and `"width"` in pixels. LongLive's
`lora.pt` next to its base is part of the model. `reverie models check` prints the report, and
loading begins with it, so they agree.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import torch

from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.services.checkpoint_report import (
    NOTHING,
    CheckpointReport,
    of_fault,
    shown_files,
)
from reverie.models.services.checkpoints import StoredTensor, inspect, read_config
from reverie.models.services.weight_files import CheckpointPaths
from reverie.models.wan.checkpoint import loras
from reverie.models.wan.checkpoint.layouts import TEXT_PARTS, VAES, config_of, lacking
from reverie.models.wan.checkpoint.text_files import check_text
from reverie.models.wan.checkpoint.transformer_files import (
    TransformerFiles,
    bundled_lora,
    find_files,
    used,
)
from reverie.models.wan.checkpoint.vae_files import VaeContents, find_vae, latent_channels
from reverie.models.wan.config import CELL_PX, GRID, LONGLIVE, SELF_FORCING, CausalConfig, WanConfig
from reverie.models.wan.network.fast_decoder import LATENT_CHANNELS
from reverie.models.wan.network.fast_decoder import check as check_decoder
from reverie.models.wan.network.transformer import WanTransformer


class CausalGrid(NamedTuple):
    """How blocks are made, and rows and columns of their latents."""

    causal: CausalConfig
    grid: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TransformerContents:
    """A transformer's tensors, compared with the model that they imply; they are read on demand."""

    config: WanConfig
    stored: dict[str, StoredTensor]
    report: CheckpointReport
    files: TransformerFiles

    def placed(self, folder: Path) -> CheckpointReport:
        """Return the report of this part, with files named relative to a folder."""
        return self.report.of_part("transformer", folder, self.files.files)


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """All parts of a checkpoint; a part that could not be read is None, and the report says why."""

    places: CheckpointPaths
    transformer: TransformerContents | None
    vae: VaeContents | None
    causal: CausalGrid
    report: CheckpointReport

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read."""
        parts = self.places.parts
        own = self.transformer.files.files if self.transformer is not None else ()
        vae = self.vae.files if self.vae is not None else ()
        rest = [folder / "config.json" for folder in self.places.folders]
        rest += [
            parts / name for name in ("causal.json", "transformer/config.json", "vae/config.json")
        ]
        return used([*own, *vae, *rest, *(parts / part for part in TEXT_PARTS)])


def find_transformer(checkpoint: Path, parts: Path | None = None) -> TransformerContents:
    """Read a checkpoint's headers and compare them with the model that they imply.

    Args:
        checkpoint: a folder or a file.
        parts: where the other parts are.

    Raises:
        CheckpointError: there is no transformer in a known layout, or more than one.
    """
    places = CheckpointPaths.of(checkpoint, parts)
    files = find_files(checkpoint)
    stored = files.layout.tensors(files.files)
    where = checkpoint / shown_files(checkpoint, files.files)
    config = config_of(where, places.folders, stored)
    with torch.device("meta"):
        model = WanTransformer(config)
    report = replace(inspect(files.layout.layout, stored, model), unused=files.unused)
    return TransformerContents(config, stored, report, files)


def causal_of(folder: Path, *, longlive: bool = False) -> CausalGrid:
    """Return how a checkpoint makes blocks: from `causal.json`, else by the name of its weights.

    Args:
        folder: of that file, if there is one.
        longlive: whether the weights are LongLive's.

    Raises:
        CheckpointError: the file has unknown fields or impossible sizes.
    """
    path = folder / "causal.json"
    values = read_config(path) if path.is_file() else {}
    rows, columns = GRID
    height, width = values.pop("height", rows * CELL_PX), values.pop("width", columns * CELL_PX)
    start = LONGLIVE if longlive else SELF_FORCING
    known = {field.name: getattr(start, field.name) for field in fields(CausalConfig)}
    if unknown := values.keys() - known.keys():
        raise CheckpointError(f"{path} has unknown fields: {', '.join(sorted(unknown))}")
    if isinstance(values.get("levels"), list):
        values["levels"] = tuple(values["levels"])
    try:
        causal = CausalConfig(**{**known, **values})
        for name, value in (("height", height), ("width", width)):
            if type(value) is not int:
                raise ValueError(f"{name} must be a whole number, not {value!r}")
        if height % (2 * CELL_PX) or width % (2 * CELL_PX) or min(height, width) < 1:
            raise ValueError(
                f"width and height must be multiples of {2 * CELL_PX}, not {width}x{height}"
            )
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    return CausalGrid(causal, (height // CELL_PX, width // CELL_PX))


def check_checkpoint(places: CheckpointPaths) -> CheckpointContents:
    """Check every part of a checkpoint, and that they belong together.

    Raises:
        CheckpointError: there is no transformer, and nothing else of a Wan checkpoint.
    """
    transformer, report = None, NOTHING
    try:
        transformer = find_transformer(places.checkpoint, places.parts)
    except CheckpointError as fault:
        if not any((places.parts / part).exists() for part in (*VAES, *TEXT_PARTS)):
            raise
        report = of_fault(fault)
    else:
        report = transformer.placed(places.parts).joined(_bundled(transformer))
    longlive = transformer is not None and transformer.files.is_longlive
    causal = CausalGrid(SELF_FORCING, GRID)
    try:
        causal = causal_of(places.parts, longlive=longlive)
    except CheckpointError as fault:
        report = report.joined(of_fault(fault))
    vae, of_vae = _vae(places.parts, transformer)
    width = transformer.config.text_dim if transformer is not None else None
    report = report.joined(of_vae).joined(check_text(places.parts, width))
    report = replace(report, lacking=lacking(places.parts))
    return CheckpointContents(places, transformer, vae, causal, report)


def check_more(found: CheckpointContents, options: LoadOptions) -> CheckpointReport:
    """Return the report of a checkpoint with the decoder and LoRAs that the operator serves."""
    report = found.report
    transformer = found.transformer
    if options.decoder:
        place = Path(options.decoder_path or found.places.parts)
        try:
            report = report.joined(check_decoder(place))
        except CheckpointError as fault:
            report = report.joined(of_fault(fault))
        if transformer is not None and transformer.config.out_dim != LATENT_CHANNELS:
            has = transformer.config.out_dim
            why = (
                f"{place} reads latents of {LATENT_CHANNELS} channels, the transformer makes {has}"
            )
            report = report.joined(of_fault(CheckpointError(why)))
    if transformer is None:
        return report
    for option in options.adapters:
        try:
            report = report.joined(loras.check(Path(option.path), transformer.config, option.name))
        except CheckpointError as fault:
            report = report.joined(of_fault(CheckpointError(f"adapter {option.name}: {fault}")))
    return report


def _bundled(transformer: TransformerContents) -> CheckpointReport:
    """Return the report of the LoRA that is part of a published model, if there is one."""
    lora = bundled_lora(transformer.files)
    if lora is None:
        return NOTHING
    try:
        report = loras.check(lora, transformer.config, loras.BUNDLED_NAME)
    except CheckpointError as fault:
        return of_fault(fault)
    return report.of_part("LoRA", lora.parent, (lora,))


def _vae(
    folder: Path, transformer: TransformerContents | None
) -> tuple[VaeContents | None, CheckpointReport]:
    try:
        found = find_vae(folder)
    except CheckpointError as fault:
        return None, of_fault(fault)
    if found is None:
        return None, NOTHING
    has = latent_channels(found)
    wanted = has if transformer is None else transformer.config.out_dim
    if has == wanted:
        return found, found.report
    apart = CheckpointError(
        f"{found.files[0]} belongs to another model: its latents have {has} channels, those of the "
        f"transformer {wanted}"
    )
    return found, found.report.joined(of_fault(apart))
