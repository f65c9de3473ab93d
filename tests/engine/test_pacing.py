"""When a loop may run: the gate, the lead over the viewer, the rate of text."""

from reverie.engine.pacing import SLACK_US, PlayoutLead, RunGate, SeenUntil, TextRate
from reverie.models.contract.spec import Lead


def test_a_pause_holds_every_chunk_and_an_advance_lets_as_many_through() -> None:
    gate = RunGate()
    gate.pause()
    assert not gate.open(begun=True)
    gate.advance(2)
    gate.shown()
    assert gate.open(begun=False)
    gate.shown()
    assert gate.held
    gate.resume()
    assert gate.open(begun=False)


def test_unwatched_only_a_chunk_that_has_begun_continues() -> None:
    gate = RunGate()
    gate.watched(False)
    assert gate.open(begun=True)
    assert not gate.open(begun=False)


def test_an_advance_of_what_runs_pauses_it_after_so_many() -> None:
    gate = RunGate()
    gate.advance(1)
    assert gate.paused
    gate.shown()
    assert not gate.open(begun=True)


def test_what_is_skipped_need_not_be_put_out() -> None:
    gate = RunGate()
    gate.advance(3)
    gate.skip()
    assert gate.held


def test_it_is_full_with_as_many_unseen_chunks_as_are_allowed() -> None:
    lead = PlayoutLead(Lead(2), kept=8)
    assert not lead.full(0)
    lead.put_out(0, 100, now_us=0, end_us=100 * (0 + 1))
    assert not lead.full(0)
    lead.put_out(1, 100, now_us=0, end_us=100 * (1 + 1))
    assert lead.full(0)
    lead.seen(0, now_us=50)
    assert not lead.full(0)


def test_seeing_a_chunk_means_having_seen_those_before_it() -> None:
    lead = PlayoutLead(Lead(3), kept=8)
    for chunk in range(3):
        lead.put_out(chunk, 100, now_us=0, end_us=100 * (chunk + 1))
    lead.seen(2, now_us=10)
    assert not lead.full(0)
    assert lead.deadline_us(10) == 10


def test_an_outdated_playhead_is_ignored() -> None:
    lead = PlayoutLead(Lead(1), kept=8)
    lead.put_out(4, 100, now_us=0, end_us=100 * (4 + 1))
    lead.seen(3, now_us=90)
    assert lead.full(0)
    assert lead.deadline_us(90) == 100


def test_a_chunk_that_was_seen_before_its_last_frame_came_is_not_waited_for() -> None:
    lead = PlayoutLead(Lead(1), kept=8)
    lead.seen(0, now_us=10)
    lead.put_out(0, 100, now_us=20, end_us=100 * (0 + 1))
    assert not lead.full(0)
    assert lead.deadline_us(20) == 120
    lead.put_out(1, 100, now_us=30, end_us=100 * (1 + 1))
    assert lead.full(0)


def test_the_viewer_runs_out_when_what_was_put_out_has_been_shown() -> None:
    lead = PlayoutLead(Lead(3), kept=8)
    assert lead.deadline_us(1000) == 1000
    lead.put_out(0, 100, now_us=1030, end_us=100 * (0 + 1))
    assert lead.deadline_us(1030) == 1130
    lead.put_out(1, 100, now_us=1040, end_us=100 * (1 + 1))
    assert lead.deadline_us(1040) == 1230
    lead.seen(0, now_us=1150)
    assert lead.deadline_us(1150) == 1250


def test_a_late_chunk_begins_when_it_comes() -> None:
    lead = PlayoutLead(Lead(3), kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100 * (0 + 1))
    lead.put_out(1, 100, now_us=500, end_us=100 * (1 + 1))
    assert lead.deadline_us(500) == 600


def test_what_is_dropped_needs_not_be_seen_and_the_next_is_due_at_once() -> None:
    lead = PlayoutLead(Lead(1), kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100 * (0 + 1))
    lead.skip()
    assert not lead.full(0)
    assert lead.deadline_us(7) == 7
    assert lead.deadline_us(9) == 7


def test_the_last_frame_stays_on_screen_after_it_was_reported() -> None:
    lead = PlayoutLead(Lead(2), frame_us=50, kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100 * (0 + 1))
    lead.put_out(1, 100, now_us=0, end_us=100 * (1 + 1))
    lead.seen(0, now_us=60)
    assert lead.deadline_us(60) == 60 + 50 + 100


def test_what_was_only_heard_of_counts_when_it_can_have_been_played() -> None:
    lead = PlayoutLead(Lead(1), frame_us=20, kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100)
    lead.seen(0, now_us=1, in_time=True)  # its last frame comes up at 80
    assert lead.full(79)
    assert lead.opens_us == 80
    assert not lead.full(80)
    lead.put_out(1, 100, now_us=85, end_us=200)
    lead.seen(1, now_us=86, in_time=True)
    assert lead.full(179)
    assert not lead.full(180)


def test_a_stall_shifts_when_what_follows_can_have_been_played() -> None:
    lead = PlayoutLead(Lead(1), kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100)
    lead.seen(0, now_us=1, in_time=True)
    assert not lead.full(400)  # nothing was made for so long
    lead.put_out(1, 100, now_us=400, end_us=200)
    lead.seen(1, now_us=401, in_time=True)
    assert lead.opens_us == 500


def test_a_viewer_that_reports_what_was_shown_waits_for_no_clock() -> None:
    lead = PlayoutLead(Lead(1), kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100)
    lead.seen(0, now_us=1)
    assert not lead.full(1)
    assert lead.opens_us is None


def test_what_is_told_as_media_time_counts_for_whole_chunks() -> None:
    lead = PlayoutLead(Lead(2), kept=8)
    lead.put_out(0, 100, now_us=0, end_us=100)
    lead.put_out(1, 100, now_us=0, end_us=200)
    lead.seen_until(SeenUntil(199), now_us=50)
    assert not lead.full(50)
    lead.put_out(2, 100, now_us=60, end_us=300)
    assert lead.full(60)
    assert lead.seen(1, now_us=70) == 200


def test_the_first_word_comes_at_once_and_the_next_after_its_time() -> None:
    pace = TextRate()
    assert pace.due_us <= 5_000_000
    pace.spoke(5_000_000, per_second=4.0)
    pace.spoke(5_000_000, per_second=4.0)
    assert pace.due_us == 5_250_000


def test_a_pace_of_none_holds_nothing_back() -> None:
    pace = TextRate()
    for _ in range(5):
        pace.spoke(7_000_000, per_second=0.0)
    assert pace.due_us <= 7_000_000


def test_text_that_had_to_wait_is_not_caught_up_in_a_burst() -> None:
    pace = TextRate()
    pace.spoke(1_000_000, per_second=10.0)
    pace.spoke(9_000_000, per_second=10.0)
    pace.spoke(9_000_000, per_second=10.0)
    assert pace.due_us == 9_100_000


def test_a_word_has_its_deadline_from_when_it_could_first_run() -> None:
    pace = TextRate()
    assert pace.deadline_us(1000) == 1000 + SLACK_US
    assert pace.deadline_us(90_000) == 1000 + SLACK_US
    pace.ran()
    assert pace.deadline_us(90_000) == 90_000 + SLACK_US
