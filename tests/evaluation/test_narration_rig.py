"""Both loops of a session, on the stub that talks."""

import pytest
from stub_model import prompt_mark
from talking_stub import TalkingFamily, talk_request

from reverie.engine.errors import RolloutError
from reverie.evaluation.narration_rig import ServedNarrationRig
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopRequest

FAMILY = TalkingFamily(sleep=lambda _: None)
SEEN = f"p{prompt_mark('a frozen lake')}"


@pytest.fixture
def instance() -> ModelInstance:
    return FAMILY.load(LoadOptions(device="cpu", sessions=3, history_chunks=2))


def rig(instance: ModelInstance, *requests: LoopRequest) -> ServedNarrationRig:
    world, narrator = (FAMILY.kernel(name, instance) for name in ("world_model", "ar_decode"))
    return ServedNarrationRig(instance, world, narrator, requests, [None] * len(requests))


def test_every_narrator_speaks_and_answers(
    instance: ModelInstance,
) -> None:
    both = rig(instance, talk_request("a"), talk_request("b"))
    assert both.tell() == [f"I see {SEEN} with nothing held."] * 2
    assert both.ask(["where am i", "what is it"]) == [
        f"You said where am i under {SEEN}.",
        f"You said what is it under {SEEN}.",
    ]
    assert both.ask(["again", "again"]) == [f"You said again under {SEEN}."] * 2
    both.close()
    assert instance.blocks is not None
    assert instance.blocks.free == instance.blocks.count


def test_a_key_that_is_held_is_seen(instance: ModelInstance) -> None:
    world, narrator = (FAMILY.kernel(name, instance) for name in ("world_model", "ar_decode"))
    requests = [talk_request("a"), talk_request("b")]
    walking = ServedNarrationRig(instance, world, narrator, requests, ["left", None])
    assert walking.tell() == [f"I see {SEEN} with left held.", f"I see {SEEN} with nothing held."]
    walking.close()


def test_a_silent_narrator_returns_an_empty_text(instance: ModelInstance) -> None:
    silent = rig(instance, talk_request("a", narrate=0.0))
    assert silent.tell() == [""]
    assert silent.ask(["well"]) == [f"You said well under {SEEN}."]
    silent.close()


def test_a_failing_loop_raises(instance: ModelInstance) -> None:
    failing = rig(instance, talk_request("a", talk_fault=1.0))
    with pytest.raises(RolloutError, match="session a"):
        failing.tell()
    failing.close()
