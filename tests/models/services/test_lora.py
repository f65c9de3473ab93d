"""LoRA files as people write them, and what is said of those that do not fit."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from lora_files import Pairs, pairs_for, tensors_of, write_peft
from safetensors.torch import save_file
from torch import nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.lora_files import is_lora, read_lora


class Net(nn.Module):
    """Two layers that can be adapted, and one that cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 4)
        self.norm = nn.LayerNorm(4)
        self.second = nn.Linear(4, 3)


@pytest.fixture
def pairs() -> Pairs:
    return pairs_for(Net(), ("first", "second"), seed=1)


def change_of(path: Path, layer: str = "first") -> torch.Tensor:
    return read_lora(path).pairs[layer].change(1.0)


class TestLayouts:
    """The same pairs, stored in different ways."""

    def test_a_folder_of_peft_is_scaled_by_alpha_over_rank(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        folder = write_peft(tmp_path, pairs)
        down, up = pairs["first"]
        torch.testing.assert_close(change_of(folder), 2 * up @ down)
        assert read_lora(folder).inspect(Net()).fits
        assert is_lora(folder)

    def test_rslora_is_scaled_by_the_root_of_the_rank(self, pairs: Pairs, tmp_path: Path) -> None:
        folder = write_peft(tmp_path, pairs, {"use_rslora": True})
        down, up = pairs["first"]
        torch.testing.assert_close(change_of(folder), 4 / 2**0.5 * up @ down)

    def test_patterns_give_layers_ranks_and_alphas_of_their_own(self, tmp_path: Path) -> None:
        pairs = pairs_for(Net(), ("first",), 1, rank=3) | pairs_for(Net(), ("second",), 2, rank=2)
        settings = {"r": 2, "rank_pattern": {"first": 3}, "alpha_pattern": {"first": 12}}
        file = read_lora(write_peft(tmp_path, pairs, settings))
        assert file.inspect(Net()).fits
        assert (file.pairs["first"].scale, file.pairs["second"].scale) == (4.0, 3.0)

    @pytest.mark.parametrize("top", [None, "generator_lora"])
    def test_a_torch_file_with_or_without_a_dictionary_around_it(
        self, top: str | None, pairs: Pairs, tmp_path: Path
    ) -> None:
        tensors = tensors_of(pairs)
        torch.save(tensors if top is None else {top: tensors}, tmp_path / "lora.pt")
        down, up = pairs["first"]
        torch.testing.assert_close(change_of(tmp_path / "lora.pt"), up @ down)
        assert is_lora(tmp_path / "lora.pt")

    def test_a_single_file_may_say_alpha_beside_each_pair(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        tensors = {
            name.replace("lora_A", "lora_down").replace("lora_B", "lora_up"): value
            for name, value in tensors_of(pairs, prefix="").items()
        }
        tensors["first.alpha"] = torch.tensor(8.0)
        save_file(tensors, tmp_path / "one.safetensors")
        file = read_lora(tmp_path / "one.safetensors")
        assert (file.pairs["first"].scale, file.pairs["second"].scale) == (4.0, 1.0)

    def test_a_single_file_may_say_alpha_in_its_header(self, pairs: Pairs, tmp_path: Path) -> None:
        told = json.dumps({"transformer.r": 2, "transformer.lora_alpha": 6})
        path = tmp_path / "one.safetensors"
        save_file(tensors_of(pairs, prefix=""), path, {"lora_adapter_metadata": told})
        assert read_lora(path).pairs["first"].scale == 3.0

    def test_names_are_turned_into_the_models_own(self, pairs: Pairs, tmp_path: Path) -> None:
        folder = write_peft(tmp_path, pairs)
        file = read_lora(folder, lambda name: name.replace("first.weight", "inner.first.weight"))
        assert sorted(file.pairs) == ["inner.first", "second"]


class TestVersion:
    """A hash of the content."""

    def test_it_is_that_of_the_content_and_not_of_the_place(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        one, other = write_peft(tmp_path / "a", pairs), write_peft(tmp_path / "b", pairs)
        assert read_lora(one).version == read_lora(other).version

    def test_other_numbers_and_another_scale_have_another_version(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        others = pairs_for(Net(), ("first", "second"), seed=2)
        versions = {
            read_lora(folder).version
            for folder in (
                write_peft(tmp_path / "a", pairs),
                write_peft(tmp_path / "b", others),
                write_peft(tmp_path / "c", pairs, {"lora_alpha": 1}),
            )
        }
        assert len(versions) == 3


class TestReport:
    """What does not fit is named."""

    def test_everything_that_is_wrong_is_said_at_once(self, tmp_path: Path) -> None:
        net = Net()
        tensors = tensors_of(pairs_for(net, ("first", "second"), 1), prefix="")
        tensors["first.lora_A.weight"] = torch.zeros(2, 5)
        del tensors["second.lora_B.weight"]
        tensors["third.lora_A.weight"] = torch.zeros(2, 4)
        tensors["third.lora_B.weight"] = torch.zeros(4, 2)
        tensors["norm.lora_A.weight"] = torch.zeros(2, 4)
        tensors["norm.lora_B.weight"] = torch.zeros(4, 2)
        tensors["first.lora_magnitude_vector"] = torch.zeros(4)
        save_file(tensors, tmp_path / "x.safetensors")
        report = read_lora(tmp_path / "x.safetensors").inspect(net)
        assert not report.fits
        assert set(report.unmatched) == {
            "first.lora_magnitude_vector",
            "norm (not a linear layer)",
            "third",
        }
        assert report.missing == ("second.lora_B",)
        assert report.misshapen == ("first.lora_A is [2, 5], not [2, 6]",)

    def test_whole_numbers_are_no_weights(self, pairs: Pairs, tmp_path: Path) -> None:
        tensors = {name: value.to(torch.int32) for name, value in tensors_of(pairs).items()}
        save_file(tensors, tmp_path / "x.safetensors")
        report = read_lora(tmp_path / "x.safetensors").inspect(Net())
        assert "first.lora_A is I32, not a floating type" in report.misshapen

    def test_a_rank_that_the_configuration_does_not_say_is_told(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        report = read_lora(write_peft(tmp_path, pairs, {"r": 8})).inspect(Net())
        assert "first has rank 2, not 8" in report.misshapen


class TestRefusals:
    """Files that mean something else."""

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"peft_type": "IA3"}, "peft_type must be LORA, not 'IA3'"),
            ({"use_dora": True}, "use_dora True is not supported"),
            ({"init_lora_weights": "pissa_niter_4"}, "'pissa_niter_4' is not supported"),
            ({"init_lora_weights": "next_year"}, "init_lora_weights 'next_year' is not supported"),
            ({"use_next_year": True}, "use_next_year True is not supported"),
            ({"next_year": 0}, "next_year 0 is not supported"),
            ({"modules_to_save": ["head"]}, r"modules_to_save \['head'\] is not supported"),
            ({"bias": "all"}, "bias 'all' is not supported"),
            ({"use_rslora": "no"}, "use_rslora must be true or false, not 'no'"),
            ({"r": "many"}, "r must be a whole number from 1, not 'many'"),
            ({"r": 2.5}, "r must be a whole number from 1, not 2.5"),
            ({"alpha_pattern": {"(": 3}}, "unterminated"),
        ],
    )
    def test_what_the_pairs_alone_do_not_say_is_refused(
        self, settings: dict[str, Any], said: str, pairs: Pairs, tmp_path: Path
    ) -> None:
        with pytest.raises(CheckpointError, match=said):
            read_lora(write_peft(tmp_path, pairs, settings))

    def test_what_is_switched_off_or_is_of_the_training_changes_nothing(
        self, pairs: Pairs, tmp_path: Path
    ) -> None:
        off: dict[str, Any] = {
            "use_dora": False,
            "layer_replication": None,
            "modules_to_save": [],
            "bias": "none",
        }
        off |= {"init_lora_weights": True, "use_next_year": False, "next_year_config": {}}
        training = {"target_modules": ["q"], "lora_dropout": 0.1, "peft_version": "0.19"}
        folder = write_peft(tmp_path, pairs, off | training)
        down, up = pairs["first"]
        torch.testing.assert_close(change_of(folder), 2 * up @ down)

    def test_other_tensors_are_no_lora(self, tmp_path: Path) -> None:
        save_file({"first.weight": torch.zeros(4, 6)}, tmp_path / "x.safetensors")
        assert not is_lora(tmp_path / "x.safetensors")
        with pytest.raises(CheckpointError, match="is not a LoRA"):
            read_lora(tmp_path / "x.safetensors")

    def test_a_file_that_could_run_code_is_not_run(self, tmp_path: Path) -> None:
        torch.save({"generator_lora": Path("x")}, tmp_path / "lora.pt")
        with pytest.raises(CheckpointError, match="cannot read"):
            read_lora(tmp_path / "lora.pt")
        assert not is_lora(tmp_path / "lora.pt")

    def test_a_place_without_anything_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="no such file or folder"):
            read_lora(tmp_path / "nowhere")
        with pytest.raises(CheckpointError, match="contains no LoRA"):
            read_lora(tmp_path)


