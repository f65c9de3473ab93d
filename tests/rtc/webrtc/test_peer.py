"""The same session over WebRTC, with aiortc at the other end, in a network of its own."""

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from net_namespace import CabledNamespace, namespace_or_skip
from rtc_peer import LIMIT_S, PeerClient, peer_client, watching
from rtc_rig import ServerRig, server_rig
from stub_model import read_stamp
from waiting import until

from reverie.rtc.options import ServerOptions
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.sessions.protocol.events import ControlApplied, Error
from reverie.sessions.protocol.media_events import MediaChunk


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[CabledNamespace]:
    with namespace_or_skip() as namespace, namespace.entered():
        yield namespace


def quick(**changes: object) -> ServerOptions:
    return ServerOptions(rtc=WebRtcOptions.model_validate(changes))


@pytest.mark.parametrize("codec", ["vp8", "h264"])
async def test_pictures_events_and_receipts_name_one_frame(codec: str, rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened, codec=codec) as client:
        attached = await client.hears("session.attached")
        assert attached.role == "driver"
        assert client.events[0] is attached
        init = await client.hears("media.init")
        assert init.container == "rtp"
        assert init.codec == ("vp8" if codec == "vp8" else "avc1.42c01f")
        if codec == "h264":  # what the answer says is what the stream says
            assert "profile-level-id=42c01f" in client.answer["sdp"]
        assert client.answer["codec"] == codec
        command = client.say(type="push_action", action={"move": "left"}, edge="press")
        applied = await client.applied(command)
        showing = await client.hear(
            lambda event: isinstance(event, MediaChunk) and event.pts_us >= applied.pts_us
        )
        assert isinstance(showing, MediaChunk)
        await client.until(lambda: showing.rtp_timestamp in client.rtp_times)
        stamp = read_stamp(client.picture(showing))
        assert "left" in stamp.held
        before = client.chunks[client.chunks.index(showing) - 1]
        assert "left" not in read_stamp(client.picture(before)).held


async def test_an_answer_comes_at_once_and_names_the_server(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened) as client:
        sdp = str(await client.unanswered())
        named = "a=candidate:9 1 udp 2113937151 1f4712db-ea17.local 54400 typ host\r\n"
        async with asyncio.timeout(LIMIT_S):
            reply = await client.post(sdp.replace("a=end-of-candidates\r\n", "") + named)
        assert reply.status_code == 201
        assert "typ host" in reply.json()["sdp"]
        assert reply.headers["location"].startswith(f"/v1/sessions/{opened['id']}/webrtc/")


async def test_two_viewers_share_one_encoding(rig: ServerRig) -> None:
    opened = await rig.open()
    video = rig.store.get(opened["id"])._context.outputs.videos[0]
    async with (
        watching(rig.http, opened) as driver,
        watching(rig.http, opened, token=opened["watch_token"], role="viewer") as viewer,
    ):
        await driver.shows(2)
        await viewer.shows(2)
        assert len(video.fanout._renditions) == 1
        assert video.fanout.watchers == 2
        refused = await viewer.ask(type="push_text", text="x")
        assert isinstance(refused, Error)
        shared = {chunk.pts_us for chunk in driver.chunks} & {
            chunk.pts_us for chunk in viewer.chunks
        }
        assert shared


