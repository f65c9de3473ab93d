"""Plans that are none: the session fails at once and alone, before the scheduler sees them."""

from dataclasses import replace

import pytest
import torch
from driving import all_blocks_are_free
from loop_rig import stub_rig
from stub_model import StubFamily, StubState, stub_request

from reverie.engine.emissions import FaultCode, StepFailed
from reverie.engine.errors import BadStepError
from reverie.engine.planner import checked_plan
from reverie.models.contract.controls import Controls
from reverie.models.contract.loop import BatchKey, Idle, WorkPlan

LOOP = StubFamily().spec.loops[0]
KEY = BatchKey("stub", "1", LOOP.name, "denoise", (2,), adapters=("ink", "0.5"))
PLAN = WorkPlan("denoise", KEY, writes=1, streams=("video",))


def test_a_good_plan_passes_as_it_is() -> None:
    assert checked_plan(PLAN, LOOP) is PLAN
    sized = replace(PLAN, batch_key=replace(KEY, shape=torch.Size((2, 3))))
    assert checked_plan(sized, LOOP) is sized
    assert checked_plan(Idle("nothing has changed"), LOOP) is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "plan_step returned NoneType"),
        ("denoise", "plan_step returned str"),
        (replace(PLAN, batch_key=["x"]), "batch_key is no BatchKey"),  # type: ignore[arg-type]
        (replace(PLAN, batch_key=replace(KEY, shape=[2])), "batch_key.shape"),  # type: ignore[arg-type]
        (replace(PLAN, batch_key=replace(KEY, shape=(torch.ones(2),))), "batch_key.shape"),  # type: ignore[arg-type]
        (replace(PLAN, batch_key=replace(KEY, kind=None)), "batch_key.kind"),  # type: ignore[arg-type]
        (replace(PLAN, batch_key=replace(KEY, loop="other")), "names loop 'other'"),
        (replace(PLAN, kind=None), "kind is no text"),  # type: ignore[arg-type]
        (replace(PLAN, shows=torch.ones(2)), "shows is neither"),  # type: ignore[arg-type]
        (replace(PLAN, commits=None), "commits is neither"),  # type: ignore[arg-type]
        (replace(PLAN, writes=-1), "writes is no count"),
        (replace(PLAN, writes=0.5), "writes is no count"),  # type: ignore[arg-type]
        (replace(PLAN, streams="video"), "streams is no tuple"),  # type: ignore[arg-type]
        (replace(PLAN, streams=(1,)), "streams is no tuple"),  # type: ignore[arg-type]
    ],
)
def test_a_plan_that_is_of_no_use_is_refused_by_field(answer: object, reason: str) -> None:
    with pytest.raises(BadStepError, match=reason) as refused:
        checked_plan(answer, LOOP)
    assert refused.value.code is FaultCode.BAD_PLAN


@pytest.mark.parametrize("answer", [None, "denoise", replace(PLAN, batch_key=["x"])])  # type: ignore[arg-type]
def test_a_kernel_that_plans_nonsense_ends_its_session_alone(answer: object) -> None:
    rig = stub_rig()
    driver = rig.open(stub_request("s1"))
    neighbour = rig.open(stub_request("s2"))
    honest = rig.kernel.plan_step

    def plan_step(state: StubState, controls: Controls) -> object:
        return answer if state.session == "s1" and state.chunk else honest(state, controls)

    rig.kernel.plan_step = plan_step  # type: ignore[method-assign, assignment]
    rig.run_chunks("s2", 4)
    [failed] = rig.heard_of("s1", StepFailed)
    assert (failed.code, failed.fatal, failed.chunk) == (FaultCode.BAD_PLAN, True, 1)
    assert (driver.ended, neighbour.ended) == (True, False)
    rig.close("s1")
    rig.close("s2")
    assert all_blocks_are_free(rig)
