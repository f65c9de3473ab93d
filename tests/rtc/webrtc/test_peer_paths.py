"""Paths between peers: trickled candidates, a restart of ICE, and lines that take little."""

import asyncio
import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from aiortc import RTCIceGatherer
from aiortc.rtp import RTCP_PSFB_APP, RtcpPsfbPacket, pack_remb_fci
from aiortc.sdp import SessionDescription, candidate_to_sdp
from net_namespace import CabledNamespace, namespace_or_skip
from pool_rig import open_files
from rtc_peer import PeerClient, peer_client, pixels, watching
from rtc_rig import ServerRig, server_rig
from sdp_offers import offer, page_offer, section
from stub_model import read_stamp
from waiting import until

from reverie.media import VideoSubscription
from reverie.media.video.rendition import Rendition
from reverie.rtc.options import ServerOptions
from reverie.rtc.webrtc.aiortc_seams import (
    ice_transport_of,
    own_addresses,
    path_of,
    route_through,
)
from reverie.rtc.webrtc.candidates import CheckBudget, Reach
from reverie.rtc.webrtc.ice_route import IceRoute
from reverie.rtc.webrtc_options import WebRtcOptions


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[CabledNamespace]:
    with namespace_or_skip() as namespace, namespace.entered():
        yield namespace


class RestartingClient:
    """A client of aiortc that can restart ICE, which aiortc cannot."""

    def __init__(self, client: PeerClient) -> None:
        self.client = client
        self.offer = client.connection.localDescription.sdp
        reach = Reach("127.0.0.1", own_addresses(), CheckBudget(time.monotonic))
        self.route = IceRoute(ice_transport_of(client.connection), "", reach)
        self.gatherer = RTCIceGatherer([])

    async def new_offer(self) -> str:
        """Return the first offer with a new end of the path."""
        await self.gatherer.gather()
        own = self.gatherer.getLocalParameters()
        description = SessionDescription.parse(self.offer)
        for media in description.media:
            assert media.ice is not None
            media.ice.usernameFragment, media.ice.password = own.usernameFragment, own.password
            media.ice_candidates = self.gatherer.getLocalCandidates()
        return str(description)

    async def take(self, answer: str) -> bool:
        """Go on by the path that an answer names."""
        media = SessionDescription.parse(answer).media[0]
        assert media.ice is not None
        path = path_of(self.gatherer)
        ufrag, password = media.ice.usernameFragment or "", media.ice.password or ""
        path.prepare(controlling=True, ufrag=ufrag, password=password)
        self.route._next = path
        for candidate in media.ice_candidates:
            await path.add_candidate(candidate)
        return await self.route.switch()


async def test_a_path_is_replaced_while_the_stream_continues(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened) as client:
        client.offer_video()
        client.open_channels()
        await client.connection.setLocalDescription(await client.connection.createOffer())
        restarting = RestartingClient(client)
        await client.connect()
        await client.shows(2)
        before = restarting.route._path.connection
        body = {"type": "offer", "sdp": await restarting.new_offer()}
        reply = await rig.http.patch(client.location, json=body, headers=client.authorization)
        assert reply.status_code == 200, reply.text
        answer = reply.json()
        assert answer["type"] == "answer"
        assert answer["sdp"] != client.answer["sdp"]
        assert await restarting.take(answer["sdp"])
        assert restarting.route._path.connection is not before
        shown = len(client.frames)
        await client.shows(shown + 5)
        accepted = await client.ask(type="release_all")
        assert accepted.type == "request.accepted"
        assert sum(chunk.dropped for chunk in client.chunks) == 0
        again = await rig.http.patch(client.location, json=body, headers=client.authorization)
        assert again.status_code == 400  # it is the path that is taken


async def test_a_restart_that_the_peer_ignores_leaves_the_old_path() -> None:
    options = ServerOptions(rtc=WebRtcOptions(connect_timeout_s=4.0))
    async with server_rig(server=options) as rig:
        opened = await rig.open()
        async with watching(rig.http, opened) as client:
            await client.shows(1)
            files = open_files()
            other = client.connection.localDescription.sdp
            ufrag = SessionDescription.parse(other).media[0].ice
            assert ufrag is not None
            assert ufrag.usernameFragment
            body = {"type": "offer", "sdp": other.replace(ufrag.usernameFragment, "nobody")}
            reply = await rig.http.patch(client.location, json=body, headers=client.authorization)
            assert reply.status_code == 200
            await until(lambda: open_files() <= files)
            failed = await client.hears("error")
            assert failed.code == "ice_failed"
            assert "turn_urls" in failed.message
            shown = len(client.frames)
            await client.shows(shown + 3)


