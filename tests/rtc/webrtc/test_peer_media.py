"""Sound out, cameras and microphones in, and the standard ways in and out, over WebRTC."""

from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
import sounding_model
from aiortc import RTCSessionDescription
from listening import pitch_hz
from net_namespace import CabledNamespace, namespace_or_skip
from PIL import Image
from rtc_peer import PeerClient, peer_client, pixels
from rtc_rig import ServerRig, server_rig
from rtc_sources import Camera, Microphone, plain
from waiting import until

from reverie.rtc.wire.framing import encode_command
from reverie.sessions.protocol.commands import PushMedia

ECHO = "reverie.models.echo:Echo"
SIZES = ((640, 480), (320, 240), (480, 640), (641, 481))


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[CabledNamespace]:
    with namespace_or_skip() as namespace, namespace.entered():
        yield namespace


def heard(client: PeerClient) -> np.ndarray:
    """Return one channel of what was heard."""
    pieces = [frame.to_ndarray().reshape(-1, 2)[:, 0] for frame in client.sound]
    return np.concatenate(pieces).astype(np.float32)


async def test_sound_comes_as_opus_next_to_the_pictures() -> None:
    async with server_rig(family=sounding_model.LOCATION) as rig:
        opened = await rig.open(parameters={"hz": 600.0})
        async with peer_client(rig.http, opened) as client:
            client.offer_video()
            client.offer_sound()
            client.open_channels()
            await client.connect()
            await client.until(lambda: len(client.sound) >= 60)
            await client.shows(10)
            inits = [event for event in client.events if event.type == "media.init"]
            assert {(init.kind, init.codec, init.container) for init in inits} == {
                ("video", "vp8", "rtp"),
                ("audio", "opus", "rtp"),
            }
            chunks = [chunk for chunk in client.chunks if chunk.stream == "sound"]
            steps = [
                ((after.rtp_timestamp or 0) - (before.rtp_timestamp or 0)) % 2**32
                for before, after in pairwise(chunks)
            ]
            assert abs(np.median(steps) - 960) <= 1
            assert abs(pitch_hz(heard(client)[9600:48_000], 48_000) - 600.0) < 2.0


