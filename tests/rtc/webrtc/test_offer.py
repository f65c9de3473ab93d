"""What is taken for an offer, and what is refused up front."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sdp_offers import offer, page_offer, section

from reverie.media import Codec
from reverie.rtc.webrtc.offer import MAX_SDP_CHARS, check_restart, read_offer
from reverie.rtc.wire.errors import HttpRefusedError


def test_a_page_offers_pictures_and_channels() -> None:
    read = read_offer(page_offer())
    video = read.first("video")
    assert video is not None
    assert video.codecs == (Codec.VP8, Codec.H264)
    assert video.wants
    assert not video.gives
    assert read.has_channels
    assert read.end.ufrag == "abcd"


def test_codecs_keep_the_order_of_the_peer() -> None:
    video = read_offer(page_offer("h264_high", "h264", "vp8")).first("video")
    assert video is not None
    assert video.codecs == (Codec.H264, Codec.VP8)


@pytest.mark.parametrize("codec", ["h265", "vp9", "h264_high", "h264_mode0"])
def test_what_this_server_cannot_send_is_no_codec(codec: str) -> None:
    video = read_offer(page_offer(codec)).first("video")
    assert video is not None
    assert video.codecs == ()


def test_candidates_that_are_names_are_left_out() -> None:
    named = "a=candidate:1 1 udp 2113937151 1f4712db.local 54400 typ host\r\n"
    plain = "a=candidate:2 1 udp 2113937151 192.0.2.1 54401 typ host\r\n"
    read = read_offer(page_offer() + named + plain)
    assert ".local" not in read.sdp
    assert "192.0.2.1" in read.sdp


@pytest.mark.parametrize(
    "sdp",
    [
        "",
        "hello",
        "v=0",
        "\x00\x01\x02",
        "m=video",
        "m=video 9 UDP/TLS/RTP/SAVPF",
        page_offer().replace("a=ice-ufrag:abcd\r\n", ""),
        page_offer().replace("a=ice-pwd:abcdefghijklmnopqrstuvwx\r\n", ""),
        page_offer().replace("a=rtcp-mux\r\n", ""),
        page_offer().replace("a=mid:0\r\n", ""),
        page_offer().replace("a=group:BUNDLE 0 1\r\n", ""),
        page_offer().replace("a=sctp-port:5000\r\n", ""),
        page_offer().replace("video 9", "film 9"),
        "\r\n".join(line for line in page_offer().splitlines() if "fingerprint" not in line),
        offer(*(section("video", str(mid), codecs=("vp8",)) for mid in range(17))),
        "a" * (MAX_SDP_CHARS + 1),
        page_offer() + "a=candidate:2 1 udp 2113937151 192.0.2.1 54401 typ host\r\n" * 101,
    ],
)
def test_an_offer_that_could_never_connect_is_refused(sdp: str) -> None:
    with pytest.raises(HttpRefusedError) as refused:
        read_offer(sdp)
    assert refused.value.code == "bad_offer"
    assert refused.value.field == "sdp"


LINES = page_offer().splitlines()


@settings(max_examples=300, deadline=None)
@given(
    lost=st.sets(st.integers(0, len(LINES) - 1), max_size=4),
    changed=st.dictionaries(
        st.integers(0, len(LINES) - 1),
        st.tuples(st.integers(0, 40), st.text(max_size=12)),
        max_size=4,
    ),
)
def test_no_garbage_trips_the_reader(lost: set[int], changed: dict[int, tuple[int, str]]) -> None:
    lines = list(LINES)
    for number, (at, text) in changed.items():
        lines[number] = lines[number][:at] + text + lines[number][at + 2 :]
    kept = [line for number, line in enumerate(lines) if number not in lost]
    with suppress(HttpRefusedError):
        read_offer("\r\n".join(kept))


def test_a_restart_changes_the_path_alone() -> None:
    before = read_offer(page_offer())
    check_restart(read_offer(page_offer().replace("abcd\r", "efgh\r")), before, "abcd")
    for other in (
        page_offer(),
        offer(section("video", "0", codecs=("vp8",))),
        page_offer().replace("abcd\r", "efgh\r").replace("A1:A1", "B2:A1"),
    ):
        with pytest.raises(HttpRefusedError):
            check_restart(read_offer(other), before, "abcd")
