"""A line between two network namespaces, with real packets."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from net_namespace import line_or_skip

from reverie.bench.line import (
    EmulatedLine,
    LineError,
    NetNamespace,
    NetNamespaceError,
    PathSettings,
)

PORT = 7007
LIMIT_S = 40.0


@contextmanager
def ends(line: EmulatedLine) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Open a UDP socket at each end: the far one sends to the near one, which can answer."""
    with line.near.entered():
        near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        near.bind((line.near_address, PORT))
    with line.far.entered():
        far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        far.bind((line.far_address, PORT))
    with near, far:
        near.connect((line.far_address, PORT))
        far.connect((line.near_address, PORT))
        near.settimeout(LIMIT_S)
        far.settimeout(LIMIT_S)
        far.send(b"who")  # both learn who the other one is, which costs a round trip of its own
        near.send(near.recv(100))
        far.recv(100)
        yield near, far


def took_s(sender: socket.socket, receiver: socket.socket) -> float:
    """Return the time of a packet from one end to the other."""
    begun_s = time.monotonic()
    sender.send(b"now")
    assert receiver.recv(100) == b"now"
    return time.monotonic() - begun_s


def fastest_s(sender: socket.socket, receiver: socket.socket) -> float:
    """Return the least of a few times, which other load on the machine does not lengthen."""
    return min(took_s(sender, receiver) for _ in range(5))


def arrived(sender: socket.socket, receiver: socket.socket, count: int) -> list[int]:
    """Return the numbers that arrived of so many packets."""
    for number in range(count):
        sender.send(number.to_bytes(4, "big"))
    receiver.settimeout(1.0)
    found = []
    while True:
        try:
            found.append(int.from_bytes(receiver.recv(100), "big"))
        except TimeoutError:
            receiver.settimeout(LIMIT_S)
            return found


def test_each_direction_has_its_own_delay() -> None:
    uplink = PathSettings(delay_ms=150)
    with line_or_skip(PathSettings(delay_ms=30), uplink=uplink) as line, ends(line) as (near, far):
        assert 0.03 <= fastest_s(near, far) < 0.15 <= fastest_s(far, near)


def test_a_change_in_the_middle_acts_at_once() -> None:
    with line_or_skip(PathSettings(delay_ms=10)) as line, ends(line) as (near, far):
        assert fastest_s(near, far) < 0.2
        line.change(delay_ms=200)
        assert took_s(near, far) >= 0.2
        assert took_s(far, near) >= 0.2
        line.downlink.change(delay_ms=0)
        assert fastest_s(near, far) < 0.2
        assert took_s(far, near) >= 0.2


def test_lost_packets_do_not_arrive_and_the_others_do() -> None:
    with line_or_skip() as line, ends(line) as (near, far):
        line.downlink.change(loss=0.5)
        before = line.downlink.counts
        found = arrived(near, far, 200)
        dropped = line.downlink.counts.dropped - before.dropped
        assert 60 <= len(found) <= 140
        assert len(found) == 200 - dropped
        assert arrived(far, near, 200) == list(range(200))


def test_nothing_arrives_at_a_loss_of_one_and_all_does_after_it() -> None:
    with line_or_skip() as line, ends(line) as (near, far):
        line.change(loss=1.0)
        assert arrived(near, far, 20) == []
        assert arrived(far, near, 20) == []
        line.change(loss=0.0)
        assert arrived(near, far, 20) == list(range(20))
        assert arrived(far, near, 20) == list(range(20))


def test_packets_overtake_each_other_when_asked_for() -> None:
    settings = PathSettings(delay_ms=50, jitter_ms=50, reorder=True)
    with line_or_skip(settings) as line, ends(line) as (near, far):
        found = arrived(near, far, 100)
        assert found != sorted(found) == list(range(100))


async def test_tcp_gets_its_bytes_through_loss_at_no_more_than_the_rate() -> None:
    amount = 100_000
    with line_or_skip(PathSettings(delay_ms=5, rate_kbit=2000)) as line:
        line.downlink.change(loss=0.02)
        with line.near.entered():
            listener = socket.create_server((line.near_address, PORT))
        with line.far.entered():
            client = socket.socket()
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(LIMIT_S):
            await loop.sock_connect(client, (line.near_address, PORT))
            served, _ = listener.accept()
            with listener, served, client:
                begun_s = time.monotonic()
                sending = asyncio.create_task(asyncio.to_thread(served.sendall, bytes(amount)))
                left = amount
                while left:
                    left -= len(await loop.sock_recv(client, left))
                took = time.monotonic() - begun_s
                await sending
        assert took >= 0.9 * amount * 8 / 2_000_000
        assert line.downlink.counts.carried_bytes > amount


def test_a_second_client_has_a_line_of_its_own_to_the_same_server() -> None:
    with (
        line_or_skip(PathSettings(delay_ms=150)) as line,
        line_or_skip(PathSettings(delay_ms=5), near=line.near, number=1) as second,
        ends(line) as (near, far),
        ends(second) as (second_near, second_far),
    ):
        assert fastest_s(near, far) >= 0.15
        assert fastest_s(second_near, second_far) < 0.15


def test_a_command_runs_at_the_far_end_and_reaches_the_near_one() -> None:
    with line_or_skip() as line:
        with line.near.entered():
            listener = socket.create_server((line.near_address, PORT))
        say = (
            "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])));"
            "s.sendall(b'here')"
        )
        with listener:
            command = [sys.executable, "-c", say, line.near_address, str(PORT)]
            subprocess.run(line.far.inside(command), check=True, timeout=LIMIT_S)
            served, (address, _) = listener.accept()
            with served:
                assert served.recv(100) == b"here"
                assert address == line.far_address


def test_nothing_is_left_of_a_line() -> None:
    with line_or_skip() as line:
        names = {line.near.name, line.far.name}
        assert names <= namespaces()
    assert not names & namespaces()


def namespaces() -> set[str]:
    """Return the names of all there are."""
    told = subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True)
    return {each.split()[0] for each in told.stdout.splitlines()}


def test_without_ip_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NetNamespaceError, match="there is no `ip`"), NetNamespace.made():
        pass
    with pytest.raises(LineError, match="a line needs root, `ip` and veth: there is no `ip`"):
        EmulatedLine.laid().__enter__()