async def test_actions_come_by_their_own_channel_and_are_answered_when_wrong(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.hears("media.chunk")
        assert client.actions is not None
        await client.until(lambda: client.actions.readyState == "open")  # type: ignore[union-attr]
        for number in range(20):  # some may be lost, by design
            action = {"id": f"a{number}", "type": "push_action", "action": {"move": "up"}}
            client.actions.send(json.dumps(action))
        applied = await client.hear(lambda event: isinstance(event, ControlApplied))
        assert isinstance(applied, ControlApplied)
        assert applied.control.startswith("a")
        client.actions.send("{}")
        error = await client.hears("error")
        assert error.code == "missing"
        answered = [event for event in client.events if event.type == "request.accepted"]
        assert answered == []


async def test_odd_messages_are_answered_as_on_a_websocket(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        assert client.channel is not None
        for message, code in (
            ("hello", "not_json"),
            ('{"type": "dance", "id": "d1"}', "unknown_command"),
            ('{"type": "pause", "id": "p1", "n": 1e999}', "non_finite"),
        ):
            client.channel.send(message)
            error = await client.hears("error")
            assert error.code == code
        await client.hears("media.chunk")


async def test_a_key_frame_comes_when_it_is_asked_for(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(3)
        (receiver,) = client.connection.getReceivers()
        heard = len(client.chunks)
        (ssrc,) = receiver.getSynchronizationSources()[:1]
        await receiver._send_rtcp_pli(ssrc.source)
        await until(lambda: rig.context.metrics.key_requests._value.get() >= 1)
        await client.until(lambda: any(chunk.key for chunk in client.chunks[heard:]))


async def test_a_key_frame_is_sent_while_nothing_is_generated(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(2)
        await client.ask(type="pause")
        await asyncio.sleep(0.5)  # until what was on its way has come: nothing says so
        (receiver,) = client.connection.getReceivers()
        (ssrc,) = receiver.getSynchronizationSources()[:1]
        heard = len(client.chunks)
        await receiver._send_rtcp_pli(ssrc.source)
        await client.until(lambda: len(client.chunks) > heard)
        again = client.chunks[heard]
        assert again.key
        times = [chunk.rtp_timestamp or 0 for chunk in client.chunks]
        grown = [(after - before) % 2**32 for before, after in pairwise(times)]
        assert all(0 < each < 2**31 for each in grown)


async def test_after_an_interrupt_rtp_time_increases_while_media_time_goes_back(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(3)
        client.sees = False
        client.say(type="interrupt")
        cut = await client.hears("session.interrupted")
        client.sees = True
        chunk = await client.hears("media.chunk")
        assert chunk.pts_us == cut.next_us
        await client.until(lambda: chunk.rtp_timestamp in client.rtp_times)
        shown = [frame.pts or 0 for frame in client.frames]
        assert shown == sorted(set(shown))


async def test_a_silent_peer_is_closed_and_the_session_waits() -> None:
    async with server_rig(server=quick(heartbeat_s=3.0)) as rig:
        opened = await rig.open()
        async with watching(rig.http, opened) as client:
            await client.shows(1)
            await client.until(lambda: any(each["type"] == "pong" for each in client.other))
            client.pings = client.sees = False
            bye = await client.bye()
            assert (bye["code"], bye["reason"]) == (4408, "heartbeat")
            await client.closed()
        assert rig.store.get(opened["id"]).view.state in ("active", "detached", "paused")
        async with watching(rig.http, opened) as again:
            await again.shows(1)


async def test_a_new_driver_replaces_the_one_before_once_it_is_connected(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as first:
        await first.shows(1)
        async with peer_client(rig.http, opened) as absent:
            absent.offer_video()
            absent.open_channels()
            await absent.connection.setLocalDescription(await absent.connection.createOffer())
            reply = await absent.post(absent.connection.localDescription.sdp)
            assert reply.status_code == 201
            seen = len(first.frames)
            await first.shows(seen + 2)  # an offer alone changes nothing
        async with watching(rig.http, opened) as second:
            await second.shows(1)
            bye = await first.bye()
            assert (bye["code"], bye["reason"]) == (4409, "replaced")
            await first.closed()
        async with rig.client(opened) as socket:  # and back to a WebSocket, in the same world
            assert (await socket.hears("session.attached")).role == "driver"
            await socket.hears("media.chunk")


async def test_c14_a_bad_second_offer_costs_the_first_nothing(rig: ServerRig) -> None:
    opened = await rig.open()
    other = await rig.open()
    path = f"/v1/sessions/{opened['id']}/webrtc"
    async with watching(rig.http, opened) as client:
        await client.shows(1)
        owner = client.authorization
        foreign = {"Authorization": f"Bearer {other['token']}"}
        offer = client.connection.localDescription.sdp
        for content, headers, status in (
            (b"{", owner, 400),
            (b'{"type": "offer"}', owner, 400),
            (json.dumps({"type": "offer", "sdp": "v=0"}).encode(), owner, 400),
            (json.dumps({"type": "offer", "sdp": offer}).encode(), foreign, 404),
        ):
            json_type = {"content-type": "application/json"}
            reply = await rig.http.post(path, content=content, headers=headers | json_type)
            assert reply.status_code == status, reply.text
        seen = len(client.frames)
        await client.shows(seen + 3)
        assert sum(chunk.dropped for chunk in client.chunks) == 0
        assert [chunk.index for chunk in client.chunks] == list(range(len(client.chunks)))


async def test_deleting_a_peer_ends_it_at_once(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(1)
        reply = await rig.http.delete(client.location, headers=client.authorization)
        assert reply.status_code == 204
        await client.closed()
        await until(lambda: not len(rig.store.get(opened["id"])._context.attached))
        gone = await rig.http.delete(client.location, headers=client.authorization)
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "no_such_peer")


async def test_the_end_of_a_session_is_told(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(1)
        await rig.http.delete(f"/v1/sessions/{opened['id']}", headers=client.authorization)
        closed = await client.hears("session.closed")
        assert closed.reason == "closed"
        assert (await client.bye())["reason"] == "closed"
        kinds = [event.type for event in client.events[-2:]]
        assert kinds == ["media.complete", "session.closed"]
        await client.closed()


async def test_c01_a_model_that_raises_is_told_and_frees_its_place(rig: ServerRig) -> None:
    opened = await rig.open(parameters={"fault": 1.0, "fault_chunk": 1.0, "fault_always": 1.0})
    async with watching(rig.http, opened) as client:
        error = await client.hears("error")
        assert error.code == "step_raised"
        closed = await client.hears("session.closed")
        assert (await client.bye())["reason"] == closed.reason
        await client.closed()
    await until(lambda: rig.busy == 0)


async def test_c01_a_sender_that_fails_is_noticed_and_the_session_continues(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.shows(2)

        def broken(*_: object) -> None:
            raise ValueError("no such packet")

        monkeypatch.setattr("aiortc.codecs.vpx.Vp8Encoder.pack", broken)
        error = await client.hears("error")
        assert error.code == "sender_failed"
        assert (await client.bye())["code"] == 1011
        monkeypatch.undo()
    async with watching(rig.http, opened) as again:
        await again.shows(1)


async def test_c03_offers_beyond_the_peers_of_a_session_are_refused() -> None:
    async with server_rig(server=quick(connect_timeout_s=30.0, peers_per_session=6)) as rig:
        opened = await rig.open()
        busy = rig.busy
        async with peer_client(rig.http, opened) as absent:
            sdp = await absent.unanswered()
            statuses = [(await absent.post(sdp)).status_code for _ in range(12)]
        assert statuses == [201] * 6 + [429] * 6
        assert rig.busy == busy
        other = await rig.open()
        async with watching(rig.http, other) as client:  # others are served meanwhile
            await client.shows(1)


async def test_a_driver_has_room_among_the_peers_however_many_watch() -> None:
    async with server_rig(server=quick(connect_timeout_s=30.0, peers_per_session=3)) as rig:
        opened = await rig.open()
        async with (
            watching(rig.http, opened) as driver,
            peer_client(rig.http, opened, opened["watch_token"]) as absent,
        ):
            await driver.shows(1)
            sdp = await absent.unanswered()
            statuses = [(await absent.post(sdp, role="viewer")).status_code for _ in range(4)]
            assert statuses == [201] * 2 + [429] * 2
            async with watching(rig.http, opened) as again:  # though the first is not lost yet
                await again.shows(1)
                assert (await driver.bye())["reason"] == "replaced"


async def test_one_address_that_holds_the_peers_makes_way_for_another() -> None:
    async with server_rig(server=quick(connect_timeout_s=30.0, peers=3)) as rig:
        opened, other = await rig.open(), await rig.open()
        async with rig.caller("127.0.0.2") as hog, peer_client(hog, opened) as absent:
            sdp = await absent.unanswered()
            locations = []
            for _ in range(3):
                answer = await absent.post(sdp)
                assert answer.status_code == 201
                locations.append(answer.headers["Location"])
            assert (await absent.post(sdp)).status_code == 429
            async with watching(rig.http, other) as guest:
                await guest.shows(1)
                left = [
                    (await hog.delete(each, headers=absent.authorization)).status_code
                    for each in locations
                ]
                assert left == [204, 204, 410]  # it is told why


async def test_offers_of_one_address_have_a_rate() -> None:
    async with server_rig(server=ServerOptions(offers_per_min=4)) as rig:
        opened = await rig.open()
        async with peer_client(rig.http, opened) as absent:
            sdp = await absent.unanswered()
            answers = [await absent.post(sdp) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 429]
        assert answers[-1].json()["error"]["code"] == "too_many_offers"
        assert int(answers[-1].headers["Retry-After"]) > 0


async def test_c03_offers_whose_peer_never_connects_are_forgotten() -> None:
    async with server_rig(server=quick(connect_timeout_s=0.5)) as rig:
        opened = await rig.open()
        async with peer_client(rig.http, opened) as absent:
            sdp = await absent.unanswered()
            assert (await absent.post(sdp)).status_code == 201
        await until(lambda: rig.context.metrics.peers._value.get() == 0)


async def test_a_peer_that_closes_amid_its_negotiation_leaves_nothing(rig: ServerRig) -> None:
    opened = await rig.open()
    async with peer_client(rig.http, opened) as client:
        client.offer_video()
        client.open_channels()
        await client.signal()
        await client.connection.close()
        reply = await rig.http.delete(client.location, headers=client.authorization)
        assert reply.status_code == 204
    await until(lambda: rig.context.metrics.peers._value.get() == 0)


async def test_a_server_that_leaves_tells_its_peers() -> None:
    async with server_rig() as rig:
        opened = await rig.open()
        async with watching(rig.http, opened) as client:
            await client.shows(1)
            draining = asyncio.create_task(rig.context.drain())
            assert (await client.bye())["reason"] == "shutdown"
            await client.closed()
            await draining
            refused = await client.post(client.connection.localDescription.sdp)
            assert refused.status_code in (410, 503)


async def test_ports_are_held_to_their_range() -> None:
    async with server_rig(server=quick(ports=[41000, 41007])) as rig:
        opened = await rig.open()
        async with watching(rig.http, opened) as client:
            await client.shows(1)
            ports = candidate_ports(client)
            assert ports
            assert all(41000 <= port <= 41007 for port in ports)


def candidate_ports(client: PeerClient) -> list[int]:
    lines = client.answer["sdp"].splitlines()
    return [int(line.split()[5]) for line in lines if line.startswith("a=candidate:")]


async def test_what_a_peer_says_that_it_has_seen_counts_in_its_time(rig: ServerRig) -> None:
    opened = await rig.open()
    async with watching(rig.http, opened) as client:
        await client.hears("media.chunk")
        assert rig.store.get(opened["id"]).state.playheads.governing.in_time
