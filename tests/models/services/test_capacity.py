"""How many sessions fit a device."""

import logging

import pytest
import torch

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions, MemoryBudget
from reverie.models.services.capacity import fitted, room_for
from reverie.models.wan.spec import Wan

GIB = 2**30
WAN = Wan.variants["1.3B"]


def size(history: int) -> int:
    each = WAN.bytes_a_session(history, "bfloat16")
    assert each is not None
    return each


def test_what_is_asked_for_is_given_where_it_fits(caplog: pytest.LogCaptureFixture) -> None:
    wanted = MemoryBudget(4, 8)
    assert fitted(WAN, "bfloat16", wanted, 4 * size(8)) == wanted
    assert not caplog.records


@pytest.mark.parametrize(
    ("free", "room"),
    [
        (4 * size(8) - 1, MemoryBudget(4, 4)),
        (4 * size(2), MemoryBudget(4, 2)),
        (4 * size(1) - 1, MemoryBudget(3, 1)),
        (size(1), MemoryBudget(1, 1)),
    ],
)
def test_history_gives_way_before_sessions_do_and_the_operator_is_told(
    free: int, room: MemoryBudget, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert fitted(WAN, "bfloat16", MemoryBudget(4, 8), free) == room
    assert f"{room.sessions} of 4 sessions" in caplog.text
    assert f"{room.history_chunks} of 8 chunks" in caplog.text


def test_a_device_without_room_for_one_session_is_refused_with_the_numbers() -> None:
    with pytest.raises(OptionError, match=r"19\.\d GiB in bfloat16, .* 8\.0 GiB are free"):
        fitted(WAN, "bfloat16", MemoryBudget(4, 8), 8 * GIB)


def test_the_memory_of_a_cpu_is_not_looked_at() -> None:
    options = LoadOptions(device="cpu", sessions=4, history_chunks=8)
    assert room_for(WAN, options, torch.device("cpu"), torch.float32) == MemoryBudget(4, 8)