async def test_a_peer_that_finds_no_path_can_ask_why_and_what_to_try() -> None:
    options = ServerOptions(rtc=WebRtcOptions(connect_timeout_s=0.5))
    async with server_rig(server=options) as rig:
        opened = await rig.open()
        headers = {"Authorization": f"Bearer {opened['token']}"}
        path = f"/v1/sessions/{opened['id']}/webrtc"
        body = {"type": "offer", "sdp": page_offer()}
        location = (await rig.http.post(path, json=body, headers=headers)).headers["location"]
        standing = (await rig.http.get(location, headers=headers)).json()
        assert (standing["id"], location.endswith(standing["id"])) == (standing["id"], True)
        assert standing["state"] in ("new", "connecting")
        await until(lambda: rig.context.metrics.peers._value.get() == 0)
        for method in ("GET", "PATCH", "DELETE"):
            told = await rig.http.request(method, location, headers=headers)
            error = told.json()["error"]
            assert (told.status_code, error["code"]) == (410, "connect_timeout")
            assert "server.rtc.turn_urls" in error["message"]
        other = await rig.open()
        foreign = location.replace(opened["id"], other["id"])
        lost = await rig.http.get(foreign, headers={"Authorization": f"Bearer {other['token']}"})
        assert (lost.status_code, lost.json()["error"]["code"]) == (404, "no_such_peer")


async def test_candidates_may_come_one_by_one(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened) as client:
        client.offer_video()
        client.open_channels()
        connection = client.connection
        await connection.setLocalDescription(await connection.createOffer())
        lines = connection.localDescription.sdp.splitlines(keepends=True)
        kept = [line for line in lines if "candidate" not in line]
        reply = await client.post("".join(kept))
        path, headers = reply.headers["location"], client.authorization
        own = ice_transport_of(connection).iceGatherer.getLocalCandidates()
        texts = [f"candidate:{candidate_to_sdp(each)}" for each in own]
        named = "candidate:9 1 udp 2113937151 1f4712db-ea17.local 54400 typ host"
        candidates = [
            {"candidate": text, "sdpMid": "0", "sdpMLineIndex": 0, "usernameFragment": "x"}
            for text in [*texts, named]
        ]
        for body, status in (
            ({"candidates": [*candidates, {"candidate": "", "sdpMid": "0"}]}, 204),
            ({"candidates": [{"candidate": "nonsense"}]}, 400),
            ({"candidates": candidates * 33}, 400),
            ({}, 400),
        ):
            patched = await rig.http.patch(path, json=body, headers=headers)
            assert patched.status_code == status, patched.text


async def test_the_pictures_keep_to_what_the_receiver_takes() -> None:
    options = ServerOptions(rtc=WebRtcOptions(min_bitrate=200_000, max_bitrate=1_000_000))
    async with server_rig(server=options) as rig:
        opened = await rig.open()
        (video,) = rig.store.get(opened["id"])._context.outputs.videos
        async with watching(rig.http, opened) as client:
            await client.shows(2)
            (rendition,) = video.fanout._renditions.values()
            (subscription,) = rendition.subscriptions
            assert rendition._limit == 1_000_000  # while nothing is reported
            for reported, kept in ((400_000, 400_000), (50_000, 200_000), (10**8, 1_000_000)):
                await report(client, reported)
                await until(partial(is_wished, rendition, subscription, kept))
                await until(partial(is_kept, rendition, kept))
                await client.shows(len(client.frames) + 2)


def is_wished(rendition: Rendition, subscription: VideoSubscription, bits_per_s: int) -> bool:
    return rendition._limits.get(subscription) == bits_per_s


def is_kept(rendition: Rendition, bits_per_s: int) -> bool:
    return rendition._limit == bits_per_s


async def report(client: PeerClient, bits_per_s: int) -> None:
    """Have the client report what it can take, as Chromium does."""
    (receiver,) = client.connection.getReceivers()
    (source,) = receiver.getSynchronizationSources()
    fci = pack_remb_fci(bits_per_s, [source.source])
    packet = RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci)
    await receiver._send_rtcp(packet)


