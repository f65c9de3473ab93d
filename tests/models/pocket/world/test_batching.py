"""Units of several sessions in one pass: the same latents as one after another."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import nan

import numpy as np
import pytest
import torch
from loop_rig import Rig
from tiny_pocket import tiny_options

from reverie.engine.emissions import StepFailed
from reverie.engine.rollouts import RolloutChunk, Rollouts, roll_out
from reverie.models.contract.behavior import ActionRecord
from reverie.models.contract.controls import NO_CONTROLS
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopRequest, WorkPlan
from reverie.models.pocket.network.frame_inputs import Past
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.spec import WINDOW, WORLD_MODEL, Pocket
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.past_rows import PocketPastRow, joined

SESSIONS = ("a", "b", "c")
MOVES = {"a": "left", "b": "up", "c": "right"}
SAME = 2e-4
"""Greatest difference of a latent: the sums of a batch are taken in another order."""


@pytest.fixture(scope="module")
def pocket() -> tuple[PocketKernel, ModelInstance]:
    family = Pocket()
    instance = family.load(replace(tiny_options(), sessions=8))
    kernel = family.kernel("world_model", instance)
    assert isinstance(kernel, PocketKernel)
    return kernel, instance


Family = tuple[PocketKernel, ModelInstance]


def request(session: str, steps: float = 2, guidance: float = 1.0) -> LoopRequest:
    seed = ord(session)
    return LoopRequest(session, seed, f"{session} meadow", {"steps": steps, "guidance": guidance})


def script(session: str, chunk: int) -> ActionRecord:
    prompt = "a frozen lake" if (session, chunk) == ("b", 4) else None
    return ActionRecord(prompt=prompt, held={"move": (MOVES[session],)})


def walk(
    family: Family, requests: list[LoopRequest], max_batch: int, chunks: int = WINDOW + 3
) -> Mapping[str, list[RolloutChunk]]:
    return roll_out(Rollouts(*family, max_batch), requests, script, chunks)


def clean(one: RolloutChunk) -> torch.Tensor:
    assert one.record.behavior is not None
    return one.record.behavior.tensors["clean"]


@contextmanager
def counted_rows(instance: ModelInstance) -> Iterator[list[int]]:
    """Note how many rows each pass of the world model has."""
    rows: list[int] = []
    world = instance.components["world"]
    assert isinstance(world, WorldModel)
    layer = next(world.stack()).forward_part.spread  # all passes come through it
    handle = layer.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    try:
        yield rows
    finally:
        handle.remove()


def assert_alike(
    one: Mapping[str, list[RolloutChunk]], other: Mapping[str, list[RolloutChunk]]
) -> None:
    for session, chunks in one.items():
        for left, right in zip(chunks, other[session], strict=True):
            torch.testing.assert_close(clean(left), clean(right), rtol=0, atol=SAME)


def test_sessions_in_one_batch_get_what_they_get_alone(pocket: Family) -> None:
    requests = [request(session) for session in SESSIONS]
    assert_alike(walk(pocket, requests, 8), walk(pocket, requests, 1))


def test_sessions_with_different_steps_and_guidance_share_their_passes(pocket: Family) -> None:
    requests = [request("a", 1), request("b", 3, guidance=2.0), request("c", 4)]
    assert_alike(walk(pocket, requests, 8), walk(pocket, requests, 1))


def test_equal_batch_keys_are_computed_in_one_pass(pocket: Family) -> None:
    with counted_rows(pocket[1]) as rows:
        walk(pocket, [request(session) for session in SESSIONS], 8, chunks=3)
    assert rows == [3] * 6  # two frames of a context pass and two steps


def test_no_batch_is_larger_than_the_operator_allows(pocket: Family) -> None:
    with counted_rows(pocket[1]) as rows:
        walk(pocket, [request(session) for session in SESSIONS], 2, chunks=3)
    assert max(rows) == 2
    assert sum(rows) == 3 * 6


def test_windows_of_different_lengths_do_not_share_a_pass(pocket: Family) -> None:
    kernel, instance = pocket
    rollouts = Rollouts(kernel, instance)
    rollouts.open(request("a"))
    for _ in range(2):
        rollouts.advance({})
    rollouts.open(request("b"))
    for _ in range(2):
        rollouts.advance({})
    with counted_rows(instance) as rows:
        rollouts.advance({})
    rollouts.close_all()
    assert rows == [1] * 6


def test_a_batch_key_names_everything_that_a_pass_must_agree_on(pocket: Family) -> None:
    kernel, instance = pocket
    plan = kernel.plan_step(kernel.init_state(request("a"), instance), NO_CONTROLS)
    assert isinstance(plan, WorkPlan)
    key = plan.batch_key
    assert (key.instance, key.weights_version) == (instance.name, instance.weights_version)
    assert (key.loop, key.kind) == (WORLD_MODEL.name, "begin")
    instance.weights_version, old = "other", instance.weights_version
    other = kernel.plan_step(kernel.init_state(request("a"), instance), NO_CONTROLS)
    instance.weights_version = old
    assert isinstance(other, WorkPlan)
    assert other.batch_key != key


def past(rows: int, first: float) -> Past:
    values = torch.arange(rows, dtype=torch.float32).add(first)[:, None, None, None]
    return Past(1, ((values, -values),))


def test_rows_that_were_read_together_are_used_as_they_are() -> None:
    read = past(3, 0.0)
    assert joined([PocketPastRow(read, row) for row in range(3)]) is read


@pytest.mark.parametrize("wanted", [[2, 0], [0, 1], [1], [0, 1, 2, 0, 1, 2]])
def test_some_rows_of_what_was_read_together_come_in_the_order_asked_for(
    wanted: list[int],
) -> None:
    read = past(3, 0.0)
    ((keys, values),) = joined([PocketPastRow(read, row) for row in wanted]).layers
    assert keys.flatten().tolist() == wanted
    assert values.flatten().tolist() == [-row for row in wanted]


def test_rows_that_were_read_apart_are_put_together() -> None:
    ((keys, _),) = joined(
        [
            PocketPastRow(past(2, 0.0), 1),
            PocketPastRow(past(3, 10.0), 2),
            PocketPastRow(past(1, 20.0), 0),
        ]
    ).layers
    assert keys.flatten().tolist() == [1.0, 12.0, 20.0]


def test_a_session_that_is_not_finite_spoils_no_neighbour_in_its_batch() -> None:
    rig = Rig(Pocket(), tiny_options())
    rig.open(request("a"))
    alone = rig.run_chunks("a", 3)
    rig.close("a")
    rig = rig.again()
    driver = rig.open(request("a"))
    rig.run_chunks("a", 1)
    driver.snapshot("kept")
    kept = driver.kept("kept")
    assert kept is not None
    broken = replace(kept, data={**kept.data, "clean": torch.full_like(kept.data["clean"], nan)})
    bad = rig.open(request("b"), durable=broken)
    assert set(rig.step()) == {"a", "b"}, "both write a frame into the cache"
    rig.run_chunks("a", 2)
    assert bad.ended
    assert not rig.heard_of("a", StepFailed)
    for one, other in zip(alone, rig.frames("a"), strict=True):
        assert np.abs(one.frames.astype(int) - other.frames.astype(int)).max() <= 1
