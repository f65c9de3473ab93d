"""The fast decoder: the public one's own numbers, names of its files, sessions apart."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from loop_rig import Rig
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_wan import TinyWan, tiny_options
from torch import Tensor
from wan_folders import self_forcing, write_rest
from wan_rig import frames_out, opened

from reverie.cli import main, make_parser
from reverie.commands.models_to_serve import settings_of
from reverie.config import Deployment
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.network.fast_decoder import FastDecoder, load_fast_decoder
from reverie.models.wan.network.features import FeatureCache, split_caches, stack_caches
from reverie.models.wan.spec import Wan

GOLDEN = Path(__file__).resolve().parents[3] / "goldens" / "taehv" / "decode.safetensors"
"""What TAEHV's own code made of random weights."""
CPU = torch.device("cpu")
TOLERANCE = 1e-5
GROWTH = "decoder.7.conv.weight"
"""A growth of which a public file stores more than is used."""


def recorded(name: str) -> Tensor:
    with safe_open(GOLDEN, "pt") as file:
        tensor: Tensor = file.get_tensor(name)
        return tensor


def stored() -> dict[str, Tensor]:
    """Return the weights as a public file stores them."""
    held = load_file(GOLDEN)
    first = "weights."
    return {key.removeprefix(first): held[key] for key in held if key.startswith(first)}


def decoder(dtype: torch.dtype = torch.float32) -> FastDecoder:
    with TemporaryDirectory() as folder:
        save_file(stored(), f"{folder}/taew2_1.safetensors")
        return load_fast_decoder(Path(folder), CPU, dtype)


def latents(frames: int, videos: int = 1) -> Tensor:
    return recorded("in.latents")[:videos, :frames]


def streamed(
    one: FastDecoder, latents_FZhw: Tensor, cache: FeatureCache | None = None
) -> tuple[Tensor, FeatureCache | None]:
    made = []
    for latent_Zhw in latents_FZhw:
        pictures_BFHWC, cache = one.decode(latent_Zhw[None], cache)
        made.append(pictures_BFHWC[0])
    return torch.cat(made), cache


def as_shown(pictures_FCHW: Tensor) -> Tensor:
    """Return what public code gives, 0 to 1, as decoders give it here."""
    return (pictures_FCHW * 2 - 1).permute(0, 2, 3, 1)


def assert_near(made: Tensor, wanted: Tensor) -> None:
    assert made.shape == wanted.shape
    torch.testing.assert_close(made, wanted, atol=TOLERANCE, rtol=0)


class TestDecoding:
    """Latents to pictures."""

    @pytest.mark.parametrize("video", [0, 1])
    def test_chunks_are_what_public_code_makes_of_the_whole(self, video: int) -> None:
        given = latents(7, videos=2)[video]
        one = decoder()
        cache: FeatureCache | None = None
        chunks = []
        for first in (0, 3, 6):
            made, cache = streamed(one, given[first : first + 3], cache)
            chunks.append(made)
        assert [len(chunk) for chunk in chunks] == [9, 12, 4]
        assert_near(torch.cat(chunks), as_shown(recorded("out.parallel")[video]))
        assert chunks[0].std() > 0.1

    def test_each_latent_frame_gives_what_public_streaming_gives(self) -> None:
        one, wanted = decoder(), as_shown(recorded("out.streamed")[0])
        cache: FeatureCache | None = None
        first = 0
        with safe_open(GOLDEN, "pt") as file:
            counts = json.loads(file.metadata()["meta"])["frames_per_latent"]
        for latent_Zhw, count in zip(latents(7)[0], counts, strict=True):
            made, cache = one.decode(latent_Zhw[None], cache)
            assert_near(made[0], wanted[first : first + count])
            first += count
        assert first == len(wanted)

    def test_sessions_do_not_mix(self) -> None:
        one, other = latents(4, videos=2)
        shared = decoder()
        mine: list[Tensor] = []
        my_cache: FeatureCache | None = None
        their_cache: FeatureCache | None = None
        for my_latent, their_latent in zip(one, other, strict=True):
            pictures, my_cache = shared.decode(my_latent[None], my_cache)
            _, their_cache = shared.decode(their_latent[None], their_cache)
            mine.append(pictures[0])
        assert torch.equal(torch.cat(mine), streamed(decoder(), one)[0])

    def test_a_batch_decodes_what_each_would_alone(self) -> None:
        both = latents(3, videos=2)
        caches: list[FeatureCache | None] = [None, None]
        made: list[Tensor] = []
        for latents_BZhw in both.unbind(1):
            pictures, cache = decoder(torch.float64).decode(latents_BZhw, stack_caches(caches))
            caches = list(split_caches(cache, 2))
            made.append(pictures)
        for row, alone in enumerate(both):
            assert_near(torch.cat(made, dim=1)[row], streamed(decoder(torch.float64), alone)[0])

    def test_a_cache_that_was_kept_is_not_edited(self) -> None:
        given = latents(4)[0]
        _, kept = streamed(decoder(), given[:2])
        once, _ = streamed(decoder(), given[2:], kept)
        again, _ = streamed(decoder(), given[2:], kept)
        assert torch.equal(once, again)

    def test_no_cache_begins_a_new_video(self) -> None:
        one = decoder()
        given = latents(2)[0]
        first, _ = streamed(one, given)
        streamed(one, given.flip(-1))
        assert torch.equal(streamed(one, given)[0], first)
        assert len(first) == 5


