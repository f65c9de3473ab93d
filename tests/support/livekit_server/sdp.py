"""What of a session description aiortc does not tell, and what libwebrtc wants to be told."""


def sent_tracks(sdp: str) -> dict[str, str]:
    """Return the client's track id of each section of an offer that sends, by its mid.

    The ids come from `a=msid` lines; aiortc finds none, for LiveKit's clients name no stream.
    """
    found: dict[str, str] = {}
    for section in sdp.split("\nm=")[1:]:
        lines = [line.strip() for line in section.splitlines()]
        if "a=recvonly" in lines or "a=inactive" in lines:
            continue
        values = dict(line[2:].split(":", 1) for line in lines if line[:2] == "a=" and ":" in line)
        if "mid" in values and " " in values.get("msid", ""):
            found[values["mid"]] = values["msid"].split()[1]
    return found


def started_at(sdp: str, rate_kbps: int) -> str:
    """Let the client's encoder start at a bit rate.

    At the 300 kbit/s that it starts with by itself, it shrinks larger pictures for many seconds.
    """
    lines: list[str] = []
    for line in sdp.splitlines():
        lines.append(line)
        if line.startswith("a=rtpmap:") and " VP8/90000" in line:
            payload = line.removeprefix("a=rtpmap:").split()[0]
            lines.append(f"a=fmtp:{payload} x-google-start-bitrate={rate_kbps}")
    return "\r\n".join(lines) + "\r\n"
