"""Key edges: order, floods and what is held."""

from hypothesis import given
from hypothesis import strategies as st

from reverie.engine.inputs import ControlId
from reverie.engine.key_queue import KeyQueue
from reverie.models.contract.controls import KeyEdge, KeyInput

KEYS = ("up", "down", "left", "right")


def down(key: str) -> KeyEdge:
    return KeyEdge(key, down=True)


def up(key: str) -> KeyEdge:
    return KeyEdge(key, down=False)


def queue_with(*edges: KeyEdge, capacity: int = 64) -> KeyQueue:
    queue = KeyQueue(KEYS, capacity)
    for index, edge in enumerate(edges):
        queue.add(edge, ControlId(f"c{index}"))
    return queue


def seen(queue: KeyQueue) -> KeyInput:
    """What a step sees; it takes it."""
    keys = queue.peek() or KeyInput()
    queue.take()
    return keys


def test_a_tap_within_one_step_is_seen_and_what_is_held_after_it_is_held() -> None:
    keys = seen(queue_with(down("up"), up("up"), down("left")))
    assert keys.presses("up") == 1
    assert keys.held == ("left",)
    assert keys.acting() == "up"


def test_five_clicks_within_one_step_are_five_presses() -> None:
    assert seen(queue_with(*[down("up"), up("up")] * 5)).presses("up") == 5


def test_a_held_key_acts_on_in_steps_without_edges() -> None:
    queue = queue_with(down("up"))
    assert seen(queue).edges == (down("up"),)
    assert seen(queue) == KeyInput((), ("up",))


def test_held_keys_are_named_in_the_order_of_their_presses() -> None:
    queue = queue_with(down("up"), down("left"), up("up"), down("up"))
    assert seen(queue).held == ("left", "up")


def test_auto_repeat_and_second_releases_move_nothing() -> None:
    queue = queue_with(down("up"), down("up"), down("up"), up("up"), up("up"), up("left"))
    assert seen(queue).edges == (down("up"), up("up"))
    assert queue.peek() is None


def test_nothing_is_seen_when_nothing_is_held() -> None:
    assert KeyQueue(KEYS, 8).peek() is None


def test_a_flood_costs_the_oldest_taps_and_names_their_controls() -> None:
    queue, lost = KeyQueue(KEYS, 8), []
    for index in range(10):
        lost += queue.add(down("up"), ControlId(f"down{index}"))
        lost += queue.add(up("up"), ControlId(f"up{index}"))
    assert seen(queue).presses("up") == 4
    assert lost == [f"down{index}" for index in range(6)]


def test_a_control_with_a_tap_left_is_not_lost() -> None:
    queue, lost = KeyQueue(KEYS, 8), []
    for _ in range(6):
        for edge in (down("up"), up("up")):
            lost += queue.add(edge, ControlId("all"))
    assert lost == []


def test_a_flood_never_leaves_a_key_held() -> None:
    queue = queue_with(down("left"), capacity=8)
    queue.take()
    for index in range(1000):
        queue.add(down("up"), ControlId(f"d{index}"))
        queue.add(up("up"), ControlId(f"u{index}"))
    queue.add(up("left"), ControlId("release"))
    keys = seen(queue)
    assert up("left") in keys.edges
    assert keys.held == ()


def test_releasing_all_keys_releases_what_is_held() -> None:
    queue = queue_with(down("up"), down("left"))
    queue.take()
    queue.release_all()
    assert seen(queue) == KeyInput((up("up"), up("left")), ())


def test_what_is_put_back_comes_before_what_came_since() -> None:
    queue = queue_with(down("up"), up("up"))
    taken = queue.take()
    queue.add(down("left"), ControlId("later"))
    queue.put_back(taken)
    assert seen(queue) == KeyInput((down("up"), up("up"), down("left")), ("left",))


@given(
    steps=st.lists(
        st.lists(st.builds(KeyEdge, st.sampled_from(KEYS), st.booleans()), max_size=40), max_size=6
    ),
    rolled_back=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_a_model_that_follows_the_edges_always_ends_with_the_keys_that_are_down(
    steps: list[list[KeyEdge]], rolled_back: list[bool]
) -> None:
    queue = KeyQueue(KEYS, 8)
    truth: set[str] = set()
    followed: set[str] = set()
    for edges, undo in zip(steps, rolled_back, strict=False):
        for edge in edges:
            queue.add(edge, ControlId("c"))
            (truth.add if edge.down else truth.discard)(edge.key)
        keys = queue.peek() or KeyInput()
        assert len(keys.edges) <= 8
        assert set(keys.held) == truth
        taken = queue.take()
        if undo:
            queue.put_back(taken)
            continue
        for edge in keys.edges:
            (followed.add if edge.down else followed.discard)(edge.key)
        assert followed == truth
