"""Public causal Wan as it was recorded: a folder as it is published, loaded by the family itself.

A recording keeps every call that the public pipeline made of its transformer, and every number that
was drawn. Only draws and encoded prompts are put in place of the family's own.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan
from loop_rig import Rig
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from wan_folders import write_text

from reverie.engine.inputs import ControlId, PromptInput, StreamInput
from reverie.models.contract.controls import MediaInput
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest, StepBatch, StepResult
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.network.block import KeysAndValues
from reverie.models.wan.network.features import FeatureCache
from reverie.models.wan.network.transformer import CallOutput, WanTransformer
from reverie.models.wan.spec import Wan
from reverie.models.wan.state import WanState

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
WEIGHTS = GOLDENS / "wan_dit" / "weights_original.safetensors"
"""All the recordings were made with these."""
VAE = GOLDENS / "wan_vae" / "weights_diffusers.safetensors"
TOLERANCE = 2e-5
SWITCHES = {"switch_frame": "B", "switch_back_frame": "A"}
"""Where a recording changes its prompt, and to which."""


def metadata(path: Path, key: str) -> dict[str, Any]:
    with safe_open(path, "pt") as file:
        held: dict[str, Any] = json.loads(file.metadata()[key])
        return held


@dataclass
class Recording:
    """A golden file."""

    family: str
    case: str
    numbers: dict[str, Tensor] = field(init=False)
    meta: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        path = GOLDENS / self.family / f"{self.case}.safetensors"
        self.numbers, self.meta = load_file(path), metadata(path, "meta")

    @property
    def given(self) -> int:
        """Latent frames that were there before anything was made."""
        return int(self.meta.get("initial_frames", 0))

    @property
    def first_alone(self) -> bool:
        return bool(self.meta.get("independent_first_frame", False))

    def written(self, folder: Path) -> None:
        """Write the folder as the family publishes it."""
        held = {f"model.{name}": value for name, value in load_file(WEIGHTS).items()}
        # What the other pipeline would take: the two trainings publish under different keys.
        noise = {name: torch.zeros_like(value) for name, value in held.items()}
        if self.family == "longlive":
            both = {"generator": held, "generator_ema": noise}
            torch.save(both, folder / "longlive_base.pt")
        else:
            both = {"generator": noise, "generator_ema": held}
            torch.save(both, folder / "self_forcing_dmd.pt")
        lora = {
            name.removeprefix("lora."): value
            for name, value in self.numbers.items()
            if name.startswith("lora.")
        }
        if lora:
            torch.save({"generator_lora": lora}, folder / "lora.pt")
        (folder / "config.json").write_text(json.dumps(self.meta["cfg"]))
        (folder / "causal.json").write_text(json.dumps(self._causal()))
        write_vae(folder)
        write_text(folder, self.meta["cfg"]["text_dim"])

    def _causal(self) -> dict[str, Any]:
        rows, columns = self.numbers["in.noise"].shape[-2:]
        local = self.meta["local_attn_size"]
        causal = {
            "height": rows * 8,
            "width": columns * 8,
            "block": self.meta["block"],
            "local": local if local > 0 else 21,
            "sink": self.meta["sink_size"],
            "levels": self.meta["steps"],
            "shift": self.meta["shift"],
            "context_level": self.meta.get("context_noise", 0),
            "first_alone": self.first_alone,
        }
        if self.family == "longlive":
            causal["global_sink"] = self.meta.get("global_sink", True)
        return causal


def write_vae(folder: Path) -> None:
    """Write the recorded VAE as diffusers does."""
    vae = AutoencoderKLWan(**metadata(VAE, "cfg"))
    vae.load_state_dict(load_file(VAE))
    vae.save_pretrained(folder / "vae")


@dataclass
class RecordedNoise:
    """The draws of a recording."""

    recording: Recording

    def first(self, seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
        made = frame - self.recording.given
        return self.recording.numbers["in.noise"][0, made : made + shape[0]]

    def again(self, seed: int, frame: int, step: int, shape: tuple[int, ...]) -> Tensor:
        made, block = frame - self.recording.given, self.recording.meta["block"]
        alone = self.recording.first_alone and not self.recording.given
        number = -(-made // block) if alone else made // block
        draws = len(self.recording.meta["steps"]) - 1
        return self.recording.numbers[f"in.renoise.{number * draws + step - 1}"]


@dataclass
class RecordedText:
    """The encoded prompts of a recording, by their letter; without the rows that pad them."""

    numbers: dict[str, Tensor]

    def encode(self, prompt: str) -> Tensor:
        rows = self.numbers.get(f"in.prompt.{prompt}", torch.zeros(0, 24))
        return rows[: int(rows.abs().sum(1).count_nonzero())]


@dataclass
class GivenLatents:
    """Encodes whatever is pushed to the latents that the recording began with."""

    latents_FZhw: Tensor

    def encode(
        self, pictures_BFHWC: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        number = 0 if cache is None else len(cache)
        return self.latents_FZhw[number : number + 1], ("",) * (number + 1)


@dataclass
class Call:
    """One call of the transformer and what was in the cache after it."""

    x: Tensor
    timestep: Tensor
    first_frame: int
    output: CallOutput
    past: tuple[KeysAndValues, ...] | None
    mute: int

    def cache(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return the keys and values [tokens, heads, d] that the reference has after this call."""
        own = self.output.kv_BFLNAd[0, self.mute :, :, layer]  # [F, 2, N, A, d]
        k, v = (part.flatten(0, 1) for part in own.unbind(1))
        if self.past is None:
            return k, v
        past = self.past[layer]
        return (
            torch.cat([past.k_BAKd[0].transpose(0, 1), k]),
            torch.cat([past.v_BAKd[0].transpose(0, 1), v]),
        )


