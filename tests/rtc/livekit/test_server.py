"""The suite's own server does for the real SDK what LiveKit's does, and goes wrong when told to."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import livekit_rig
import pytest
from aiortc import RTCPeerConnection
from livekit import api, rtc
from livekit.protocol import rtc as protocol
from livekit_rig import LiveKit
from room_guest import LIMIT_S, Camera, Guest, Picture
from waiting import until
from websockets.asyncio.client import ClientConnection, connect

RED = (220, 20, 20)


@pytest.fixture
async def pair(livekit: LiveKit) -> AsyncIterator[tuple[Guest, Guest]]:
    """Have two people in a room, who have heard of each other."""
    room = livekit.new_room()
    async with (
        Guest.joined(livekit, room, "ada", topics=("poem",)) as ada,
        Guest.joined(livekit, room, "ben", topics=("poem",)) as ben,
    ):
        await ada.meets("ben")
        await ben.meets("ada")
        yield ada, ben


def is_red(picture: Picture) -> bool:
    red, green, blue = picture.colour
    return red > 150 and max(green, blue) < 90


async def test_one_sees_the_pictures_of_another(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    camera = await ada.show(RED)
    assert (await ben.picture(is_red, "a red picture")).of == "ada"
    await camera.close()


async def test_who_comes_late_sees_what_is_shown_already(pair: tuple[Guest, Guest]) -> None:
    ada, _ = pair
    camera = await ada.show(RED)
    async with Guest.joined(ada.livekit, ada.room_name, "cleo") as cleo:
        assert (await cleo.picture(is_red, "a red picture")).of == "ada"
    await camera.close()


async def test_packets_texts_and_calls_arrive(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair

    async def shout(call: rtc.RpcInvocationData) -> str:
        return f"{call.caller_identity}: {call.payload.upper()}"

    ben.me.register_rpc_method("shout", shout)
    await ada.me.publish_data(b"here", topic="news")
    await ada.me.send_text("roses are red", topic="poem")
    answer = await ada.me.perform_rpc(destination_identity="ben", method="shout", payload="hey")
    assert answer == "ada: HEY"
    await until(lambda: ben.texts_on("poem") == ["roses are red"], "the poem")
    await until(lambda: [packet.data for packet in ben.packets] == [b"here"], "the packet")


async def test_attributes_are_told(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    await ada.me.set_attributes({"mood": "good"})
    await until(lambda: ben.attributes("ada").get("mood") == "good", "the mood")


async def test_who_is_removed_is_told_and_missed(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    calls = ada.livekit.api()
    wanted = api.RoomParticipantIdentity(room=ada.room_name, identity="ada")
    await calls.room.remove_participant(wanted)
    await calls.aclose()
    await until(lambda: "disconnected" in ada.happened, "ada to be told")
    await until(lambda: "ada" not in ben.room.remote_participants, "ben to miss ada")


async def test_severed_signalling_comes_back_with_its_track(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    camera = await ada.show(RED)
    await ben.picture(is_red)
    await ada.fault("sever")
    await until(lambda: "reconnected" in ada.happened, "ada to reconnect")
    assert (await ben.picture(is_red, "a red picture after the loss")).of == "ada"
    await camera.close()


async def test_who_is_shut_out_comes_back_when_let_in(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    await ada.fault("shut_out")
    await ada.fault("sever")
    await until(lambda: "reconnecting" in ada.happened, "ada to notice")
    await until(lambda: "ada" not in ben.room.remote_participants, "ben to miss ada")
    await ada.fault("let_in")
    await until(lambda: "reconnected" in ada.happened, "ada to reconnect")
    await ben.meets("ada")


async def test_who_has_a_fresh_token_reconnects_with_it(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    await ada.fault("refresh")  # from now on the token that ada came with is refused
    await until(lambda: "token_refreshed" in ada.happened, "a fresh token")
    await ada.fault("sever")
    await until(lambda: "reconnected" in ada.happened, "ada to reconnect")
    await ben.meets("ada")


async def test_packets_are_lost_and_doubled_on_request(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    await ada.fault("lose", kind="user", count=1)
    await ada.fault("double", kind="user", count=1)
    for word in (b"lost", b"doubled", b"plain"):
        await ada.me.publish_data(word)
    await until(lambda: len(ben.packets) == 3, "three packets")
    assert [packet.data for packet in ben.packets] == [b"doubled", b"doubled", b"plain"]


async def test_a_second_of_one_identity_sends_the_first_away(pair: tuple[Guest, Guest]) -> None:
    ada, ben = pair
    async with Guest.joined(ada.livekit, ada.room_name, "ada") as second:
        await until(lambda: "disconnected" in ada.happened, "the first to be sent away")
        await ben.meets("ada")
        camera: Camera = await second.show(RED)
        await ben.picture(is_red)
        await camera.close()


async def test_an_answer_names_the_offer_that_it_answers(livekit: LiveKit) -> None:
    livekit.must_be_ours()
    offer = protocol.SessionDescription(type="offer", sdp=await _offer_of_data(), id=41)
    async with _signalling(livekit) as socket:
        await socket.send(protocol.SignalRequest(offer=offer).SerializeToString())
        answers = [said.answer async for said in _said(socket, "answer")]
        assert [answer.id for answer in answers] == [41]


async def test_the_servers_own_offers_are_numbered(livekit: LiveKit) -> None:
    livekit.must_be_ours()
    async with _signalling(livekit) as socket:
        assert [said.offer.id async for said in _said(socket, "offer")] == [1]


async def _offer_of_data() -> str:
    connection = RTCPeerConnection()
    connection.createDataChannel("_reliable")
    await connection.setLocalDescription(await connection.createOffer())
    sdp = connection.localDescription.sdp
    await connection.close()
    return sdp


def _signalling(livekit: LiveKit) -> connect:
    token = livekit.token("ada", livekit.new_room())
    return connect(f"{livekit.url}/rtc?access_token={token}", proxy=None)


async def _said(socket: ClientConnection, kind: str) -> AsyncIterator[protocol.SignalResponse]:
    """Return the first message of a kind."""
    async with asyncio.timeout(LIMIT_S):
        async for raw in socket:
            assert isinstance(raw, bytes)
            said = protocol.SignalResponse.FromString(raw)
            if said.WhichOneof("message") == kind:
                yield said
                return


def test_a_server_that_nobody_can_speak_to_serves_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "livekit_server", "--key", "k", "--secret", "s" * 32]
    support = Path(livekit_rig.__file__).parents[1]
    for stdin in (subprocess.DEVNULL, None):
        with subprocess.Popen(
            command,
            cwd=support,
            stdin=stdin,
            stdout=subprocess.PIPE,
            preexec_fn=(lambda: os.close(0)) if stdin is None else None,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"ws://")
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0
