"""The loops of one session in its worker: side by side, apart when they fail, together else."""

from stub_model import Fault, prompt_mark, read_stamp
from worker_session_rig import HISTORY, WorkerSessionRig, turn

from reverie.engine.emissions import (
    ControlApplied,
    ControlSuperseded,
    FramesOut,
    SnapshotOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import OPENING, ControlId, ParameterInput, PromptInput
from reverie.gpu_pool.wire.session_messages import KeptSnapshot, OpenSession
from reverie.gpu_pool.worker.worker_session import RESTARTS

LAKE = f"I see p{prompt_mark('a lake')} with nothing held. "
LONG = " ".join(f"word{number}" for number in range(60))


def prompt(text: str, control: str = "p") -> PromptInput:
    return PromptInput(ControlId(control), text)


def spoken(rig: WorkerSessionRig, count: int, session: str = "a") -> bool:
    return len([out for out in rig.of(session, TextOut) if out.final]) >= count


# --- side by side ---


def test_what_is_in_effect_is_what_was_asked_of_any_loop_last() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(narrate=1)
    assert worker_session.effective_controls.prompt == "a lake"
    narrate = ParameterInput(ControlId("n"), "narrate", 0.0)
    worker_session.push([prompt("a city"), narrate])
    effect = worker_session.effective_controls
    assert (effect.prompt, effect.parameters["narrate"]) == ("a city", 0.0)
    assert "brightness" in effect.parameters


def test_it_tells_what_it_sees_once_and_again_when_that_changes() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open()
    rig.run(lambda: rig.chunks() >= 6)
    assert rig.words() == {0: LAKE}
    worker_session.push([prompt("a city")])
    rig.run(lambda: spoken(rig, 2))
    assert rig.words()[1] == f"I see p{prompt_mark('a city')} with nothing held. "
    rig.assert_nothing_is_lost()


def test_it_sees_only_what_was_shown() -> None:
    rig = WorkerSessionRig()
    rig.open()
    rig.run(lambda: rig.of("a", TextOut))
    kinds = [type(each) for each in rig.heard["a"]]
    assert kinds.index(FramesOut) < kinds.index(TextOut)


def test_no_loop_waits_for_more_than_one_unit_of_the_other() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(tell_every=1, step_ms=20, word_ms=5)
    worker_session.push([turn(LONG, "t")])
    rig.run(lambda: rig.chunks() >= 30)
    assert {unit.loop for unit in rig.ran} == {"world_model", "ar_decode"}
    assert rig.waits.longest == 1


def test_a_pace_keeps_the_words_from_costing_the_pictures_their_rate() -> None:
    frames = {}
    for program, pace in (("world", 0.0), ("narrated_world", 10.0)):
        rig = WorkerSessionRig()
        parameters = {} if program == "world" else {"pace": pace, "word_ms": 5, "tell_every": 1}
        rig.open("a", program, step_ms=20, **parameters)
        rig.run_for(10_000_000)
        frames[program] = rig.chunks()
        words = len(rig.of("a", TextOut))
    assert 90 <= words <= 101
    assert frames["narrated_world"] >= 0.9 * frames["world"]


def test_a_loop_that_waits_for_its_pace_says_when_it_can_continue() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(pace=4, tell_every=1)
    rig.seen = False
    rig.run(lambda: len(rig.of("a", TextOut)) >= 3)
    while rig.step():
        pass
    wake_us = worker_session.wake_us
    assert wake_us is not None
    assert rig.clock.now_us < wake_us <= rig.clock.now_us + 250_000
    rig.clock.now_us = wake_us
    assert rig.step() == [("a", "ar_decode")]
    worker_session.pause()
    assert rig.step() == []
    assert worker_session.wake_us is None


def test_a_text_loop_keeps_its_pace_on_a_device_that_others_keep_busy() -> None:
    rig = WorkerSessionRig(max_batch=1)
    for session in "abc":
        rig.open(session, "chat", step_ms=20, word_ms=5, pace=5)
    rig.session_table["a"].push([turn(LONG, "t")])
    rig.run(lambda: rig.of("a", TextOut))
    before = [rig.chunks(session) for session in "abc"]
    rig.run_for(8_000_000)
    assert len(rig.of("a", TextOut)) >= 0.8 * 5 * 8
    made = [rig.chunks(session) - was for session, was in zip("abc", before, strict=True)]
    assert max(made) - min(made) <= max(2, max(made) // 8), made


def test_words_and_frames_of_several_sessions_share_batches_of_their_kind() -> None:
    rig = WorkerSessionRig()
    for session in "abc":
        rig.open(session, tell_every=1, step_ms=5)
    rig.run(lambda: min(rig.chunks(session) for session in "abc") >= 12)
    assert {(unit.loop, unit.batch) for unit in rig.ran} >= {
        ("world_model", 3),
        ("ar_decode", 3),
    }
    assert rig.waits.longest == 1
    for session in "abc":
        stamps = [read_stamp(out.frames[0]) for out in rig.of(session, FramesOut)]
        assert [stamp.chunk for stamp in stamps] == list(range(len(stamps)))
    rig.assert_nothing_is_lost()


def test_what_is_seen_stays_as_it_was_while_it_is_told_of() -> None:
    """The talker checks its blocks with every word, and fails when one was written over."""
    rig = WorkerSessionRig(sessions=1)
    worker_session = rig.open(step_ms=1)
    rig.run(lambda: rig.chunks() >= 8)
    worker_session.push([turn(LONG, "t")])
    rig.run(lambda: "word59" in "".join(rig.words().values()))
    assert not rig.of("a", StepFailed)
    assert rig.chunks() >= 20
    rig.assert_nothing_is_lost()


# --- asking ---


def test_turns_are_answered_in_order_each_with_its_receipt_before_it() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="chat")
    rig.run(lambda: rig.chunks() >= 3)
    assert not rig.words()
    worker_session.push([turn("one", "t1"), turn("two", "t2")])
    rig.run(lambda: spoken(rig, 2))
    where = f"under p{prompt_mark('a lake')}. "
    assert rig.words() == {0: f"You said one {where}", 1: f"You said two {where}"}
    told = rig.of("a", ControlApplied, TextOut)
    order = [each.control if isinstance(each, ControlApplied) else each.answers for each in told]
    assert list(dict.fromkeys(order)) == [OPENING, "t1", "t2"]
    assert order == sorted(order), "no word before its turn's receipt"
    words = rig.of("a", TextOut)
    assert [word.pts_us for word in words] == sorted(word.pts_us for word in words)


def test_a_parameter_of_a_silent_loop_acts_and_has_its_receipt() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open()
    rig.run(lambda: spoken(rig, 1))
    worker_session.push([ParameterInput(ControlId("n"), "narrate", 0.0)])
    rig.run(lambda: any(told.control == "n" for told in rig.of("a", ControlApplied)))
    worker_session.push([prompt("a city")])
    rig.run(lambda: rig.chunks() >= 12)
    assert rig.words() == {0: LAKE}
    worker_session.push([ParameterInput(ControlId("m"), "narrate", 1.0)])
    rig.run(lambda: spoken(rig, 2))


def test_an_input_that_no_loop_takes_is_answered() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="world")
    [told] = worker_session.push([turn("hello", "t")])
    assert (told.control, told.by) == ("t", None)  # type: ignore[union-attr]