class TestScales:
    """Numbers that would make every weight of a model none."""

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"lora_alpha": float("nan")}, "lora_alpha must be a finite number, not nan"),
            ({"lora_alpha": "many"}, "lora_alpha must be a finite number, not 'many'"),
            (
                {"alpha_pattern": {"0": float("inf")}},
                "alpha_pattern 0 must be a finite number, not inf",
            ),
        ],
    )
    def test_in_a_configuration_they_are_refused_by_file_and_field(
        self, settings: dict[str, Any], words: str, tmp_path: Path
    ) -> None:
        pairs = {"0": (torch.zeros(2, 4), torch.zeros(4, 2))}
        with pytest.raises(CheckpointError, match=rf"adapter_config\.json: {words}"):
            read_lora(write_peft(tmp_path, pairs, settings))

    def test_beside_a_pair_they_are_refused_by_file_and_tensor(self, tmp_path: Path) -> None:
        tensors = tensors_of({"0": (torch.zeros(2, 4), torch.zeros(4, 2))}, prefix="")
        save_file(tensors | {"0.alpha": torch.tensor(float("nan"))}, tmp_path / "a.safetensors")
        with pytest.raises(
            CheckpointError, match=r"a\.safetensors: 0\.alpha must be a finite number, not nan"
        ):
            read_lora(tmp_path / "a.safetensors")
