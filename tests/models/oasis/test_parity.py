"""The public Oasis: its numbers, from the files that are loaded to the pictures that are seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from golden import Golden, assert_near
from loop_rig import Rig
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from reverie.engine.inputs import AxisInput, ControlId, ControlInput, KeysInput
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest, StepBatch, StepResult
from reverie.models.contract.spec import LoopSpec
from reverie.models.oasis.checkpoint import STEPS
from reverie.models.oasis.components import OasisComponents
from reverie.models.oasis.config import CAMERA, DitConfig, VaeConfig
from reverie.models.oasis.kernel import CONTROL, OasisKernel
from reverie.models.oasis.network.transformer import OasisTransformer
from reverie.models.oasis.network.vae import OasisVae
from reverie.models.oasis.sampler import LEVELS, Ddim
from reverie.models.oasis.spec import Oasis
from reverie.models.oasis.state import OasisPhase, OasisState

TOLERANCE = 1e-5
"""Of one pass of a network."""
LOOP_TOLERANCE = 2e-5
"""Of a session: each frame goes through ten calls and is then the past of the next ones."""
MIDDLE = 40
"""The public action files' value of a camera at rest, and the greatest movement."""


def sizes(golden: Golden) -> tuple[DitConfig, VaeConfig]:
    dit, vae = golden.meta["dit"], golden.meta["vae"]
    return (
        DitConfig(
            channels=dit["in_channels"],
            height=dit["input_h"],
            width=dit["input_w"],
            patch=dit["patch_size"],
            hidden=dit["hidden_size"],
            depth=dit["depth"],
            heads=dit["num_heads"],
            window=dit["max_frames"],
        ),
        VaeConfig(
            latent=vae["latent_dim"],
            rows=vae["input_height"] // vae["patch_size"],
            columns=vae["input_width"] // vae["patch_size"],
            patch=vae["patch_size"],
            width=vae["enc_dim"],
            encoder=vae["enc_depth"],
            decoder=vae["dec_depth"],
            heads=vae["enc_heads"],
        ),
    )


class Listening(OasisKernel):
    """Records the frames in progress and the finished ones."""

    def __init__(
        self, spec: LoopSpec, components: OasisComponents, instance: ModelInstance
    ) -> None:
        super().__init__(spec, components, instance)
        self.points: list[Tensor] = []
        self.made: list[Tensor] = []

    def run_step(self, batch: StepBatch[OasisState]) -> Sequence[StepResult[OasisState]]:
        results = super().run_step(batch)
        for result in results:
            if result.state.phase is OasisPhase.DECODE:
                self.made.append(result.state.window[-1].latents_Zhw)
            elif result.state.phase is OasisPhase.DENOISE:
                assert result.state.point_Zhw is not None
                self.points.append(result.state.point_Zhw)
        return results


class ListeningOasis(Oasis):
    """The family, with a kernel that notes."""

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        return Listening(instance.spec.loop(loop), self._components[instance.name], instance)


@dataclass
class Played:
    """A recording, and a session made of its weights, draws and presses."""

    golden: Golden
    rig: Rig = field(init=False)
    pictures: list[Tensor] = field(default_factory=list)

    def load(self, folder: Path) -> None:
        for part, file in (("dit", "oasis500m.safetensors"), ("vae", "vit-l-20.safetensors")):
            save_file(self.golden.below(f"{part}."), folder / file)
        Image.fromarray(self.golden["in.start"].numpy()).save(folder / "start.png")
        dit, vae = sizes(self.golden)
        options = LoadOptions(
            device="cpu", precision="float32", checkpoint=str(folder), sessions=1, history_chunks=2
        )
        self.rig = Rig(ListeningOasis(dit, vae, self.draw), options)

    def draw(self, seed: int, stream: str, index: int, shape: tuple[int, ...]) -> Tensor:
        return self.golden[f"draw.{index}"].reshape(shape)

    def play(self) -> None:
        driver = self.rig.open(LoopRequest("s1", 0))
        self.see()
        before = set[str]()
        for action in self.golden.meta["actions"]:
            after = {name for name in action if name != "camera"}
            driver.push([*turns(action["camera"]), *changes(before, after)])
            self.see()
            before = after

    def see(self) -> None:
        (out,) = self.rig.run_chunks("s1", 1)
        self.pictures.append(torch.from_numpy(out.frames[0]))

    @property
    def kernel(self) -> Listening:
        assert isinstance(self.rig.kernel, Listening)
        return self.rig.kernel