def test_the_opening_prompt_has_one_receipt() -> None:
    rig = WorkerSessionRig()
    rig.open()
    rig.run(lambda: rig.chunks() >= 4)
    [receipt] = rig.of("a", ControlApplied)
    assert (receipt.control, receipt.chunk, receipt.pts_us) == (OPENING, 0, 0)


def test_an_opening_prompt_that_was_replaced_at_once_never_acts() -> None:
    rig = WorkerSessionRig()
    rig.open().push([prompt("a city")])
    rig.run(lambda: rig.chunks() >= 2)
    [superseded] = rig.of("a", ControlSuperseded)
    assert (superseded.control, superseded.by) == (OPENING, "p")
    assert [each.control for each in rig.of("a", ControlApplied)] == ["p"]


# --- going back ---


def test_a_loop_of_text_is_interrupted_alone() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="chat")
    worker_session.push([turn(LONG, "t1"), turn("two", "t2")])
    rig.run(lambda: len(rig.of("a", TextOut)) >= 5)
    worker_session.interrupt(None, "ar_decode")
    assert worker_session.utterances == {"ar_decode": 1}
    rig.run(lambda: spoken(rig, 1))
    assert "word9" not in rig.words()[0]
    assert rig.words()[1].startswith("You said two")
    assert not any(out.header.discontinuity for out in rig.of("a", FramesOut))
    rig.assert_nothing_is_lost()