@pytest.mark.parametrize(
    ("sdp", "status", "code"),
    [
        ("", 400, "bad_offer"),
        ("hello", 400, "bad_offer"),
        (None, 400, "wrong_type"),
        (7, 400, "wrong_type"),
        ("x" * 1_100_000, 413, "too_large"),
        ("x" * 900_000, 413, "bad_offer"),
        (offer(section("audio", "0"), section("application", "1")), 400, "no_video"),
        (offer(section("application", "0")), 400, "no_video"),
        (offer(section("video", "0", codecs=("vp8",))), 400, "no_events"),
        (
            offer(section("video", "0", "sendonly", codecs=("vp8",)), section("application", "1")),
            400,
            "no_video",
        ),
        (page_offer("h265"), 406, "no_common_codec"),
    ],
)
async def test_c02_what_cannot_be_answered_is_refused(
    sdp: object, status: int, code: str, rig: ServerRig
) -> None:
    opened = await rig.open()
    files = open_files()
    path = f"/v1/sessions/{opened['id']}/webrtc"
    headers = {"Authorization": f"Bearer {opened['token']}"}
    reply = await rig.http.post(path, json={"type": "offer", "sdp": sdp}, headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert rig.context.metrics.peers._value.get() == 0
    await until(lambda: open_files() <= files)


async def test_c02_a_second_picture_is_answered_and_not_sent(rig: ServerRig) -> None:
    opened = await rig.open()
    sdp = offer(
        section("video", "0", codecs=("h265", "vp8")),
        section("video", "1", codecs=("vp8",)),
        section("application", "2"),
    )
    path = f"/v1/sessions/{opened['id']}/webrtc"
    headers = {"Authorization": f"Bearer {opened['token']}"}
    reply = await rig.http.post(path, json={"type": "offer", "sdp": sdp}, headers=headers)
    assert reply.status_code == 201
    assert reply.json()["codec"] == "vp8"
    assert "a=inactive" in reply.json()["sdp"]


async def test_tokens_say_who_may_do_what(rig: ServerRig) -> None:
    opened = await rig.open()
    other = await rig.open()
    path = f"/v1/sessions/{opened['id']}/webrtc"
    watcher = {"Authorization": f"Bearer {opened['watch_token']}"}
    body = {"type": "offer", "sdp": page_offer()}
    refusals: list[tuple[dict[str, str], dict[str, Any], int, str]] = [
        ({}, {}, 401, "unauthorized"),
        (watcher, {}, 403, "read_only"),
        ({"Authorization": f"Bearer {other['token']}"}, {}, 404, "no_such_session"),
        (watcher, {"role": "owner"}, 400, "out_of_range"),
        (watcher, {"type": "answer"}, 400, "out_of_range"),
        (watcher, {"colour": 1}, 400, "unknown_field"),
    ]
    for headers, more, status, code in refusals:
        reply = await rig.http.post(path, json=body | more, headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    viewer = await rig.http.post(path, json=body | {"role": "viewer"}, headers=watcher)
    assert viewer.status_code == 201
    driver = await rig.http.post(
        path, json=body, headers={"Authorization": f"Bearer {opened['token']}"}
    )
    for method in ("DELETE", "PATCH"):
        location = driver.headers["location"]
        refused = await rig.http.request(method, location, headers=watcher)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "read_only")
        foreign = location.replace(opened["id"], other["id"])
        headers = {"Authorization": f"Bearer {other['token']}"}
        lost = await rig.http.request(method, foreign, headers=headers)
        assert (lost.status_code, lost.json()["error"]["code"]) == (404, "no_such_peer")
    text = await rig.http.post(path, content="v=0", headers=watcher)
    assert (text.status_code, text.json()["error"]["code"]) == (415, "not_json")


async def test_ice_servers_come_with_credentials_for_a_session() -> None:
    rtc = WebRtcOptions.model_validate(
        {"stun_urls": ["stun:192.0.2.1"], "turn_urls": ["turn:192.0.2.1"], "turn_secret": "s"}
    )
    async with server_rig(server=ServerOptions(rtc=rtc)) as rig:
        opened = await rig.open()
        told = (await rig.http.get("/v1/ice")).json()
        assert told == {"ice_servers": [{"urls": ["stun:192.0.2.1"]}], "relay_only": False}
        path = f"/v1/ice?session={opened['id']}"
        assert (await rig.http.get(path)).status_code == 401
        headers = {"Authorization": f"Bearer {opened['watch_token']}"}
        servers = (await rig.http.get(path, headers=headers)).json()["ice_servers"]
        assert servers[1]["urls"] == ["turn:192.0.2.1"]
        assert servers[1]["username"].endswith(f":{opened['id']}")
        assert servers[1]["credential"]


async def test_switched_off_there_is_none() -> None:
    async with server_rig(server=ServerOptions(rtc=WebRtcOptions(enabled=False))) as rig:
        opened = await rig.open()
        headers = {"Authorization": f"Bearer {opened['token']}"}
        path = f"/v1/sessions/{opened['id']}/webrtc"
        body = {"type": "offer", "sdp": page_offer()}
        reply = await rig.http.post(path, json=body, headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "no_webrtc")


async def test_a_connection_that_fails_to_answer_leaves_no_file(rig: ServerRig) -> None:
    opened = await rig.open()
    headers = {"Authorization": f"Bearer {opened['token']}"}
    path = f"/v1/sessions/{opened['id']}/webrtc"
    before = open_files()
    fine = page_offer("h264", "vp8")
    odd = [
        fine.replace("a=setup:actpass", "a=setup:nonsense"),
        fine.replace("sha-256", "md5"),
        fine.replace("webrtc-datachannel", "x"),
        fine.replace("H264/90000", "H264"),
        fine.replace("packetization-mode=1", "packetization-mode=x"),
        fine.replace("42e01f", "zzzzzz"),
        fine.replace("a=mid:1", "a=mid:0"),
        fine.replace("a=mid:1", "a=mid:\x00"),
        fine.replace("9 UDP/TLS", "0 UDP/TLS"),
        fine.replace("abcdefghijklmnopqrstuvwx", "\N{SNOWMAN}" * 8),
    ]
    for sdp in odd:
        reply = await rig.http.post(path, json={"type": "offer", "sdp": sdp}, headers=headers)
        assert reply.status_code in (201, 400, 406), reply.text
        if reply.status_code == 201:
            await rig.http.delete(reply.headers["location"], headers=headers)
    await until(lambda: rig.context.metrics.peers._value.get() == 0)
    await until(lambda: open_files() <= before)


async def test_forty_peers_leave_nothing_behind(rig: ServerRig) -> None:
    opened = await rig.open()
    headers = {"Authorization": f"Bearer {opened['token']}"}
    path = f"/v1/sessions/{opened['id']}/webrtc"
    before, tasks = open_files(), len(asyncio.all_tasks())
    for _ in range(10):
        replies = [
            await rig.http.post(path, json={"type": "offer", "sdp": page_offer()}, headers=headers)
            for _ in range(4)
        ]
        for reply in replies:
            await rig.http.delete(reply.headers["location"], headers=headers)
        await until(lambda: rig.context.metrics.peers._value.get() == 0)
    await until(lambda: open_files() <= before)
    await until(lambda: len(asyncio.all_tasks()) <= tasks + 1)


async def test_c41_a_line_that_loses_packets_shows_whole_pictures_again(rig: ServerRig) -> None:
    opened = await rig.open()
    chance = random.Random(1)
    lossy = True
    async with peer_client(rig.http, opened) as client:
        client.offer_video()
        client.open_channels()
        await client.connection.setLocalDescription(await client.connection.createOffer())
        transport = ice_transport_of(client.connection)
        path = path_of(transport)

        async def receive() -> bytes:
            while True:
                data = await path.recv()
                # aiortc asks once for what it misses, so only what comes first gets lost
                is_first = 127 < data[0] < 192 and data[1] & 0x7F == payload_type
                if not (lossy and is_first and len(client.frames) > 2 and chance.random() < 0.3):
                    return data

        route_through(transport, receive, path.send)
        payload_type = int(client.connection.localDescription.sdp.split("SAVPF ")[1].split()[0])
        await client.connect()
        await client.until(lambda: len(client.chunks) > 36)
        lossy = False
        newest = client.chunks[-1]
        await client.until(lambda: (client.frames[-1].pts or 0) >= client.ticks(newest))
        assert read_stamp(pixels(client.frames[-1])).chunk >= newest.chunk


async def test_c41_a_flood_of_requests_makes_few_key_frames(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(2)
        (receiver,) = client.connection.getReceivers()
        (source,) = receiver.getSynchronizationSources()
        at = len(client.chunks)
        while len(client.chunks) < at + 40:
            await receiver._send_rtcp_pli(source.source)
            await asyncio.sleep(0.01)
        flooded = client.chunks[at : at + 40]
        shown_s = (flooded[-1].pts_us - flooded[0].pts_us) / 1e6
        passed_s = (flooded[-1].time_us - flooded[0].time_us) / 1e6
        # four a second of the stream, and one a second while it is paused
        assert 1 <= sum(chunk.key for chunk in flooded) <= 4 * shown_s + 2 * passed_s + 2


async def test_c41_a_late_viewer_gets_a_picture_at_once(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as driver:
        await driver.shows(10)
        await driver.ask(type="pause")
        token = opened["watch_token"]
        async with watching(rig.http, opened, token=token, role="viewer") as viewer:
            chunk = await viewer.hears("media.chunk")  # though nothing new is made
            assert chunk.key
            assert chunk.index == 0