def turns(camera: list[int]) -> list[ControlInput]:
    return [
        AxisInput(ControlId(axis), axis, (place - MIDDLE) / MIDDLE)
        for axis, place in zip(CAMERA, camera, strict=True)
        if place != MIDDLE
    ]


def changes(before: set[str], after: set[str]) -> list[ControlInput]:
    edges = [KeyEdge(key, down=False) for key in sorted(before - after)]
    edges += [KeyEdge(key, down=True) for key in sorted(after - before)]
    return [KeysInput(ControlId("k"), CONTROL, tuple(edges))] if edges else []


@pytest.fixture
def loaded(tmp_path: Path) -> Played:
    played = Played(Golden.read("oasis/oasis"))
    played.load(tmp_path)
    return played


@pytest.fixture
def played(loaded: Played) -> Played:
    loaded.play()
    return loaded


class TestSession:
    """Eight frames behind a start picture, with keys and camera, in a window of five."""

    def test_every_frame_is_the_public_one(self, played: Played) -> None:
        wanted = played.golden["out.latents"]
        assert len(wanted) > played.golden.meta["dit"]["max_frames"], "the window slides"
        for number, (made, latents) in enumerate(zip(played.kernel.made, wanted, strict=True)):
            assert_near(made, latents, LOOP_TOLERANCE, f"frame {number}")

    def test_every_step_towards_a_frame_is_the_public_one(self, played: Played) -> None:
        steps = played.golden.meta["ddim_steps"]
        assert steps == STEPS, "the recording is of what is served"
        wanted = [
            played.golden[f"call.{number}.x"]
            for number in range(len(played.golden.meta["calls"]))
            if number % steps  # the first is noise
        ]
        for number, (made, point) in enumerate(zip(played.kernel.points, wanted, strict=True)):
            assert_near(made, point, LOOP_TOLERANCE, f"step {number}")

    def test_pictures_are_the_public_ones_but_for_how_they_are_rounded(
        self, played: Played
    ) -> None:
        wanted = (played.golden["out.pictures"].clamp(0, 1) * 255).permute(0, 2, 3, 1)
        for number, (made, picture) in enumerate(zip(played.pictures, wanted, strict=True)):
            assert (made - picture).abs().max() <= 0.5 + 255 * LOOP_TOLERANCE, f"picture {number}"


class TestParts:
    """One pass of each network, of weights that were loaded as they are served."""

    def test_a_pass_over_a_window_of_mixed_levels_is_the_public_one(self, loaded: Played) -> None:
        transformer = loaded.rig.instance.components["transformer"]
        assert isinstance(transformer, OasisTransformer)
        given = loaded.golden.below("forward.")
        with torch.no_grad():
            made = transformer(given["x"], given["t"], given["actions"]).v_BFZhw
        assert_near(made, given["v"], TOLERANCE, "the velocity")

    def test_a_picture_becomes_the_public_latents(self, loaded: Played) -> None:
        vae = loaded.rig.instance.components["vae"]
        assert isinstance(vae, OasisVae)
        with torch.no_grad():
            made = vae.encode(loaded.golden["codec.pictures"])
        mean = loaded.golden["codec.mean"].transpose(1, 2).reshape(made.shape)
        assert_near(made, mean * vae.config.scale, TOLERANCE, "the latents")

    def test_latents_become_the_public_picture(self, loaded: Played) -> None:
        vae = loaded.rig.instance.components["vae"]
        assert isinstance(vae, OasisVae)
        z = loaded.golden["codec.z"].transpose(1, 2)
        grid = z.reshape(len(z), -1, vae.config.rows, vae.config.columns)
        with torch.no_grad():
            made = vae.decode(grid * vae.config.scale)
        assert_near(made, loaded.golden["codec.decoded"] / 2 + 0.5, TOLERANCE, "the picture")

    def test_noise_levels_are_the_public_ones(self, loaded: Played) -> None:
        alphas = (1 - loaded.golden["betas"]).cumprod(0)
        assert len(alphas) == LEVELS
        torch.testing.assert_close(Ddim.of(STEPS).alphas, alphas, atol=1e-7, rtol=0)
        labels = [levels[-1] for _, levels in loaded.golden.meta["calls"][:STEPS]]
        assert list(Ddim.of(STEPS).levels) == labels


def test_a_step_is_told_what_the_public_loop_tells(played: Played) -> None:
    state = played.rig.drivers["s1"]._context.states.history.newest.state
    assert isinstance(state, OasisState)
    told = torch.stack([frame.action_E for frame in state.window])
    torch.testing.assert_close(told, played.golden["in.actions"][-len(told) :], atol=1e-7, rtol=0)