def test_the_leading_loop_is_interrupted_alone() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="chat")
    worker_session.push([turn(LONG, "t1")])
    rig.run(lambda: len(rig.of("a", TextOut)) >= 5)
    newest = rig.of("a", FramesOut)[-1].header.chunk if rig.chunks() else None
    worker_session.interrupt(newest, "world_model")
    rig.run(lambda: spoken(rig, 1))
    assert "word59" in rig.words()[0]


def test_pause_stops_both_and_stepping_moves_the_pictures_only() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(tell_every=1)
    rig.run(lambda: spoken(rig, 1))
    worker_session.pause()
    assert rig.step() == []
    before, words = rig.chunks(), len(rig.of("a", TextOut))
    worker_session.advance(2)
    while rig.step():
        pass
    assert (rig.chunks(), len(rig.of("a", TextOut))) == (before + 2, words)
    worker_session.resume()
    rig.run(lambda: len(rig.of("a", TextOut)) > words)


def test_after_a_rewind_or_a_reset_it_tells_of_the_world_as_it_is_then() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open()
    rig.run(lambda: spoken(rig, 1) and rig.chunks() >= 3)
    worker_session.push([prompt("a city")])
    rig.run(lambda: spoken(rig, 2))
    worker_session.reset(None)
    rig.run(lambda: spoken(rig, 3))
    assert rig.words()[2] == f"I see p{prompt_mark('a city')} with nothing held. "
    chunk = rig.of("a", FramesOut)[-1].header.chunk
    rig.run(lambda: rig.of("a", FramesOut)[-1].header.chunk >= chunk + 2)
    assert worker_session.rewind(chunk).chunk == chunk
    rig.run(lambda: rig.chunks() >= 12)
    rig.assert_nothing_is_lost()


def test_a_snapshot_keeps_both_loops_and_one_taken_in_silence_restarts_the_text_loop() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="chat")
    rig.run(lambda: rig.chunks() >= 2)
    worker_session.snapshot("silent")
    worker_session.push([turn("one", "t1")])
    rig.run(lambda: spoken(rig, 1))
    worker_session.snapshot("spoken")
    assert {durable.loop for durable in worker_session.kept("spoken")} == {
        "world_model",
        "ar_decode",
    }
    for name in ("silent", "spoken"):
        worker_session.restore(name)
        worker_session.push([turn(name, name)])
        count = len(rig.words())
        rig.run(lambda count=count: spoken(rig, count + 1))  # type: ignore[misc]
    assert [text.split()[2] for text in rig.words().values()] == ["one", "silent", "spoken"]
    rig.assert_nothing_is_lost()


# --- failing ---


def test_a_word_that_fails_once_is_said_again() -> None:
    rig = WorkerSessionRig()
    rig.open(talk_fault=Fault.RAISE)
    rig.run(lambda: spoken(rig, 1))
    assert rig.words() == {0: LAKE}
    [failed] = rig.of("a", StepFailed)
    assert (failed.loop, failed.fatal, failed.restarted) == ("ar_decode", False, False)


def test_a_text_loop_that_keeps_failing_is_restarted_a_few_times_and_the_pictures_never_stop() -> (
    None
):
    rig = WorkerSessionRig()
    rig.open(talk_fault=Fault.RAISE, talk_fault_always=1, tell_every=1)
    rig.run(lambda: any(failed.fatal for failed in rig.of("a", StepFailed)))
    fatal = [failed for failed in rig.of("a", StepFailed) if failed.restarted or failed.fatal]
    assert [failed.restarted for failed in fatal] == [True] * RESTARTS + [False]
    before = rig.chunks()
    rig.run(lambda: rig.chunks() >= before + 5)
    assert not any(out.header.discontinuity for out in rig.of("a", FramesOut))
    rig.assert_nothing_is_lost()


