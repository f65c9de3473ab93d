"""What a model sees of keys."""

import pytest

from reverie.models.contract.controls import NO_CONTROLS, Controls, KeyEdge, KeyInput


def edges(*words: str) -> tuple[KeyEdge, ...]:
    return tuple(KeyEdge(word[1:], down=word[0] == "+") for word in words)


@pytest.mark.parametrize(
    ("keys", "acting"),
    [
        (KeyInput(), None),
        (KeyInput((), ("up",)), "up"),
        (KeyInput((), ("up", "left")), "left"),
        (KeyInput(edges("+up", "-up"), ()), "up"),
        (KeyInput(edges("+up", "-up"), ("left",)), "up"),
        (KeyInput(edges("+up", "-up", "+down", "-down"), ()), "up"),
        (KeyInput(edges("-left"), ()), None),
        (KeyInput(edges("+up", "-left"), ("up",)), "up"),
        (KeyInput(edges("+up", "-up", "+up"), ("up",)), "up"),
    ],
)
def test_a_tap_acts_before_the_key_that_was_pressed_last(
    keys: KeyInput, acting: str | None
) -> None:
    assert keys.acting() == acting


def test_presses_are_counted_for_each_key() -> None:
    keys = KeyInput(edges("+up", "-up", "+up", "-up", "+left"), ("left",))
    assert (keys.presses("up"), keys.presses("left"), keys.presses("down")) == (2, 1, 0)


def test_no_controls_ask_for_nothing() -> None:
    assert Controls() == NO_CONTROLS
    assert NO_CONTROLS.prompt is None
    assert [*NO_CONTROLS.keys, *NO_CONTROLS.axes, *NO_CONTROLS.parameters] == []