class TestFiles:
    """Public layouts, and what does not fit."""

    @pytest.mark.parametrize("suffix", ["pth", "safetensors"])
    def test_a_public_file_is_read_and_its_encoder_left(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"taew2_1.{suffix}"
        held = {**stored(), "encoder.0.weight": torch.zeros(64, 3, 3, 3)}
        if suffix == "pth":
            torch.save(held, path)
        else:
            save_file(held, path)
        for place in (path, tmp_path):
            loaded = load_fast_decoder(place, CPU, torch.float32)
            given = latents(2)[0]
            assert torch.equal(streamed(loaded, given)[0], streamed(decoder(), given)[0])

    def test_of_a_growth_that_makes_more_frames_the_last_are_taken(self, tmp_path: Path) -> None:
        held = stored()
        assert held[GROWTH].shape[0] == 2 * held[GROWTH].shape[1]
        held[GROWTH] = held[GROWTH][-held[GROWTH].shape[1] :].clone()
        save_file(held, tmp_path / "taew2_1.safetensors")
        loaded = load_fast_decoder(tmp_path, CPU, torch.float32)
        made, _ = streamed(loaded, latents(7)[0])
        assert_near(made, as_shown(recorded("out.parallel")[0]))

    def test_what_does_not_fit_is_refused_with_all_that_is_wrong(self, tmp_path: Path) -> None:
        held = stored()
        del held["decoder.4.conv.0.bias"]
        held["decoder.22.weight"] = torch.zeros(12, 6, 3, 3)
        save_file(held, tmp_path / "taew2_1.safetensors")
        with pytest.raises(
            CheckpointError, match=r"missing from the checkpoint \(1\): decoder\.4\.conv\.0"
        ):
            load_fast_decoder(tmp_path, CPU, torch.float32)
        with pytest.raises(CheckpointError, match=r"decoder\.22\.weight is \[12, 6, 3, 3\]"):
            load_fast_decoder(tmp_path, CPU, torch.float32)

    def test_a_folder_without_one_says_what_it_should_hold(self, tmp_path: Path) -> None:
        with pytest.raises(
            CheckpointError, match=r"contains no fast decoder: taew2_1\.safetensors"
        ):
            load_fast_decoder(tmp_path, CPU, torch.float32)

    def test_check_knows_it(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        save_file(stored(), tmp_path / "taew2_1.safetensors")
        assert main(["models", "check", str(tmp_path / "taew2_1.safetensors")]) == 0
        assert capsys.readouterr().out.startswith("wan, layout TAEHV: 64 tensors fit")


class TestServed:
    """In place of the VAE's decoder."""

    def test_a_world_is_shown_by_it_and_goes_on_after_a_rewind_as_it_did(self) -> None:
        rig = Rig(TinyWan(), replace(tiny_options(), decoder="taehv"))
        driver = opened(rig)
        rig.run_chunks("s1", 3)
        first = frames_out(rig)
        assert first.shape == (9 + 12 + 12, 48, 48, 3)
        plain = Rig(TinyWan(), tiny_options())
        opened(plain)
        plain.run_chunks("s1", 1)
        assert (frames_out(plain) != first[:9]).any()
        driver.rewind(1)
        rig.run_chunks("s1", 1)
        assert (rig.frames("s1")[-1].frames == first[21:]).all()

    def test_it_is_found_beside_the_checkpoint_and_is_part_of_the_version(
        self, tmp_path: Path
    ) -> None:
        self_forcing(tmp_path)
        write_rest(tmp_path)
        options = LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1, decoder="taehv")
        with pytest.raises(CheckpointError, match="contains no fast decoder"):
            Wan().load(options)
        (tmp_path / "elsewhere").mkdir()
        save_file(stored(), tmp_path / "elsewhere" / "taew2_1.safetensors")
        place = str(tmp_path / "elsewhere")
        family = Wan()
        instance = family.load(replace(options, decoder_path=place))
        assert isinstance(family._components[instance.name].decoder, FastDecoder)
        plain = Wan().load(replace(options, decoder=""))
        assert instance.weights_version != plain.weights_version

    def test_the_command_line_chooses_it(self) -> None:
        line = ["serve", "--model", "wan", "--decoder", "taehv=taew2_1.pth"]
        [wan] = Deployment.read(settings=settings_of(make_parser().parse_args(line))).pool.models
        assert (wan.decoder, wan.decoder_path) == ("taehv", "taew2_1.pth")
        [wan] = Deployment.read(
            settings=settings_of(make_parser().parse_args([*line[:-1], "taehv"]))
        ).pool.models
        assert (wan.decoder, wan.decoder_path) == ("taehv", None)