def test_a_turn_whose_answer_fails_is_not_asked_again_and_those_behind_it_are_answered() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(
        program="chat", talk_fault=Fault.RAISE, talk_fault_always=1, talk_fault_at=1
    )
    worker_session.push([turn("fine", "t0")])
    rig.run(lambda: spoken(rig, 1))
    worker_session.push([turn("poison", "t1"), turn("behind it", "t2")])
    rig.run(lambda: spoken(rig, 2))
    fates = {each.control: type(each) for each in rig.of("a", ControlApplied, ControlSuperseded)}
    assert (fates["t1"], fates["t2"]) == (ControlSuperseded, ControlApplied)
    assert [failed.restarted for failed in rig.of("a", StepFailed)] == [False, True]
    assert "behind it" in list(rig.words().values())[-1]
    rig.assert_nothing_is_lost()


def test_what_waits_for_a_text_loop_that_was_stopped_is_answered() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(program="chat", talk_fault=Fault.RAISE, talk_fault_always=1)
    turns = [turn(f"poison {number}", f"t{number}") for number in range(RESTARTS + 3)]
    worker_session.push(turns)
    rig.run(lambda: any(failed.fatal for failed in rig.of("a", StepFailed)))
    lost = [told.control for told in rig.of("a", ControlSuperseded)]
    assert sorted(lost) == [item.control for item in turns]
    before = rig.chunks()
    rig.run(lambda: rig.chunks() >= before + 3)


def test_the_leading_loop_s_failure_is_the_session_s() -> None:
    rig = WorkerSessionRig()
    worker_session = rig.open(fault=Fault.RAISE, fault_chunk=2, fault_always=1)
    rig.run(lambda: any(failed.fatal for failed in rig.of("a", StepFailed)))
    assert worker_session.leading.ended
    assert {failed.loop for failed in rig.of("a", StepFailed)} == {"world_model"}
    rig.assert_nothing_is_lost()


# --- coming back ---


def test_another_worker_recovers_both_loops_with_their_numbers() -> None:
    lost = WorkerSessionRig()
    lost.open()
    lost.run(lambda: spoken(lost, 1) and lost.chunks() >= 4)
    newest = {out.durable.loop: out for out in lost.of("a", SnapshotOut)}
    assert set(newest) == {"world_model", "ar_decode"}
    rig = WorkerSessionRig()
    durables = tuple(out.durable for out in newest.values())
    kept = (KeptSnapshot("here", 2, durables),)
    chunks = newest["world_model"].chunk + 1
    worker_session = rig.take_up(
        OpenSession(
            request=0,
            session="a",
            program="narrated_world",
            seed=7,
            prompt="a lake",
            durables=durables,
            kept=kept,
            chunks=chunks,
            utterances={"ar_decode": 1},
        )
    )
    worker_session.push([turn("hello", "t")])
    rig.run(lambda: spoken(rig, 2))
    assert min(rig.words()) == 1
    assert rig.of("a", FramesOut)[0].header.chunk == chunks
    assert not any(each.control == OPENING for each in rig.of("a", ControlApplied))
    worker_session.restore("here")
    rig.run(lambda: rig.chunks() >= 6)
    rig.assert_nothing_is_lost()


def test_a_session_holds_no_more_blocks_than_it_was_admitted_for() -> None:
    rig = WorkerSessionRig(sessions=1)
    worker_session = rig.open(tell_every=1, word_ms=1, step_ms=3)
    most = rig.model.admission.session_blocks(rig.model.loops("narrated_world"))
    total = rig.free_blocks
    assert most == total
    for _ in range(600):
        rig.step()
        assert total - rig.free_blocks <= most
    worker_session.snapshot("one")
    assert rig.chunks() > 10 * HISTORY
    rig.assert_nothing_is_lost()
