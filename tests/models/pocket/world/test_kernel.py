from pathlib import Path

import numpy as np
import pytest
import torch
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_pocket import tiny_options

from reverie.engine.emissions import ControlApplied, SnapshotOut
from reverie.engine.inputs import ControlId, KeysInput, ParameterInput, PromptInput
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.errors import CheckpointError, OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor, tensor_to_frames
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.spec import WINDOW, Pocket
from reverie.models.pocket.world.first_frame import first_frame


@pytest.fixture
def rig() -> Rig:
    return Rig(Pocket(), tiny_options())


def request(prompt: str = "a green meadow by day", steps: float = 2) -> LoopRequest:
    return LoopRequest("s1", 7, prompt, {"steps": steps})


def kinds(rig: Rig) -> list[str]:
    return [unit.kind for unit in rig.units("s1")]


def receipt(rig: Rig, control: str) -> ControlApplied:
    found = [
        heard
        for heard in rig.heard["s1"]
        if isinstance(heard, ControlApplied) and heard.control == control
    ]
    assert len(found) == 1, f"{len(found)} receipts for {control}"
    return found[0]


def test_a_frame_goes_out_before_its_context_pass(rig: Rig) -> None:
    rig.open(request())
    rig.run_chunks("s1", 3)
    first, frame = ["begin", "first_frame", "decode"], ["context", "denoise", "denoise", "decode"]
    assert kinds(rig) == [*first, *frame, *frame]


def test_the_number_of_denoise_steps_changes_with_the_next_frame(rig: Rig) -> None:
    driver = rig.open(request())
    rig.run_chunks("s1", 2)
    driver.push([ParameterInput(ControlId("p"), "steps", 4)])
    rig.ran.clear()
    rig.run_chunks("s1", 1)
    assert kinds(rig).count("denoise") == 4
    assert receipt(rig, "p").chunk == 2


def test_a_prompt_is_encoded_once_and_its_unknown_words_come_with_the_receipt(rig: Rig) -> None:
    driver = rig.open(request())
    rig.run_chunks("s1", 2)
    driver.push([PromptInput(ControlId("one"), "a zebra in a snowy country")])
    rig.run_chunks("s1", 1)
    assert receipt(rig, "one").unknown_words == ("zebra",)
    misses = rig.instance.encodings.misses
    driver.push([PromptInput(ControlId("two"), "A zebra in a SNOWY country!")])
    rig.run_chunks("s1", 1)
    assert rig.instance.encodings.misses == misses
    assert kinds(rig).count("encode_text") == 2


def test_a_prompt_of_too_many_words_is_cut_and_the_receipt_says_where(rig: Rig) -> None:
    driver = rig.open(request())
    rig.run_chunks("s1", 1)
    driver.push([PromptInput(ControlId("long"), "snow " * 200)])
    rig.run_chunks("s1", 1)
    assert receipt(rig, "long").truncated_at == 32


def test_a_reset_with_a_new_prompt_starts_in_the_land_that_it_names(rig: Rig) -> None:
    driver = rig.open(request("a sandy desert at night"))
    desert = rig.run_chunks("s1", 1)[0].frames[0]
    driver.push([PromptInput(ControlId("snow"), "snowy country by day")])
    driver.reset()
    snow = rig.run_chunks("s1", 1)[0].frames[0]
    rig.close("s1")
    for biome, hour, shown in ((Biome.DESERT, Hour.NIGHT, desert), (Biome.SNOW, Hour.DAY, snow)):
        nets = rig.instance.components["codec"]
        picture = first_frame(7, biome, hour)
        assert shown.shape == picture.shape
        assert np.array_equal(shown, decoded(nets, picture)), f"{biome.name} at {hour.name}"


def decoded(codec: object, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Send a picture through the codec, as the first frame goes."""
    assert isinstance(codec, PictureCodec)
    latents = codec.encode(frames_to_tensor(torch.from_numpy(picture)[None]))
    shown: NDArray[np.uint8] = tensor_to_frames(codec.decode(latents))[0].numpy()
    return shown


def test_a_held_key_and_a_wait_give_different_frames(rig: Rig) -> None:
    rig.open(request())
    waiting = rig.run_chunks("s1", 3)
    walking_rig = rig.again()
    driver = walking_rig.open(request())
    walking_rig.run_chunks("s1", 1)
    driver.push([KeysInput(ControlId("k"), "move", (KeyEdge("left", down=True),))])
    walking = walking_rig.run_chunks("s1", 2)
    assert not np.array_equal(waiting[-1].frames, walking[-1].frames)


def test_the_window_slides_for_far_longer_than_its_positions(rig: Rig) -> None:
    driver = rig.open(request())
    frames = rig.run_chunks("s1", 12 * WINDOW)
    assert len(driver.state.blocks) == WINDOW - 1
    assert len({chunk.frames.tobytes() for chunk in frames[-4:]}) > 1
    rig.close("s1")
    assert rig.instance.blocks is not None
    assert rig.instance.blocks.free == rig.instance.blocks.count


def test_a_recovered_session_continues_from_its_window(rig: Rig) -> None:
    rig.open(request())
    rig.run_chunks("s1", 30)
    snapshots = [heard for heard in rig.heard["s1"] if isinstance(heard, SnapshotOut)]
    last = snapshots[-1]
    elsewhere = Rig(Pocket(), tiny_options())
    elsewhere.open(request(), durable=last.durable, chunks=last.chunk + 1, pts_us=9_000_000)
    revived = elsewhere.run_chunks("s1", 2)
    assert revived[0].header.chunk == last.chunk + 1
    assert revived[0].header.discontinuity
    before = next(out for out in rig.frames("s1") if out.header.chunk == last.chunk)
    jump = np.abs(before.frames.astype(int) - revived[0].frames.astype(int)).mean()
    start = rig.frames("s1")[0]
    assert jump < np.abs(start.frames.astype(int) - revived[0].frames.astype(int)).mean()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LoadOptions(device="cuda:99"), "device 'cuda:99' cannot be used here: "),
        (LoadOptions(device="toaster"), "device 'toaster' cannot be used here: "),
        (
            LoadOptions(device="cpu", precision="fp13"),
            "supports auto, float32, bfloat16, not 'fp13'",
        ),
    ],
)
def test_an_option_that_the_machine_or_model_lacks_is_named_in_one_line(
    options: LoadOptions, words: str
) -> None:
    with pytest.raises(OptionError, match=words) as refused:
        Pocket().load(options)
    assert "\n" not in str(refused.value)


def test_a_missing_or_foreign_weights_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot load pocket.*nowhere"):
        Pocket().load(LoadOptions(checkpoint=f"{tmp_path}/nowhere.safetensors"))
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_text("something else altogether")
    with pytest.raises(CheckpointError, match=r"cannot load pocket.*foreign.*safetensors file"):
        Pocket().load(LoadOptions(checkpoint=str(foreign)))
