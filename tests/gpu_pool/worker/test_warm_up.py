from collections.abc import Sequence
from pathlib import Path

import odd_models
import pytest
import stub_model
from stub_model import StubFamily, StubState, read_log
from talking_stub import TalkingFamily, TalkKernel, TalkState
from tiny_lm import TinyLm, tiny_options

from reverie.engine.admission import Admission
from reverie.engine.options import DriverOptions
from reverie.gpu_pool.wire.errors import WarmUpError
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.warm_up import WarmUp
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import Idle, StepBatch, StepResult
from reverie.models.contract.registry import ModelFamily

OPTIONS = LoadOptions(sessions=1, history_chunks=2)


def warm(family: ModelFamily, load: LoadOptions = OPTIONS) -> ModelInstance:
    instance = family.load(load)
    options = DriverOptions(history_chunks=2)
    kernels = {loop.name: family.kernel(loop.name, instance) for loop in family.spec.loops}
    model = LoadedModel(instance, kernels, Admission(instance, 1, options), options)
    ticks = iter(range(1_000_000))
    for program in family.spec.programs:
        WarmUp(model, program.name, lambda: next(ticks)).run()
    return instance


def test_every_kind_of_unit_has_run_and_no_block_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(stub_model.LOG_VARIABLE, str(tmp_path / "log"))
    instance = warm(StubFamily())
    kinds = {line.kind for line in read_log(tmp_path / "log")}
    assert kinds == {"denoise", "decode", "context", "rebuild"}
    assert instance.blocks is not None
    assert instance.blocks.free == instance.blocks.count


def test_prompt_and_controls_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str | None]] = []
    plan = stub_model.StubKernel.plan_step

    def noted(self: stub_model.StubKernel, state: StubState, controls: object) -> object:
        seen.append((state.prompt, state.acting))
        return plan(self, state, controls)  # type: ignore[arg-type]

    monkeypatch.setattr(stub_model.StubKernel, "plan_step", noted)
    warm(StubFamily())
    assert ("a quiet place", "up") in seen


def test_a_key_is_pressed_held_and_released_as_by_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first press finds a chunk that waits for the viewer, which is taken back for it."""
    began: list[tuple[int, tuple[str, ...], int]] = []
    run = stub_model.StubKernel.run_step

    def noted(
        self: stub_model.StubKernel, batch: StepBatch[StubState]
    ) -> Sequence[StepResult[StubState]]:
        results = run(self, batch)
        for unit, result in zip(batch.units, results, strict=True):
            if unit.plan.takes_controls:
                began.append((result.state.chunk, result.state.held, result.state.presses))
        return results

    monkeypatch.setattr(stub_model.StubKernel, "run_step", noted)
    warm(StubFamily())
    pressed = next(at for at, (_, _, presses) in enumerate(began) if presses)
    chunk, *_ = began[pressed]
    assert began[pressed - 1] == (chunk, (), 0), "the chunk was begun before"
    assert began[pressed] == (chunk, ("up",), 1)
    assert began[pressed + 1] == (chunk + 1, ("up",), 0), "the key is held"
    assert any(not held for _, held, _ in began[pressed + 1 :]), "and let go"


def test_a_conversation_that_can_be_revived_is_asked_again() -> None:
    instance = warm(TinyLm(), tiny_options(sessions=1, history_chunks=2))
    assert instance.blocks is not None
    assert instance.blocks.free == instance.blocks.count


def test_a_step_that_fails_fails_the_warm_up() -> None:
    with pytest.raises(WarmUpError, match="told to fail"):
        warm(odd_models.FailsInWarmUp())


def test_a_loop_that_has_nothing_to_do_fails_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub_model.StubKernel, "plan_step", lambda *_: Idle("asleep"))
    with pytest.raises(WarmUpError, match="puts nothing out"):
        warm(StubFamily())


def test_every_loop_of_every_program_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = TalkKernel.run_step

    def noted(self: TalkKernel, batch: StepBatch[TalkState]) -> Sequence[StepResult[TalkState]]:
        ran.extend(unit.plan.kind for unit in batch.units)
        return run(self, batch)

    monkeypatch.setattr(TalkKernel, "run_step", noted)
    instance = warm(TalkingFamily())
    assert {"look", "word"} <= set(ran)
    assert instance.blocks is not None
    assert instance.blocks.free == instance.blocks.count


def test_a_loop_of_text_that_fails_fails_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: TalkKernel, state: TalkState) -> None:
        raise RuntimeError("told to fail")

    monkeypatch.setattr(TalkKernel, "_fail_if_told", fail)
    with pytest.raises(WarmUpError, match=r"ar_decode: .*told to fail"):
        warm(TalkingFamily())
