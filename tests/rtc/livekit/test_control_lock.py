"""One drives: who sits first, hands over, leaves, or falls idle."""

import pytest

from reverie.rtc.livekit.control_lock import ControlLock, LockChange
from reverie.rtc.livekit.errors import InputRefusedError


@pytest.fixture
def control_lock() -> ControlLock:
    return ControlLock(idle_s=30.0)


def test_a_free_control_lock_is_taken_by_whoever_steers(control_lock: ControlLock) -> None:
    assert control_lock.steer("ada", 0.0) == LockChange(None, "ada")
    assert control_lock.steer("ada", 1.0) is None
    assert control_lock.driver == "ada"


def test_nobody_else_steers_while_it_is_taken(control_lock: ControlLock) -> None:
    control_lock.steer("ada", 0.0)
    with pytest.raises(InputRefusedError) as refusal:
        control_lock.steer("ben", 100.0)
    assert refusal.value.code == "seat_taken"
    assert "ada" in refusal.value.message
    assert control_lock.driver == "ada"


def test_who_asks_for_a_taken_lock_is_remembered_and_told_when_to_ask_again(
    control_lock: ControlLock,
) -> None:
    control_lock.steer("ada", 0.0)
    with pytest.raises(InputRefusedError) as refusal:
        control_lock.take("ben", 10.0)
    assert (refusal.value.code, refusal.value.retry_after_s) == ("seat_taken", 20.0)
    assert control_lock.asking == "ben"
    assert control_lock.hand("ada", "ben", 11.0) == LockChange("ada", "ben")
    assert control_lock.asking is None


def test_an_idle_driver_gives_way_to_whoever_asks_and_not_to_whoever_steers(
    control_lock: ControlLock,
) -> None:
    control_lock.steer("ada", 0.0)
    with pytest.raises(InputRefusedError):
        control_lock.steer("ben", 31.0)
    assert control_lock.take("ben", 31.0) == LockChange("ada", "ben")


def test_steering_keeps_the_lock(control_lock: ControlLock) -> None:
    control_lock.steer("ada", 0.0)
    control_lock.steer("ada", 20.0)
    with pytest.raises(InputRefusedError):
        control_lock.take("ben", 45.0)


def test_only_who_drives_hands_over_or_gets_up(control_lock: ControlLock) -> None:
    control_lock.steer("ada", 0.0)
    for to in ("ben", None):
        with pytest.raises(InputRefusedError) as refusal:
            control_lock.hand("ben", to, 1.0)
        assert refusal.value.code == "not_driving"
    assert control_lock.hand("ada", None, 1.0) == LockChange("ada", None)
    assert control_lock.driver is None


def test_leaving_frees_the_lock_once_and_only_ones_own(control_lock: ControlLock) -> None:
    control_lock.steer("ada", 0.0)
    assert control_lock.left("ben") is None
    assert control_lock.left("ada") == LockChange("ada", None)
    assert control_lock.left("ada") is None


def test_who_asked_and_left_asks_no_more(control_lock: ControlLock) -> None:
    control_lock.steer("ada", 0.0)
    with pytest.raises(InputRefusedError):
        control_lock.take("ben", 1.0)
    control_lock.left("ben")
    assert control_lock.asking is None
