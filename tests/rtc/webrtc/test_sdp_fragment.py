"""The bodies of PATCH by WHIP and WHEP."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.rtc.webrtc.ice import IceEnd, parse_candidate
from reverie.rtc.webrtc.sdp_fragment import read_fragment, write_fragment
from reverie.rtc.wire.errors import HttpRefusedError

HOST = "a=candidate:1 1 udp 2113937151 192.0.2.1 54400 typ host\r\n"
TEXT = (
    f"a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\nm=audio 9 X 0\r\na=mid:0\r\n{HOST}"
)


def test_a_fragment_says_secrets_and_candidates() -> None:
    end = read_fragment(TEXT + "a=end-of-candidates\r\n")
    assert (end.ufrag, end.password) == ("EsAw", "P2uYro0UCOQ4zxjKXaWCBui1")
    assert [each.port for each in end.candidates] == [54400]


def test_candidates_may_come_alone() -> None:
    end = read_fragment(HOST)
    assert (end.ufrag, end.password) == ("", "")
    assert len(end.candidates) == 1


@pytest.mark.parametrize(
    "text",
    ["hello", "a=ice-ufrag:EsAw", "a=ice-ufrag:a\r\na=ice-ufrag:b\r\na=ice-pwd:c", "a=x\n" * 1001],
)
def test_what_is_no_fragment_is_refused(text: str) -> None:
    with pytest.raises(HttpRefusedError) as refused:
        read_fragment(text)
    assert refused.value.code == "bad_fragment"


def test_what_is_written_is_read_again() -> None:
    candidate = parse_candidate(HOST)
    assert candidate is not None
    end = IceEnd("abcd", "x" * 22, (candidate,))
    again = read_fragment(write_fragment(end, ("0", "1")))
    assert (again.ufrag, again.password, len(again.candidates)) == ("abcd", "x" * 22, 1)


@given(st.text())
def test_no_garbage_trips_the_reader(text: str) -> None:
    with suppress(HttpRefusedError):
        read_fragment(text)