class KeepingKernel(WanKernel):
    """Remembers the newest state."""

    newest: WanState

    def run_step(self, batch: StepBatch[WanState]) -> Sequence[StepResult[WanState]]:
        results = super().run_step(batch)
        self.newest = results[-1].state
        return results


class RecordedWan(Wan):
    """The family, which notes the calls of what it has loaded."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording
        self.calls: list[Call] = []

    def load(self, options: LoadOptions) -> ModelInstance:
        instance = super().load(options)
        components = self._components[instance.name]
        components.transformer.register_forward_hook(self._note)
        given = self.recording.numbers.get("in.initial")
        self._components[instance.name] = replace(
            components,
            text=RecordedText(self.recording.numbers),
            noise=RecordedNoise(self.recording),
            encoder=components.encoder if given is None else GivenLatents(given[0]),
        )
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        spec, components = instance.spec.loop(loop), self._components[instance.name]
        return KeepingKernel(spec, components, instance, self._policies[instance.name])

    def _note(self, network: nn.Module, given: Any, output: CallOutput) -> None:
        assert isinstance(network, WanTransformer)
        x, timestep, _, past, first_frames, mute = given
        self.calls.append(Call(x, timestep, first_frames[0], output, past, mute))


@dataclass
class Played:
    """A recording, and what the family made under the same draws."""

    recording: Recording
    rig: Rig
    calls: list[Call]

    @cached_property
    def frames(self) -> np.ndarray:
        return np.concatenate([out.frames for out in self.rig.frames("s1")])

    @property
    def kernel(self) -> KeepingKernel:
        assert isinstance(self.rig.kernel, KeepingKernel)
        return self.rig.kernel


def play(recording: Recording, folder: Path) -> Played:
    """Load a recording's folder and run its blocks, with its prompts and its clip."""
    recording.written(folder)
    family = RecordedWan(recording)
    options = LoadOptions(device="cpu", checkpoint=str(folder), sessions=1, history_chunks=2)
    rig = Rig(family, options)
    driver = rig.open(LoopRequest("s1", 0, "A", {"on_prompt": 0}))
    if recording.given:
        driver.push(_clip(1 + 4 * (recording.given - 1), rig))
        rig.run(lambda: driver.state.frame == recording.given)
    prompts = {recording.meta.get(key): letter for key, letter in SWITCHES.items()}
    for first in _block_starts(recording):
        for at in [at for at in prompts if at is not None and first >= at]:
            driver.push([PromptInput(ControlId(f"at {at}"), prompts.pop(at))])
        rig.run_chunks("s1", 1)
    due = len(recording.meta["calls"])
    rig.run(lambda: len(family.calls) >= due)
    return Played(recording, rig, family.calls[:due])


def _block_starts(recording: Recording) -> list[int]:
    """Return the first latent frame of each block that is made."""
    first, block = recording.given, recording.meta["block"]
    ends = first + recording.numbers["in.noise"].shape[1]
    alone = [0] if recording.first_alone and not first else []
    return [*alone, *range(first + len(alone), ends, block)]


def _clip(count: int, rig: Rig) -> list[StreamInput]:
    stream = rig.kernel.spec.streams[0]
    grey = np.zeros((stream.height, stream.width, 3), dtype=np.uint8)
    return [
        StreamInput(ControlId(f"clip{n}"), "clip", MediaInput(n, grey, last=n == count - 1))
        for n in range(count)
    ]
