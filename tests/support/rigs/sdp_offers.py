"""Offers as browsers write them, with what a test wants to be odd about them."""

FINGERPRINT = ":".join(["A1"] * 32)
CODECS = {
    "vp8": ("VP8/90000", ""),
    "h264": ("H264/90000", "packetization-mode=1;profile-level-id=42e01f"),
    "h264_high": ("H264/90000", "packetization-mode=1;profile-level-id=64001f"),
    "h264_mode0": ("H264/90000", "packetization-mode=0;profile-level-id=42e01f"),
    "h265": ("H265/90000", ""),
    "vp9": ("VP9/90000", ""),
}


def section(kind: str, mid: str, direction: str = "recvonly", codecs: tuple[str, ...] = ()) -> str:
    """Return one section."""
    common = [
        "c=IN IP4 0.0.0.0",
        "a=ice-ufrag:abcd",
        "a=ice-pwd:abcdefghijklmnopqrstuvwx",
        "a=ice-options:trickle",
        f"a=fingerprint:sha-256 {FINGERPRINT}",
        "a=setup:actpass",
        f"a=mid:{mid}",
    ]
    if kind == "application":
        lines = ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel", *common, "a=sctp-port:5000"]
        return "".join(f"{line}\r\n" for line in [*lines, "a=max-message-size:262144"])
    if kind == "audio":
        lines = ["m=audio 9 UDP/TLS/RTP/SAVPF 111", *common, f"a={direction}", "a=rtcp-mux"]
        return "".join(f"{line}\r\n" for line in [*lines, "a=rtpmap:111 opus/48000/2"])
    numbers = range(96, 96 + len(codecs))
    lines = [f"m=video 9 UDP/TLS/RTP/SAVPF {' '.join(map(str, numbers))}", *common]
    lines += [f"a={direction}", "a=rtcp-mux"]
    for number, codec in zip(numbers, codecs, strict=True):
        name, parameters = CODECS[codec]
        lines += [f"a=rtpmap:{number} {name}", f"a=rtcp-fb:{number} nack pli"]
        lines += [f"a=fmtp:{number} {parameters}"] if parameters else []
    return "".join(f"{line}\r\n" for line in lines)


def offer(*sections: str) -> str:
    """Return an offer of sections whose mids are 0, 1, ..."""
    mids = " ".join(str(number) for number in range(len(sections)))
    head = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", f"a=group:BUNDLE {mids}"]
    return "".join(f"{line}\r\n" for line in head) + "".join(sections)


def page_offer(*codecs: str) -> str:
    """Return what the page offers."""
    wanted = codecs or ("vp8", "h264")
    return offer(section("video", "0", codecs=wanted), section("application", "1"))