async def test_c33_a_camera_may_change_its_size_and_comes_out_in_one() -> None:
    async with server_rig(family=ECHO) as rig:
        opened = await rig.open(program="echo")

        def picture(number: int) -> np.ndarray:
            return plain(SIZES[number // 15 % len(SIZES)], (200, 60, 40))

        async with peer_client(rig.http, opened) as client:
            client.offer_video()
            client.offer_own(Camera(picture))
            client.open_channels()
            await client.connect()
            await client.shows(50)
            sizes = {(frame.width, frame.height) for frame in client.frames}
            assert sizes == {(256, 256)}
            shown = client.frames[-1].to_ndarray(format="rgb24")
            middle = shown[100:156, 100:156].mean(axis=(0, 1))
            assert np.abs(middle - (200, 60, 40)).max() < 25
            errors = [event for event in client.events if event.type == "error"]
            assert errors == []


async def test_a_microphone_comes_out_again() -> None:
    async with server_rig(family=ECHO) as rig:
        opened = await rig.open(program="echo")
        async with peer_client(rig.http, opened) as client:
            client.offer_video()
            client.offer_sound()
            client.offer_own(Microphone(800.0))
            client.open_channels()
            await client.connect()
            await client.until(lambda: len(client.sound) >= 80)
            assert abs(pitch_hz(heard(client)[-38_400:], 48_000) - 800.0) < 4.0


async def test_a_picture_may_be_pushed_over_the_channel() -> None:
    async with server_rig(family=ECHO) as rig:
        opened = await rig.open(program="echo")
        packed = BytesIO()
        Image.fromarray(plain((300, 200), (30, 60, 190))).save(packed, "JPEG", quality=95)
        push = PushMedia(id="p1", type="push_media", stream="clip", codec="jpeg", last=True)
        async with peer_client(rig.http, opened) as client:
            client.offer_video()
            client.open_channels()
            await client.connect()
            assert client.channel is not None
            for number in range(3):  # aiortc keeps the last one back
                named = push.model_copy(update={"id": f"p{number}", "data": packed.getvalue()})
                client.channel.send(encode_command(named))
            await client.shows(1)
            assert (await client.hears("request.accepted")).command == "p0"
            middle = pixels(client.frames[0])[100:156, 100:156].mean(axis=(0, 1))
            assert np.abs(middle - (30, 60, 190)).max() < 25


async def test_c10_what_the_program_does_not_take_is_not_asked_for(rig: ServerRig) -> None:
    opened = await rig.open()
    camera = Camera(lambda _: plain((320, 240), (0, 0, 0)))
    async with peer_client(rig.http, opened) as client:
        client.offer_video()
        client.offer_own(camera)
        client.offer_own(Microphone(440.0))
        client.open_channels()
        await client.connect()
        await client.shows(2)
        directions = [line for line in client.answer["sdp"].splitlines() if line[2:] in DIRECTIONS]
        assert directions == ["a=sendonly", "a=inactive", "a=inactive"]
        assert camera.count == 0


DIRECTIONS = ("sendonly", "recvonly", "sendrecv", "inactive")


class Standard:
    """What a WHIP or WHEP tool does."""

    def __init__(
        self, rig: ServerRig, opened: dict[str, str], kind: str, client: PeerClient
    ) -> None:
        self.path = f"/v1/sessions/{opened['id']}/{kind}"
        self.rig = rig
        self.client = client

    async def post(self, **headers: str) -> object:
        connection = self.client.connection
        await connection.setLocalDescription(await connection.createOffer())
        reply = await self.rig.http.post(
            self.path,
            content=connection.localDescription.sdp,
            headers={"content-type": "application/sdp", **self.client.authorization, **headers},
        )
        assert reply.status_code == 201, reply.text
        await connection.setRemoteDescription(RTCSessionDescription(reply.text, "answer"))
        return reply


async def test_a_standard_tool_watches_by_whep(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened, opened["watch_token"]) as client:
        client.offer_video("h264")
        client.offer_sound()
        tool = Standard(rig, opened, "whep", client)
        reply = await tool.post()
        assert reply.headers["content-type"] == "application/sdp"  # type: ignore[attr-defined]
        location = reply.headers["location"]  # type: ignore[attr-defined]
        etag = reply.headers["etag"]  # type: ignore[attr-defined]
        assert reply.text.count("a=sendonly") == 1  # type: ignore[attr-defined]
        assert reply.text.count("a=inactive") == 1, "there is no sound"  # type: ignore[attr-defined]
        await client.shows(30)  # so that what it was sent counts as seen, or the world would stop
        fragment = {"content-type": "application/trickle-ice-sdpfrag", **client.authorization}
        candidate = "a=candidate:1 1 udp 2113937151 192.0.2.1 54400 typ host\r\n"
        for condition, status in ((None, 428), ('"other"', 412), (etag, 204)):
            headers = fragment | ({"if-match": condition} if condition else {})
            patched = await rig.http.patch(location, content=candidate, headers=headers)
            assert patched.status_code == status, patched.text
        assert "etag" not in patched.headers
        wrong = await rig.http.patch(
            location, content="{}", headers={**client.authorization, "if-match": etag}
        )
        assert wrong.status_code == 415
        options = await rig.http.options(tool.path)
        assert (options.status_code, options.headers["accept-post"]) == (200, "application/sdp")
        for method in ("GET", "PUT"):
            assert (await rig.http.request(method, tool.path)).status_code == 405
        deleted = await rig.http.delete(location, headers=client.authorization)
        assert deleted.status_code == 200
        await client.closed()


async def test_a_standard_tool_feeds_a_camera_by_whip() -> None:
    async with server_rig(family=ECHO) as rig:
        opened = await rig.open(program="echo")
        async with (
            peer_client(rig.http, opened, opened["watch_token"]) as viewer,
            peer_client(rig.http, opened) as feeder,
        ):
            viewer.offer_video()
            await Standard(rig, opened, "whep", viewer).post()
            feeder.offer_own(Camera(lambda _: plain((320, 240), (30, 160, 90))))
            reply = await Standard(rig, opened, "whip", feeder).post()
            assert "a=recvonly" in reply.text  # type: ignore[attr-defined]
            await viewer.shows(3)
            middle = (
                viewer.frames[-1].to_ndarray(format="rgb24")[100:156, 100:156].mean(axis=(0, 1))
            )
            assert np.abs(middle - (30, 160, 90)).max() < 25
            location = reply.headers["location"]  # type: ignore[attr-defined]
            watcher = {"Authorization": f"Bearer {opened['watch_token']}"}
            assert (await rig.http.delete(location, headers=watcher)).status_code == 403
            assert (await rig.http.delete(location, headers=feeder.authorization)).is_success
            await feeder.closed()
        await until(lambda: rig.context.metrics.peers._value.get() == 0)


async def test_a_standard_tool_is_sent_sound_where_there_is_some() -> None:
    async with server_rig(family=sounding_model.LOCATION) as rig:
        opened = await rig.open()
        async with peer_client(rig.http, opened, opened["watch_token"]) as client:
            client.offer_video()
            client.offer_sound()
            reply = await Standard(rig, opened, "whep", client).post()
            assert reply.text.count("a=sendonly") == 2  # type: ignore[attr-defined]


async def test_feeding_what_takes_nothing_is_refused(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened) as client:
        client.offer_own(Camera(lambda _: plain((320, 240), (0, 0, 0))))
        await client.connection.setLocalDescription(await client.connection.createOffer())
        sdp = client.connection.localDescription.sdp
        path = f"/v1/sessions/{opened['id']}/whip"
        kind = {"content-type": "application/sdp"}
        for headers, content, status, code in (
            (client.authorization | kind, sdp, 406, "no_inputs"),
            (kind, sdp, 401, "unauthorized"),
            (kind | {"Authorization": f"Bearer {opened['watch_token']}"}, sdp, 403, "read_only"),
            (kind | {"Authorization": "Bearer nobody"}, sdp, 404, "no_such_session"),
            (client.authorization, "{}", 415, "wrong_media_type"),
            (client.authorization | kind, "hello", 400, "bad_offer"),
        ):
            reply = await rig.http.post(path, content=content, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
        watching = f"/v1/sessions/{opened['id']}/whep"
        reply = await rig.http.post(watching, content=sdp, headers=client.authorization | kind)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_offer")
