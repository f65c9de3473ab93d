"""What descriptions say of the memory of a session, against what its states hold."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
import torch
from contract import CASES, ContractCase, KernelRun

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import LoadOptions

SHIPPED = LoadOptions(device="cpu", precision="float32")
DECLARED = [
    replace(case, options=SHIPPED) if case.name == "pocket" else case
    for case in CASES
    if case.name in {"diamond", "oasis", "pocket"}
]
HISTORY = 3
SLACK_BYTES = 20_000
"""Numbers of an action or a prompt, which are not counted."""


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from tensors(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)


def held_bytes(states: list[Any]) -> int:
    """Return the memory of some states, what they share counted once."""
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in tensors(states)
    }
    return sum(storages.values())


@pytest.mark.parametrize("case", DECLARED, ids=lambda case: case.name)
def test_the_states_of_a_session_hold_no_more_than_its_description_says(case: ContractCase) -> None:
    bare = KernelRun(case)
    loop = bare.instance.spec.loop(case.loop.name)
    shown: list[Any] = []
    most = 0
    while len(shown) < loop.window_blocks + HISTORY + 2:
        plan = bare.plan(Controls())
        bare.run(plan, Controls())
        if plan.shows:
            shown.append(bare.state)
        most = max(most, held_bytes([*shown[-HISTORY:], bare.state]))
    declared = loop.bytes_beside_the_cache(HISTORY)
    assert declared / 4 <= most <= declared + SLACK_BYTES
