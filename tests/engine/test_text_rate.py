"""How fast a loop of text speaks."""

from reverie.engine.text_rate import SLACK_US, TextRate


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


def test_a_voice_that_had_to_wait_does_not_make_up_for_it_in_a_burst() -> None:
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
