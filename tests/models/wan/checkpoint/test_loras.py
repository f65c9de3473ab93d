"""LoRAs of checkpoints: names of public tools, merging, and the report of `models check`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lora_files import Pairs, linear, pairs_for, tensors_of, write_peft
from safetensors.torch import save_file
from torch import Tensor, nn
from wan_folders import SIZES, longlive, original, self_forcing, weights, write_rest

from reverie.cli import main
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption, LoadOptions, ModelInstance
from reverie.models.wan.checkpoint.loras import own_name
from reverie.models.wan.components import WanComponents
from reverie.models.wan.network.text_encoder import Umt5TextEncoder
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.prompts import WanPrompts
from reverie.models.wan.spec import Wan

Q = "blocks.0.self_attn.q"


def pairs(paths: tuple[str, ...] = (Q, "blocks.1.ffn.2")) -> Pairs:
    with torch.device("meta"):
        model = WanTransformer(SIZES)
    return pairs_for(model, paths, seed=1)


def load(folder: Path, *adapters: AdapterOption) -> tuple[ModelInstance, WanComponents]:
    family = Wan()
    options = LoadOptions(device="cpu", checkpoint=str(folder), sessions=1, adapters=adapters)
    instance = family.load(options)
    return instance, family._components[instance.name]


def weight(components: WanComponents, path: str) -> Tensor:
    return linear(components.transformer, path).weight


class TestNames:
    """What tools call a layer."""

    @pytest.mark.parametrize(
        ("public", "own"),
        [
            (f"{Q}.weight", f"transformer.{Q}.weight"),
            (f"model.{Q}.weight", f"transformer.{Q}.weight"),
            (f"diffusion_model.{Q}.weight", f"transformer.{Q}.weight"),
            (f"_fsdp_wrapped_module.{Q}.weight", f"transformer.{Q}.weight"),
            ("transformer.blocks.0.attn1.to_q.weight", f"transformer.{Q}.weight"),
            (
                "transformer.blocks.0.attn2.to_out.0.weight",
                "transformer.blocks.0.cross_attn.o.weight",
            ),
            ("transformer.blocks.0.ffn.net.2.weight", "transformer.blocks.0.ffn.2.weight"),
            ("lora_unet_blocks_0_self_attn_q.weight", f"transformer.{Q}.weight"),
            ("lora_unet_blocks_11_ffn_2.weight", "transformer.blocks.11.ffn.2.weight"),
            ("lora_unet__blocks_0_self_attn_q.weight", f"transformer.{Q}.weight"),
            ("lora_unet__blocks_0_self_attn_q.bias", f"transformer.{Q}.bias"),
            ("lora_unet__blocks_3_norm3.weight", "transformer.blocks.3.norm3.weight"),
            ("lora_unet__time_projection_1.weight", "transformer.time_projection.1.weight"),
            ("lora_unet__head_head.weight", "transformer.head.head.weight"),
            (
                "lora_transformer_blocks_2_attn2_to_out_0.weight",
                "transformer.blocks.2.cross_attn.o.weight",
            ),
            ("lora_unet_blocks_2_ffn_net_0_proj.weight", "transformer.blocks.2.ffn.0.weight"),
            (
                "lora_te1_encoder_block_4_layer_1_DenseReluDense_wi_0.weight",
                "text.encoder.block.4.layer.1.DenseReluDense.wi_0.weight",
            ),
            (f"model.diffusion_model.{Q}.weight", f"transformer.{Q}.weight"),
            (f"base_model.model.model.{Q}.weight", f"transformer.{Q}.weight"),
            ("text_encoder.encoder.block.0.layer.0.weight", "text.encoder.block.0.layer.0.weight"),
        ],
    )
    def test_they_become_the_models_own(self, public: str, own: str) -> None:
        assert own_name(public) == own


class TestLongLive:
    """A base and the LoRA that belongs to it."""

    def test_its_lora_is_merged(self, tmp_path: Path) -> None:
        longlive(tmp_path)
        write_rest(tmp_path)
        bare, without = load(tmp_path)
        torch.save({"generator_lora": tensors_of(pairs())}, tmp_path / "lora.pt")
        instance, components = load(tmp_path)
        down, up = pairs()[Q]
        torch.testing.assert_close(weight(components, Q), weight(without, Q) + up @ down)
        assert "longlive@1.0:" in instance.weights_version
        assert instance.weights_version != bare.weights_version

    def test_one_that_does_not_fit_is_refused_and_told_by_check(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        longlive(tmp_path)
        write_rest(tmp_path)
        torch.save({"generator_lora": tensors_of(pairs())}, tmp_path / "lora.pt")
        assert main(["models", "check", str(tmp_path)]) == 0
        said = capsys.readouterr().out
        assert said.startswith("wan, layout LongLive, with LoRA, with Wan VAE")
        assert "\n  LoRA: lora.pt\n" in said
        wrong = tensors_of({"blocks.7.ffn.0": pairs()[Q]})
        torch.save({"generator_lora": wrong}, tmp_path / "lora.pt")
        assert main(["models", "check", str(tmp_path)]) == 1
        assert (
            "tensors that the model does not have (1): transformer.blocks.7.ffn.0"
            in capsys.readouterr().out
        )
        with pytest.raises(CheckpointError, match=r"transformer\.blocks\.7\.ffn\.0"):
            load(tmp_path)


class TestMerged:
    """Weights in the type that is served."""

    def test_they_are_summed_up_in_the_precision_of_the_checkpoint(self, tmp_path: Path) -> None:
        self_forcing(tmp_path)
        write_rest(tmp_path)
        lora = write_peft(tmp_path / "lora", pairs())
        option = AdapterOption("a", str(lora), merged=True, strength=0.5)
        options = LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1)
        family = Wan()
        instance = family.load(replace(options, precision="bfloat16", adapters=(option,)))
        down, up = pairs()[Q]
        whole = weights()[f"{Q}.weight"] + up @ down
        made = weight(family._components[instance.name], Q)
        assert torch.equal(made, whole.to(torch.bfloat16))


class TestText:
    """A LoRA for the text encoder."""

    @pytest.fixture
    def loaded(self, tmp_path: Path) -> tuple[ModelInstance, WanComponents]:
        self_forcing(tmp_path)
        write_rest(tmp_path)
        _, components = load(tmp_path)
        assert isinstance(components.text, Umt5TextEncoder)
        encoder: nn.Module = components.text.encoder
        path = next(n for n, m in encoder.named_modules() if isinstance(m, nn.Linear))
        named = {f"text_encoder.{path}": pairs_for(encoder, (path,), seed=4)[path]}
        lora = write_peft(tmp_path / "lora", named)
        return load(tmp_path, AdapterOption("words", str(lora)))

    def test_prompts_are_read_anew_under_it_and_as_before_without(
        self, loaded: tuple[ModelInstance, WanComponents]
    ) -> None:
        instance, components = loaded
        prompts, known = WanPrompts(components, instance), len(instance.encodings)
        before = prompts.rows("a lake", ()).clone()
        under = prompts.rows("a lake", (("words", 1.0),))
        assert not torch.equal(under, before)
        assert len(instance.encodings) == known + 2
        assert torch.equal(prompts.rows("a lake", ()), before)
        assert torch.equal(components.text.encode("a lake"), before)

    def test_what_is_read_beforehand_is_what_is_found(
        self, loaded: tuple[ModelInstance, WanComponents]
    ) -> None:
        instance, components = loaded
        assert instance.prepare_prompt is not None
        assert instance.knows_prompt is not None
        assert not instance.knows_prompt("a lake", {"lora_words": 0.5})
        instance.prepare_prompt("a lake", {"lora_words": 0.5})
        assert instance.knows_prompt("a lake", {"lora_words": 0.5})
        assert not instance.knows_prompt("a lake", {"lora_words": 0.6})
        assert instance.prompt_parameters == {"lora_words"}
        misses = instance.encodings.misses
        for text in ("a lake", ""):
            WanPrompts(components, instance).rows(text, (("words", 0.5),))
        assert instance.encodings.misses == misses


class TestCheck:
    """`reverie models check` of a LoRA alone."""

    def check(self, path: Path, *more: str) -> int:
        return main(["models", "check", str(path), *more])

    def test_it_is_compared_with_the_checkpoint_that_it_is_for(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original(tmp_path)
        save_file(tensors_of(pairs()), tmp_path / "style.safetensors")
        assert self.check(tmp_path / "style.safetensors", "--checkpoint", str(tmp_path)) == 0
        assert capsys.readouterr().out == "wan, layout LoRA: 4 tensors fit (4 F32)\n"

    @pytest.mark.parametrize("dim", [1536, 5120])
    def test_without_one_the_published_sizes_are_taken(
        self, dim: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        layer = {Q: (torch.zeros(2, dim), torch.zeros(dim, 2))}
        folder = write_peft(tmp_path, layer)
        assert self.check(folder) == 0
        save_file(
            tensors_of({Q: (torch.zeros(2, 9), torch.zeros(9, 2))}), tmp_path / "x.safetensors"
        )
        assert self.check(tmp_path / "x.safetensors") == 1
        assert "tensors of another shape (2)" in capsys.readouterr().err

    def test_a_model_that_takes_none_says_so(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        save_file(tensors_of(pairs()), tmp_path / "style.safetensors")
        assert self.check(tmp_path / "style.safetensors", "--model", "oasis") == 1
        assert "is a LoRA, which model 'oasis' does not support" in capsys.readouterr().err


SPELLINGS = {
    "original": "{}",
    "wrapped": "diffusion_model.{}",
    "wrapped twice": "model.diffusion_model.{}",
    "of a training": "model.{}",
}


class TestStepDistillation:
    """LoRAs that let a model do with fewer steps: pairs, biases, norms and modulation."""

    def tensors(self, spelling: str) -> dict[str, Tensor]:
        random = torch.Generator().manual_seed(6)
        named = tensors_of(pairs(), prefix="")
        named = {
            name.replace("lora_A", "lora_down").replace("lora_B", "lora_up"): value
            for name, value in named.items()
        }
        with torch.device("meta"):
            sizes = WanTransformer(SIZES)
        for path, kind, own in (
            (Q, "diff_b", ".bias"),
            ("blocks.0.self_attn.norm_q", "diff", ".weight"),
            ("blocks.1.norm3", "diff", ".weight"),
            ("blocks.1.norm3", "diff_b", ".bias"),
            ("patch_embedding", "diff", ".weight"),
            ("blocks.0.modulation", "diff", ""),
        ):
            shape = sizes.get_parameter(f"{path}{own}").shape
            named[f"{path}.{kind}"] = torch.randn(shape, generator=random) * 0.1
        return {SPELLINGS[spelling].format(name): value for name, value in named.items()}

    @pytest.mark.parametrize("spelling", SPELLINGS)
    def test_it_is_read_under_every_name_and_merged(
        self, spelling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original(tmp_path)
        write_rest(tmp_path)
        path = tmp_path / "fast" / "lora.safetensors"
        path.parent.mkdir()
        save_file(self.tensors(spelling), path)
        assert main(["models", "check", str(path), "--checkpoint", str(tmp_path)]) == 0
        assert "10 tensors fit" in capsys.readouterr().out
        _, components = load(tmp_path, AdapterOption("fast", str(path), merged=True, strength=1.0))
        plain, own = self.tensors("original"), weights()
        for name in ("blocks.1.norm3.bias", "patch_embedding.weight", "blocks.0.modulation"):
            kind = "diff_b" if name.endswith(".bias") else "diff"
            added = plain[f"{name.removesuffix('.bias').removesuffix('.weight')}.{kind}"]
            made = components.transformer.get_parameter(name)
            torch.testing.assert_close(made, own[name] + added)
        down, up = pairs()[Q]
        torch.testing.assert_close(weight(components, Q), own[f"{Q}.weight"] + up @ down)

    def test_of_what_sessions_choose_a_modulation_is_refused_by_name(self, tmp_path: Path) -> None:
        original(tmp_path)
        write_rest(tmp_path)
        path = tmp_path / "fast" / "lora.safetensors"
        path.parent.mkdir()
        save_file(self.tensors("original"), path)
        with pytest.raises(
            CheckpointError, match=r"blocks\.0\.modulation\.diff can only be merged"
        ):
            load(tmp_path, AdapterOption("fast", str(path)))


def test_names_of_a_mapping_are_all_renamed() -> None:
    """Every weight of the port has a place under the component's name."""
    with torch.device("meta"):
        own: Mapping[str, Tensor] = WanTransformer(SIZES).state_dict()
    assert {own_name(name) for name in own} == {f"transformer.{name}" for name in own}
