"""One drives: who sits first, hands over, leaves, or falls idle."""

import pytest

from reverie.rtc.livekit.errors import SteeringError
from reverie.rtc.livekit.seat import Change, DrivingSeat


@pytest.fixture
def seat() -> DrivingSeat:
    return DrivingSeat(idle_s=30.0)


def test_a_free_seat_is_taken_by_whoever_steers(seat: DrivingSeat) -> None:
    assert seat.steer("ada", 0.0) == Change(None, "ada")
    assert seat.steer("ada", 1.0) is None
    assert seat.driver == "ada"


def test_nobody_else_steers_while_it_is_taken(seat: DrivingSeat) -> None:
    seat.steer("ada", 0.0)
    with pytest.raises(SteeringError) as refusal:
        seat.steer("ben", 100.0)
    assert refusal.value.code == "seat_taken"
    assert "ada" in refusal.value.message
    assert seat.driver == "ada"


def test_who_asks_for_a_taken_seat_is_remembered_and_told_when_to_ask_again(
    seat: DrivingSeat,
) -> None:
    seat.steer("ada", 0.0)
    with pytest.raises(SteeringError) as refusal:
        seat.take("ben", 10.0)
    assert (refusal.value.code, refusal.value.retry_after_s) == ("seat_taken", 20.0)
    assert seat.asking == "ben"
    assert seat.hand("ada", "ben", 11.0) == Change("ada", "ben")
    assert seat.asking is None


def test_an_idle_driver_gives_way_to_whoever_asks_and_not_to_whoever_steers(
    seat: DrivingSeat,
) -> None:
    seat.steer("ada", 0.0)
    with pytest.raises(SteeringError):
        seat.steer("ben", 31.0)
    assert seat.take("ben", 31.0) == Change("ada", "ben")


def test_steering_keeps_the_seat(seat: DrivingSeat) -> None:
    seat.steer("ada", 0.0)
    seat.steer("ada", 20.0)
    with pytest.raises(SteeringError):
        seat.take("ben", 45.0)


def test_only_who_drives_hands_over_or_gets_up(seat: DrivingSeat) -> None:
    seat.steer("ada", 0.0)
    for to in ("ben", None):
        with pytest.raises(SteeringError) as refusal:
            seat.hand("ben", to, 1.0)
        assert refusal.value.code == "not_driving"
    assert seat.hand("ada", None, 1.0) == Change("ada", None)
    assert seat.driver is None


def test_leaving_frees_the_seat_once_and_only_ones_own(seat: DrivingSeat) -> None:
    seat.steer("ada", 0.0)
    assert seat.left("ben") is None
    assert seat.left("ada") == Change("ada", None)
    assert seat.left("ada") is None


def test_who_asked_and_left_asks_no_more(seat: DrivingSeat) -> None:
    seat.steer("ada", 0.0)
    with pytest.raises(SteeringError):
        seat.take("ben", 1.0)
    seat.left("ben")
    assert seat.asking is None
