"""DIAMOND's sizes, controls and loading; `test_parity.py` has the public numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diamond_agents import write_agent
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_diamond import TinyDiamond, tiny_options

from reverie.engine.inputs import ControlId, ParameterInput
from reverie.models.contract.controls import Controls, KeyEdge, KeyInput
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.diamond.actions import KEYS, QUALITY, action_of
from reverie.models.diamond.config import (
    CSGO,
)
from reverie.models.diamond.network.denoiser import Denoiser
from reverie.models.diamond.spec import Diamond
from reverie.models.diamond.starts import read_starts
from reverie.models.diamond.state import DiamondState


class TestSizes:
    """The public agents."""

    def test_the_large_game_sees_noise_of_the_past_and_a_small_picture(self) -> None:
        assert CSGO.upsampler is not None
        with torch.device("meta"):
            world, upsampler = Denoiser(CSGO.world), Denoiser(CSGO.upsampler)
        assert world.state_dict()["inner_model.act_emb.0.weight"].shape == (51, 512)
        assert world.inner_model.conv_in.in_channels == 15
        assert upsampler.inner_model.conv_in.in_channels == 9
        assert "inner_model.noise_cond_emb.weight" in upsampler.state_dict()

    def test_the_upsampler_never_goes_below_the_level_of_one(self) -> None:
        assert CSGO.fine_upsampling is not None
        assert CSGO.fine_upsampling.sigmas()[-2:] == pytest.approx((1, 0))


class TestLoop:
    """Pictures through the driver."""

    def test_another_quality_counts_from_the_next_picture_on(self) -> None:
        rig = Rig(TinyDiamond(), tiny_options(sessions=1))
        rig.open(LoopRequest("s1", 5, parameters={QUALITY: 0.0}))
        rig.run_chunks("s1", 2)
        before = newest(rig)
        rig.drivers["s1"].push([ParameterInput(ControlId("q"), QUALITY, 1.0)])
        rig.run_chunks("s1", 1)
        assert (before.fine, newest(rig).fine) == (False, True)

    def test_of_two_keys_that_exclude_each_other_the_one_held_longer_counts(self) -> None:
        tapped = (KeyEdge("2", down=True), KeyEdge("2", down=False))
        keys = {KEYS: KeyInput(tapped, ("s", "w", "a", "3"))}
        row = action_of(Controls(keys=keys), CSGO)[: len(CSGO.keys)]
        assert [key for key, on in zip(CSGO.keys, row, strict=True) if on] == ["a", "s", "3"]

    def test_a_row_has_one_place_of_the_mouse_on_each_axis(self) -> None:
        tapped = (KeyEdge("left_click", down=True), KeyEdge("left_click", down=False))
        keys = {KEYS: KeyInput(tapped, ("w",))}
        row = action_of(Controls(keys=keys, axes={"mouse_x": 26.0, "mouse_y": -500.0}), CSGO)
        assert len(row) == 51
        assert row.nonzero().flatten().tolist() == [0, 11, 13 + 11 + 5, 13 + 23]


def newest(rig: Rig) -> DiamondState:
    state = rig.drivers["s1"]._context.states.history.newest.state
    assert isinstance(state, DiamondState)
    return state


class TestLoading:
    """A public agent."""

    def write(self, folder: Path) -> None:
        write_agent(folder / "Pong.pt", actions=6)

    def test_an_agent_is_named_by_its_folder_or_by_its_file(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        for path in (tmp_path, tmp_path / "Pong.pt"):
            instance = Diamond().load(LoadOptions(device="cpu", checkpoint=str(path)))
            assert instance.spec.loops[0].controls[0].keys == ("fire", "right", "left")
            assert Diamond().check(str(path)).fits

    def test_of_several_agents_in_a_folder_one_is_to_be_named(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        (tmp_path / "Qbert.pt").write_bytes((tmp_path / "Pong.pt").read_bytes())
        with pytest.raises(CheckpointError, match=r"contains 2 agents \(Pong.pt, Qbert.pt\)"):
            Diamond().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))
        assert Diamond().check(str(tmp_path / "Qbert.pt")).fits

    def test_counter_strike_is_known_by_its_network_and_not_by_a_name(self, tmp_path: Path) -> None:
        folder = tmp_path / "csgo-and-more"
        folder.mkdir()
        self.write(folder)
        assert Diamond().check(str(folder)).fits

    @pytest.mark.parametrize("array", [np.zeros((4, 3, 9, 9), np.uint8), np.zeros((1, 3, 30, 56))])
    def test_a_spawn_of_another_size_is_refused_by_its_file(
        self, tmp_path: Path, array: NDArray[Any]
    ) -> None:
        spawn = tmp_path / "spawn" / "0"
        spawn.mkdir(parents=True)
        np.save(spawn / "low_res.npy", array)
        with pytest.raises(CheckpointError, match=r"low_res.npy must be at least 4 of 3 x 30"):
            read_starts(tmp_path, CSGO)

    def test_a_spawn_that_would_run_code_is_refused(self, tmp_path: Path) -> None:
        spawn = tmp_path / "spawn" / "0"
        spawn.mkdir(parents=True)
        np.save(spawn / "low_res.npy", np.array([{"a": 1}]), allow_pickle=True)
        with pytest.raises(CheckpointError, match=r"cannot read .*low_res.npy"):
            read_starts(tmp_path, CSGO)

    def test_without_a_start_picture_it_is_refused(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        (tmp_path / "start.png").unlink()
        report = Diamond().check(str(tmp_path))
        assert (report.fits, report.lacking) == (False, ("a start picture (*.png)",))
        with pytest.raises(CheckpointError, match="files missing to serve it: a start picture"):
            Diamond().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))

    def test_an_agent_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        torch.save({"denoiser.conv": torch.zeros(1)}, tmp_path / "agent.pt")
        with pytest.raises(CheckpointError, match="is not a DIAMOND agent"):
            Diamond().check(str(tmp_path))
