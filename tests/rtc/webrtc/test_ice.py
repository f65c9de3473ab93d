"""Servers that help, credentials that end, and candidates."""

import base64
import hashlib
import hmac

import pytest
from pydantic import SecretStr, ValidationError

from reverie.rtc.webrtc.ice import IceServers, parse_candidate
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.rtc.wire.errors import HttpRefusedError

TURN = WebRtcOptions(
    stun_urls=("stun:stun.example:3478",),
    turn_urls=("turn:turn.example:3478?transport=udp", "turns:turn.example"),
    turn_secret=SecretStr("shared"),
    turn_ttl_s=600,
)


def test_by_default_no_outside_server_is_used() -> None:
    servers = IceServers(WebRtcOptions())
    assert servers.open_to_all() == ()
    assert servers.for_user("me") == ()
    assert servers.configuration().iceServers == []


def test_turn_credentials_end_and_are_signed_with_the_shared_secret() -> None:
    _, turn = IceServers(TURN, now_s=lambda: 1000.5).for_user("abc")
    assert turn.username == "1600:abc"
    digest = hmac.new(b"shared", b"1600:abc", hashlib.sha1).digest()
    assert turn.credential == base64.b64encode(digest).decode()
    assert turn.as_json()["urls"] == list(TURN.turn_urls)
    link = turn.as_links()[0]
    assert link.startswith('<turn:turn.example:3478?transport=udp>; rel="ice-server"')
    assert 'username="1600:abc"' in link
    assert "shared" not in repr(TURN)


def test_a_client_without_a_session_gets_no_credentials() -> None:
    assert [each.username for each in IceServers(TURN).open_to_all()] == [None]


@pytest.mark.parametrize(
    "options",
    [
        {"turn_urls": ["turn:turn.example"]},
        {"relay_only": True},
        {"ports": [40000, 40000]},
        {"ports": [80, 90]},
        {"stun_urls": ["http://stun.example"]},
        {"stun_urls": ["stun:a b"]},
        {"min_bitrate": 2_000_000, "max_bitrate": 1_000_000},
        {"surprise": 1},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WebRtcOptions.model_validate(options)


def test_a_candidate_is_read_with_and_without_its_name() -> None:
    text = "candidate:1 1 udp 2113937151 192.0.2.1 54400 typ host"
    for each in (text, text.removeprefix("candidate:"), f"a={text}"):
        found = parse_candidate(each)
        assert found is not None
        assert (found.ip, found.port) == ("192.0.2.1", 54400)


@pytest.mark.parametrize(
    "text",
    [
        "candidate:1 1 udp 2113937151 1f4712db-ea17.local 54400 typ host",
        "candidate:1 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active",
        "candidate:1 2 udp 2113937151 192.0.2.1 54400 typ host",
        "candidate:1 1 udp 2113937151 example.com 54400 typ host",
        "candidate:1 1 udp 2113937151 192.0.2.1 0 typ host",
        "candidate:1 1 udp 99999999999 192.0.2.1 1 typ host",
    ],
)
def test_a_candidate_of_no_use_is_left_out(text: str) -> None:
    assert parse_candidate(text) is None


@pytest.mark.parametrize("text", ["x", "candidate:", "candidate:1 1 udp a b c d e", "a" * 600])
def test_what_is_no_candidate_is_refused(text: str) -> None:
    with pytest.raises(HttpRefusedError) as refused:
        parse_candidate(text)
    assert refused.value.code == "bad_candidate"
