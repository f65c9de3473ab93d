import socket
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from reverie.gpu_pool.wire.connection import Connection, SocketConnection, queue_pair
from reverie.gpu_pool.wire.errors import ConnectionClosedError

Ends = tuple[Connection[object, object], Connection[object, object]]


@pytest.fixture(params=["socket", "queue"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    here: Connection[object, object]
    there: Connection[object, object]
    if request.param == "queue":
        here, there = queue_pair()
    else:
        left, right = socket.socketpair()
        here, there = SocketConnection(left), SocketConnection(right)
    yield here, there
    here.close()
    there.close()


def in_thread(what: Callable[[], object]) -> Callable[[], object]:
    """Run `what` on a thread; the returned function waits for its result or error."""
    box: list[object] = []

    def run() -> None:
        try:
            box.append(what())
        except ConnectionClosedError as error:
            box.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> object:
        thread.join(10)
        assert not thread.is_alive(), "it is still blocked"
        return box[0]

    return result


def test_messages_arrive_in_order_and_those_sent_together_arrive_together(ends: Ends) -> None:
    here, there = ends
    here.send(1, 2)
    here.send("three")
    assert there.receive() == (1, 2)
    assert there.receive() == ("three",)


def test_both_directions_work(ends: Ends) -> None:
    here, there = ends
    here.send("ping")
    there.send("pong")
    assert there.receive() == ("ping",)
    assert here.receive() == ("pong",)


def test_a_message_larger_than_any_buffer_arrives_whole(ends: Ends) -> None:
    here, there = ends
    large = np.random.default_rng(0).integers(0, 255, 5_000_000, dtype=np.uint8).tobytes()
    sent = in_thread(lambda: here.send(large))
    assert there.receive() == (large,)
    sent()


def test_closing_this_end_wakes_a_thread_that_receives_on_it(ends: Ends) -> None:
    here, _ = ends
    received = in_thread(here.receive)
    here.close()
    assert isinstance(received(), ConnectionClosedError)


def test_closing_the_other_end_wakes_a_thread_that_receives(ends: Ends) -> None:
    here, there = ends
    received = in_thread(here.receive)
    there.close()
    assert isinstance(received(), ConnectionClosedError)


def test_what_was_sent_before_the_end_still_arrives(ends: Ends) -> None:
    here, there = ends
    there.send("last words")
    there.close()
    assert here.receive() == ("last words",)
    with pytest.raises(ConnectionClosedError):
        here.receive()


def test_a_closed_connection_refuses_to_send_and_to_receive(ends: Ends) -> None:
    here, there = ends
    here.close()
    here.close()
    for end in (here, there):
        with pytest.raises(ConnectionClosedError):
            end.send("hello")
        with pytest.raises(ConnectionClosedError):
            end.receive()


def test_a_sender_that_blocks_is_woken_by_the_end() -> None:
    left, right = socket.socketpair()
    here: SocketConnection[bytes, bytes] = SocketConnection(left)
    sent = in_thread(lambda: here.send(bytes(50_000_000)))
    right.close()
    assert isinstance(sent(), ConnectionClosedError)
    here.close()
