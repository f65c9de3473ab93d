"""The public models' numbers, call by call: the family's own load(), kernel and driver."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import WanTransformer3DModel
from recorded_wan import (
    GOLDENS,
    TOLERANCE,
    WEIGHTS,
    Played,
    Recording,
    metadata,
    play,
    write_vae,
)
from safetensors.torch import load_file, save_file
from torch import Tensor
from wan_folders import write_text

from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.checkpoint.layouts import from_diffusers
from reverie.models.wan.network.schedule import FlowSchedule
from reverie.models.wan.spec import Wan

CASES = [
    ("self_forcing", "global"),
    ("self_forcing", "local6_sink0"),
    ("self_forcing", "local9_sink3"),
    ("self_forcing", "context_noise"),
    ("self_forcing", "first_alone"),
    ("self_forcing", "frame_wise"),
    ("self_forcing", "image_to_video"),
    ("self_forcing", "extension"),
    ("longlive", "local9_sink3"),
    ("longlive", "switch_local9_sink3_gs1"),
    ("longlive", "switch_gs0"),
    ("longlive", "switch_early_gs1"),
    ("longlive", "switch_twice"),
    ("longlive", "lora"),
]


@pytest.fixture(scope="module", params=CASES, ids="/".join)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(Recording(*request.param), tmp_path_factory.mktemp("published"))


def assert_near(made: Tensor, wanted: Tensor, what: str) -> None:
    worst = (made - wanted).abs().max().item()
    assert made.shape == wanted.shape, f"{what}: {tuple(made.shape)}, not {tuple(wanted.shape)}"
    assert worst <= TOLERANCE, f"{what} is off by {worst}"


class TestParity:
    """Self-Forcing and LongLive."""

    def test_every_call_is_the_reference_call(self, played: Played) -> None:
        plan = [(first, frames) for first, frames, *_ in played.recording.meta["calls"]]
        assert [(call.first_frame, call.x.shape[1]) for call in played.calls] == plan
        for index, call in enumerate(played.calls):
            made = {"x": call.x, "t": call.timestep, "flow": call.output.flow_BFZhw}
            for name, value in made.items():
                key = f"call.{index}.{name}"
                assert_near(value, played.recording.numbers[key], key)

    def test_the_cache_holds_what_the_reference_cache_holds(self, played: Played) -> None:
        numbers = played.recording.numbers
        for index, call in enumerate(played.calls):
            for layer in range(played.recording.meta["cfg"]["num_layers"]):
                key = f"call.{index}.kv.{layer}"
                if f"{key}.k" in numbers:
                    for name, made in zip("kv", call.cache(layer), strict=True):
                        assert_near(made, numbers[f"{key}.{name}"][0, : len(made)], f"{key}.{name}")

    def test_most_recordings_hold_a_cache(self) -> None:
        held = [any(".kv." in key for key in Recording(*case).numbers) for case in CASES]
        assert sum(held) >= 6

    def test_the_latents_are_the_reference_latents(self, played: Played) -> None:
        latents = played.recording.numbers["out.latents"]
        given = played.recording.given
        made = {
            frame.number: frame.clean_Zhw
            for frame in (*played.kernel.newest.sink, *played.kernel.newest.window)
        }
        assert len(made) >= min(latents.shape[1], played.recording.meta["local_attn_size"])
        for number, clean_Zhw in made.items():
            assert_near(clean_Zhw, latents[0, number], f"latent {number} after {given} given ones")

    def test_what_is_shown_is_what_the_public_vae_shows(self, tmp_path: Path) -> None:
        played = play(Recording("longlive", "lora"), tmp_path)
        chosen = played.recording.meta["video_frames"]
        wanted = played.recording.numbers["out.video"].int().numpy()
        assert len(played.frames) == 33
        assert np.abs(played.frames[chosen].astype(int) - wanted).max() <= 1  # of 255
        assert wanted.std() > 20

    def test_a_cache_block_holds_what_its_call_wrote(self, tmp_path: Path) -> None:
        played = play(Recording("self_forcing", "local9_sink3"), tmp_path)
        state, pool = played.kernel.newest, played.rig.instance.blocks
        assert pool is not None
        assert len(state.blocks) == 9
        kept = pool.gather(state.blocks)
        sink, newest = played.calls[2].output.kv_BFLNAd[0], played.calls[-1].output.kv_BFLNAd[0]
        assert torch.equal(kept[:3], sink)
        assert torch.equal(kept[-3:], newest)


def original(folder: Path) -> None:
    save_file(load_file(WEIGHTS), folder / "diffusion_pytorch_model.safetensors")
    (folder / "config.json").write_text(json.dumps(metadata(WEIGHTS, "cfg")))


def ported(folder: Path) -> None:
    sizes, held = metadata(WEIGHTS, "cfg"), load_file(WEIGHTS)
    make: Any = WanTransformer3DModel
    port = make(
        num_attention_heads=sizes["num_heads"],
        attention_head_dim=sizes["dim"] // sizes["num_heads"],
        in_channels=sizes["in_dim"],
        out_channels=sizes["out_dim"],
        text_dim=sizes["text_dim"],
        freq_dim=sizes["freq_dim"],
        ffn_dim=sizes["ffn_dim"],
        num_layers=sizes["num_layers"],
    )
    port.load_state_dict({name: held[from_diffusers(name)] for name in port.state_dict()})
    numbers = load_file(GOLDENS / "wan_dit" / "io.safetensors")
    with torch.no_grad():  # the names are the port's own: it computes the recorded flow with them
        flow = port(numbers["in.x"], numbers["in.t"], numbers["in.context"][None]).sample
    assert_near(flow[0], numbers["out.flow"], "the port's flow")
    port.save_pretrained(folder / "transformer")
    config = folder / "transformer" / "config.json"  # which leaves the 512 rows of a prompt unsaid
    rows = {"text_len": sizes["text_len"]}
    config.write_text(json.dumps(json.loads(config.read_text()) | rows))


class TestTransformer:
    """One call of Wan 2.1's own code."""

    @pytest.mark.parametrize("layout", [original, ported])
    def test_it_is_the_bidirectional_wan_when_nothing_was_before(
        self, layout: Callable[[Path], None], tmp_path: Path
    ) -> None:
        layout(tmp_path)
        write_vae(tmp_path)
        write_text(tmp_path, metadata(WEIGHTS, "cfg")["text_dim"])
        family = Wan()
        instance = family.load(LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1))
        transformer = family._components[instance.name].transformer
        numbers = load_file(GOLDENS / "wan_dit" / "io.safetensors")
        x_BFZhw = numbers["in.x"].transpose(1, 2)
        timestep = numbers["in.t"][:, None].expand(1, x_BFZhw.shape[1])
        with torch.no_grad():
            prompt = transformer.read_prompt(numbers["in.context"][None])
            flow = transformer(x_BFZhw, timestep, prompt, None, (0,)).flow_BFZhw
        assert_near(flow[0].transpose(0, 1), numbers["out.flow"], "flow")


class TestSchedule:
    """The tables of shift 5 and 8."""

    @pytest.mark.parametrize("shift", [5, 8])
    def test_the_tables_are_the_public_ones(self, shift: int) -> None:
        numbers = load_file(GOLDENS / "self_forcing" / "schedule.safetensors")
        schedule = FlowSchedule.of(float(shift))
        assert torch.equal(schedule.sigmas, numbers[f"shift{shift}.sigmas"])
        assert torch.equal(schedule.timesteps, numbers[f"shift{shift}.timesteps"])
        for key, wanted in numbers.items():
            if key.startswith(f"shift{shift}."):
                levels = tuple(
                    int(level) for level in key.rpartition(".")[2].split("_") if level.isdigit()
                )
                if ".warp." in key:
                    assert schedule.warp(levels) == pytest.approx(wanted.tolist())
                if ".nearest_sigma." in key:
                    found = [schedule.sigma(float(level)) for level in levels]
                    assert found == pytest.approx(wanted.tolist(), abs=1e-7)
