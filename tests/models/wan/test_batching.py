"""Units of several sessions in one pass: the same as one after another."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from loop_rig import Rig
from torch import Tensor
from wan_rig import Again, cache_of, components_of, opened, pictures, shown, wan_rig

from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.blocks import BlockPool
from reverie.models.wan.context import ContextRow, read_rows, stack_rows
from reverie.models.wan.network.block import KeysAndValues
from reverie.models.wan.network.features import shape_key, split_caches, stack_caches
from reverie.models.wan.state import OnPrompt, WanPhase

SESSIONS = ("a", "b", "c")
SAME = 1e-4
"""Greatest difference of a latent: the sums of a batch are taken in another order."""


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return wan_rig()


@contextmanager
def counted_rows(rig: Rig) -> Iterator[dict[str, list[int]]]:
    """Note how many sessions each pass of the networks has."""
    rows: dict[str, list[int]] = {"transformer": [], "decoder": [], "encoder": []}

    def note(name: str) -> Any:
        def hook(module: torch.nn.Module, given: tuple[Any, ...]) -> None:
            rows[name].append(len(given[0]))

        return hook

    vae = components_of(rig).decoder._vae  # type: ignore[attr-defined]
    watched = {
        "transformer": components_of(rig).transformer.head.head,
        "decoder": vae.decoder.conv_in,
        "encoder": vae.encoder.conv_in,
    }
    handles = [part.register_forward_pre_hook(note(name)) for name, part in watched.items()]
    try:
        yield rows
    finally:
        for handle in handles:
            handle.remove()


def latents_of(rig: Rig, session: str) -> Tensor:
    state = rig.drivers[session].state
    return torch.stack([frame.clean_Zhw for frame in (*state.window, *state.fresh)])


def alike(one: Rig, other: Rig, sessions: tuple[str, ...] = SESSIONS) -> None:
    for session in sessions:
        mine, theirs = latents_of(one, session), latents_of(other, session)
        torch.testing.assert_close(mine, theirs, rtol=0, atol=SAME)
        states = one.drivers[session].state, other.drivers[session].state
        caches = [cache_of(rig, state) for rig, state in zip((one, other), states, strict=True)]
        torch.testing.assert_close(caches[0], caches[1], rtol=0, atol=SAME)


def run(again: Again, max_batch: int, chunks: int, *, pushes: bool = False) -> Rig:
    """Run three sessions; two get a prompt after the first chunk, and all a clip, if asked."""
    rig = again()
    rig.max_batch = max_batch
    rig.scheduler = type(rig.scheduler)(max_batch)
    for session in SESSIONS:
        opened(
            rig,
            session,
            seed=ord(session),
            prompt=session,
            parameters={"on_prompt": OnPrompt.WAIT},
        )
    rig.run(lambda: all(len(rig.frames(each)) >= 1 for each in SESSIONS))
    for session in ("a", "b"):
        rig.drivers[session].push([PromptInput(ControlId(f"p{session}"), f"{session} at night")])
    for session in SESSIONS if pushes else ():
        rig.drivers[session].push(shown("clip", pictures(9, seed=ord(session))))
    for session in SESSIONS:
        rig.drivers[session].advance(chunks - 1)
    rig.run_idle()
    return rig


@pytest.mark.parametrize("pushes", [False, True])
def test_sessions_in_one_batch_get_what_they_get_alone(again: Again, pushes: bool) -> None:
    alike(run(again, 8, 5, pushes=pushes), run(again, 1, 5, pushes=pushes))


def test_equal_batch_keys_are_computed_in_one_pass(again: Again) -> None:
    with counted_rows(again()) as rows:
        run(again, 8, 3, pushes=True)
    assert set(rows["decoder"]) == set(rows["encoder"]) == {3}
    assert rows["transformer"][:3] == [3, 3, 3], "two denoise calls and a context pass"


def test_sessions_at_different_frames_and_steps_share_a_pass(again: Again) -> None:
    rig = again()
    for session in ("a", "b"):
        opened(rig, session, seed=ord(session))
    early, late = rig.drivers["a"], rig.drivers["b"]
    late.pause()
    rig.run_chunks("a", 5)
    early.pause()
    late.resume()
    rig.run_chunks("b", 4)
    rig.run(lambda: late.state.phase is WanPhase.BLOCK)
    early.resume()
    late.pause()
    rig.run(lambda: early.state.phase is WanPhase.DENOISE)
    late.resume()
    assert early.state.frame != late.state.frame
    assert early.state.step != late.state.step
    with counted_rows(rig) as rows:
        rig.step()
    assert rows["transformer"] == [2]


def test_features_are_stacked_and_split_without_a_trace() -> None:
    caches = [(torch.full((1, 2, row + 1), float(row)), "Rep", None) for row in (1, 1)]
    whole = stack_caches(caches)
    assert whole is not None
    back = split_caches(whole, 2)
    for cache, again in zip(caches, back, strict=True):
        assert isinstance(again[0], Tensor)
        assert torch.equal(again[0], cache[0])
        assert again[1:] == ("Rep", None)
        assert again[0].untyped_storage().nbytes() == cache[0].numel() * 4
    assert stack_caches([None, None]) is None


def test_features_of_another_age_have_another_shape(again: Again) -> None:
    decoder = components_of(again()).decoder
    cache, keys = None, []
    for _ in range(4):
        keys.append(shape_key(cache))
        _, cache = decoder.decode(torch.zeros(1, 16, 6, 6), cache)
    assert len(set(keys[:3])) == 3
    assert keys[2] != keys[1]
    assert shape_key(cache) == keys[3]


def test_what_was_read_together_is_used_as_it_is_and_by_row() -> None:
    pool = BlockPool(4, (2, 1, 1, 1, 1))
    blocks = pool.reserve(4)
    for number, block in enumerate(blocks):
        pool.view(block).fill_(number)

    def keys(*rows: ContextRow | None) -> list[list[float]]:
        layers = stack_rows(rows)
        assert layers is not None
        assert isinstance(layers[0], KeysAndValues)
        made: list[list[float]] = layers[0].k_BAKd.flatten(1).tolist()
        return made

    first, second = read_rows(pool, [blocks[:2], blocks[2:]])
    [other] = read_rows(pool, [blocks[1:3]])
    assert isinstance(first, ContextRow)
    assert stack_rows([first, second]) is first.layers
    assert keys(second, first) == [[2, 3], [0, 1]]
    assert keys(second, other) == [[2, 3], [1, 2]]
    assert read_rows(pool, [(), ()]) == [None, None]
    assert stack_rows([None, None]) is None
