"""Offers that name other hosts: where this server looks for peers, and how often."""

import socket
import time
from collections.abc import Callable

import pytest
from fake_clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st
from rtc_peer import peer_client
from rtc_rig import server_rig
from sdp_offers import page_offer
from waiting import until

from reverie.rtc.options import ServerOptions
from reverie.rtc.webrtc.candidates import (
    CHECKS_AT_ONCE,
    CHECKS_PER_S,
    MOST_CANDIDATES,
    MOST_OF_HOST,
    CandidateFilter,
    CheckBudget,
    Reach,
)
from reverie.rtc.webrtc.ice import parse_candidate
from reverie.rtc.webrtc_options import WebRtcOptions

THIRD_HOST = "127.0.0.9"
CONNECT_S = 1.0


def budget(now_s: Callable[[], float] = time.monotonic) -> CheckBudget:
    return CheckBudget(now_s)


@pytest.mark.parametrize(
    ("host", "port", "asker", "own", "allowed"),
    [
        ("198.51.100.7", 50000, "198.51.100.7", [], True),
        ("198.51.100.7", 50000, "203.0.113.1", [], True),  # behind a NAT, or relayed
        ("198.51.100.7", 53, "198.51.100.7", [], False),
        ("224.0.0.251", 5353, "198.51.100.7", [], False),
        ("ff02::fb", 5353, "198.51.100.7", [], False),
        ("255.255.255.255", 50000, "198.51.100.7", [], False),
        ("0.0.0.0", 50000, "127.0.0.1", [], False),
        ("::", 50000, "127.0.0.1", [], False),
        ("::ffff:10.0.0.1", 50000, "127.0.0.1", ["10.0.0.2"], False),
        ("127.0.0.1", 50000, "127.0.0.1", [], True),
        ("127.0.0.1", 50000, "198.51.100.7", [], False),
        ("::1", 50000, "198.51.100.7", [], False),
        ("10.1.2.3", 50000, "10.9.9.9", ["10.0.0.2"], True),
        ("10.1.2.3", 50000, "198.51.100.7", ["10.0.0.2"], False),  # it asks from outside
        ("10.1.2.3", 50000, "10.9.9.9", ["192.168.0.2"], False),  # no network of ours
        ("192.168.1.1", 50000, "127.0.0.1", ["192.168.0.2"], True),
        ("169.254.169.254", 50000, "198.51.100.7", ["10.0.0.2"], False),
        ("fe80::1", 50000, "198.51.100.7", ["2001:db8::1"], False),
        ("fd00::1", 50000, "fd00::2", ["fd00::3"], True),
        ("2001:db8::7", 50000, "198.51.100.7", [], True),
        ("peer.local", 50000, "127.0.0.1", [], False),
    ],
)
def test_a_peer_may_be_where_its_client_could_reach_us_from(
    host: str, port: int, asker: str, own: list[str], allowed: bool
) -> None:
    assert Reach(asker, own, budget()).allows(host, port) is allowed


def line(host: str, port: int) -> str:
    return f"a=candidate:1 1 udp 2113937151 {host} {port} typ host\r\n"


def test_few_candidates_of_a_host_and_not_many_altogether_are_looked_at() -> None:
    candidates = CandidateFilter(Reach("127.0.0.1", [], budget()))
    taken = 0
    for host in range(10):
        for port in range(20):
            found = parse_candidate(line(f"198.51.100.{host}", 50000 + port))
            assert found is not None
            taken += candidates.takes(found)
        assert taken <= (host + 1) * MOST_OF_HOST
    assert taken == MOST_CANDIDATES
    again = parse_candidate(line("198.51.100.0", 50000))
    assert again is not None
    assert candidates.takes(again), "that one is looked at already"


def test_an_offer_loses_what_is_not_looked_at_and_may_still_be_found() -> None:
    named = page_offer() + line("198.51.100.1", 50000) + "a=end-of-candidates\r\n"
    whole = CandidateFilter(Reach("198.51.100.1", [], budget()))
    assert whole.applied(named) == named
    other = page_offer() + line("10.0.0.1", 50000) + "a=end-of-candidates\r\n"
    part = CandidateFilter(Reach("198.51.100.1", [], budget()))
    assert part.applied(other) == page_offer()


@given(st.lists(st.floats(0.0, 3.0), max_size=200))
def test_a_host_that_no_peer_came_from_is_sent_little(pauses_s: list[float]) -> None:
    clock = FakeClock()
    checks, sent, elapsed_s = budget(lambda: clock.now_us() / 1e6), 0, 0.0
    for pause_s in pauses_s:
        clock.advance(pause_s)
        elapsed_s += pause_s
        sent += sum(checks.may_check("198.51.100.1") for _ in range(50))
        assert sent <= CHECKS_AT_ONCE + CHECKS_PER_S * elapsed_s + 1
    assert checks.may_check("198.51.100.2"), "each host has its own"
    checks.confirm("198.51.100.1")
    assert all(checks.may_check("198.51.100.1") for _ in range(1000))


async def test_many_offers_with_candidates_of_a_third_host_are_no_flood_to_it() -> None:
    sinks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(60)]
    for sink in sinks:
        sink.bind((THIRD_HOST, 0))
        sink.setblocking(False)
    named = "".join(line(*sink.getsockname()) for sink in sinks)
    options = ServerOptions(rtc=WebRtcOptions(connect_timeout_s=CONNECT_S))
    async with server_rig(server=options) as rig:
        opened = await rig.open()
        began_s = time.monotonic()
        async with peer_client(rig.http, opened) as absent:
            sdp = await absent.unanswered()
            assert isinstance(sdp, str)
            plain = "".join(
                each for each in sdp.splitlines(keepends=True) if "candidate" not in each
            )
            for _ in range(10):
                assert (await absent.post(plain + named)).status_code == 201
        peers = rig.context.metrics.peers
        await until(lambda: peers._value.get() == 0)
        elapsed_s = time.monotonic() - began_s
    received = sum(count(sink) for sink in sinks)
    assert 0 < received <= CHECKS_AT_ONCE + CHECKS_PER_S * elapsed_s + 1


def count(sink: socket.socket) -> int:
    """Return how many datagrams wait at a socket, and close it."""
    found = 0
    with sink:
        while True:
            try:
                sink.recv(2048)
            except BlockingIOError:
                return found
            found += 1
