import pytest
import torch
from torch import Tensor

from reverie.kernels.attention import AttentionBackend, products, sdpa
from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.network.networks import fast_attention
from reverie.models.pocket.network.world_model import WorldModel

CONFIG = WorldConfig(width=32, heads=2, layers=3, hidden=48, condition=16, text_width=8, window=4)


def shaken_world() -> WorldModel:
    """Return a world model in which no weight is zero."""
    world = WorldModel(CONFIG)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in world.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return world.eval()


def clip(sessions: int, frames: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(6)
    latents = (sessions, frames, CONFIG.latent_channels, CONFIG.grid, CONFIG.grid)
    return (
        torch.randn(latents, generator=generator),
        torch.rand(sessions, frames, generator=generator),
        torch.randn(latents, generator=generator),
        torch.randint(0, CONFIG.actions, (sessions, frames), generator=generator),
        torch.randn(sessions, frames, CONFIG.text_width, generator=generator),
    )


@torch.inference_mode()
@pytest.mark.parametrize("backend", [sdpa, products], ids=["sdpa", "products"])
def test_a_clip_at_once_equals_its_frames_one_by_one_with_a_cache(
    backend: AttentionBackend,
) -> None:
    world, inputs = shaken_world(), clip(sessions=2, frames=CONFIG.window)
    world.attend_with(backend)
    whole = world(*inputs)
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for frame in range(CONFIG.window):
        past = world.read_past(keys, values) if keys else None
        noisy, level, previous, action, text = (part[:, frame] for part in inputs)
        made = world.forward_frame(noisy, level, previous, action, text, past)
        torch.testing.assert_close(
            made.clean_BFZhw[:, 0], whole.clean_BFZhw[:, frame], atol=1e-4, rtol=0
        )
        torch.testing.assert_close(made.k_BFLAND[:, 0], whole.k_BFLAND[:, frame], atol=1e-4, rtol=0)
        keys.append(made.k_BFLAND[:, 0])
        values.append(made.v_BFLAND[:, 0])


@pytest.mark.parametrize(("has_tiles", "name"), [(False, "products"), (True, "auto")])
def test_a_cpu_without_tiles_attends_by_plain_products_in_bfloat16_only(
    has_tiles: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_tiles)
    cpu = torch.device("cpu")
    assert fast_attention(cpu, torch.bfloat16) == name
    assert fast_attention(cpu, torch.float32) == "auto"


@torch.inference_mode()
def test_a_frame_does_not_see_what_comes_after_it() -> None:
    world, inputs = shaken_world(), clip(sessions=1, frames=3)
    before = world(*inputs).clean_BFZhw[:, :2]
    inputs[0][:, 2] = 9.0
    torch.testing.assert_close(world(*inputs).clean_BFZhw[:, :2], before)


@torch.inference_mode()
def test_sessions_in_one_batch_do_not_touch_each_other() -> None:
    world, inputs = shaken_world(), clip(sessions=3, frames=2)
    together = world(*inputs).clean_BFZhw
    for session in range(3):
        alone = world(*(part[session : session + 1] for part in inputs)).clean_BFZhw[0]
        torch.testing.assert_close(alone, together[session], atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_positions_in_time_count_from_the_windows_start() -> None:
    """The same cache blocks give the same frame, however long the session has run."""
    world, inputs = shaken_world(), clip(sessions=1, frames=3)
    made = world(*inputs)
    keys, values = made.k_BFLAND[:, :2].unbind(1), made.v_BFLAND[:, :2].unbind(1)
    noisy, level, previous, action, text = (part[:, 2] for part in inputs)
    past = world.read_past(keys, values)
    again = world.forward_frame(noisy, level, previous, action, text, past)
    torch.testing.assert_close(again.clean_BFZhw[:, 0], made.clean_BFZhw[:, 2], atol=1e-4, rtol=0)


@pytest.mark.parametrize("part", [2, 3, 4], ids=["previous frame", "action", "text"])
@torch.inference_mode()
def test_every_condition_reaches_the_prediction(part: int) -> None:
    world, inputs = shaken_world(), list(clip(sessions=1, frames=1))
    before = world(*inputs).clean_BFZhw - inputs[2]
    inputs[part] = (inputs[part] + 1) % CONFIG.actions if part == 3 else inputs[part] + 1
    after = world(*inputs).clean_BFZhw - inputs[2]
    assert not torch.allclose(before, after, atol=1e-4)
