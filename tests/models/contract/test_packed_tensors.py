"""Tensors on their way through a process that has no torch."""

import pickle
import pickletools
import subprocess
import sys

import pytest
import torch

from reverie.models.contract.loop import Durable
from reverie.models.contract.packed_tensors import PackedTensors
from reverie.models.contract.registry import find_family, installed_families

NEEDS_NO_TORCH = """
import pickle, sys
import reverie.host, reverie.rtc.app, reverie.rtc.server
durable = pickle.loads(sys.stdin.buffer.read())
assert durable.text == "{}", durable
sys.stdout.buffer.write(pickle.dumps(durable))
assert "torch" not in sys.modules
"""


def durable() -> Durable:
    tensors = {"half": torch.arange(6.0).bfloat16().view(2, 3), "one": torch.tensor(5)}
    return Durable("world_model", "v1", tensors, "{}")


def test_a_server_keeps_a_durable_state_for_the_next_worker_without_torch() -> None:
    sent = pickle.dumps(durable())
    done = subprocess.run(
        [sys.executable, "-c", NEEDS_NO_TORCH], input=sent, capture_output=True, timeout=240
    )
    assert done.returncode == 0, done.stderr.decode()
    back = pickle.loads(done.stdout)
    assert (back.loop, back.weights_version) == ("world_model", "v1")
    assert set(back.data) == {"half", "one"}
    for name, tensor in durable().data.items():
        assert torch.equal(back.data[name], tensor)
        assert back.data[name].dtype is tensor.dtype


def test_packed_tensors_are_equal_to_what_they_were_packed_from() -> None:
    tensors = {"counter": torch.tensor(3)}
    packed = PackedTensors.pack(tensors)
    assert packed == tensors
    assert len(packed) == 1
    assert PackedTensors.pack(packed) is packed


@pytest.mark.parametrize("name", sorted(installed_families()))
def test_a_description_reaches_a_server_without_the_modules_of_its_family(name: str) -> None:
    family = find_family(name)
    specs = getattr(family, "variants", {"": family.spec}).values()
    for spec in specs:
        texts = {text for _, text, _ in pickletools.genops(pickle.dumps(spec))}
        homes = {text for text in texts if isinstance(text, str) and text.startswith("reverie.")}
        assert homes, "the pickle names the modules of its classes"
        assert {home for home in homes if not home.startswith("reverie.models.contract")} == set()
