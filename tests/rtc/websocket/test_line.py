"""The line to a client over a WebSocket: measured, told, and what the lead goes by."""

import asyncio

from rtc_rig import ServerRig, bearer
from waiting import until

from reverie.rtc.client.connect import connect
from reverie.rtc.websocket.round_trips import UNANSWERED, RoundTrips

FIELDS = {"lead", "delay_ms", "chunk", "newest_us", "attachments"}


def listening() -> tuple[RoundTrips, list[int]]:
    trips, heard = RoundTrips(), list[int]()
    trips.heard = heard.append
    return trips, heard


def test_a_pong_tells_how_long_its_ping_took_and_no_other_payload_does() -> None:
    trips, heard = listening()
    first = trips.due(10.0)
    second = trips.due(10.2)
    assert first is not None
    assert second is not None
    assert not trips.answered(b"12345678", 10.3)
    assert trips.answered(second, 10.3)
    assert trips.answered(first, 10.4)
    assert not trips.answered(first, 10.5), "one ping has one pong"
    assert heard == [100_000, 400_000]


def test_pings_are_some_time_apart_and_none_is_sent_before_somebody_listens() -> None:
    assert RoundTrips().due(10.0) is None
    trips, _ = listening()
    assert trips.due(10.0) is not None
    assert trips.due(10.1) is None
    assert trips.due(10.2) is not None


def test_a_client_that_answers_no_ping_makes_nothing_grow() -> None:
    trips, heard = listening()
    payloads = [trips.due(float(second)) for second in range(4 * UNANSWERED)]
    assert payloads[0] is not None
    assert not trips.answered(payloads[0], 1000.0)
    assert heard == []


async def test_the_round_trip_and_the_lead_of_a_client_are_told_to_whoever_has_a_secret(
    rig: ServerRig,
) -> None:
    opened = await rig.open()
    path = f"/v1/sessions/{opened['id']}/stats"
    async with connect(rig.url, session=opened["id"], token=opened["token"]) as driver:
        seen = 0
        async for event in driver.stream():
            seen += event.type == "media.chunk"
            stats = await driver.stats()
            if stats.delay_ms is not None and stats.attachments[0].waited_ms is not None:
                break
        (mine,) = stats.attachments
        assert (mine.role, mine.codec) == ("driver", "rgb24")
        assert mine.round_trip_ms is not None
        assert mine.jitter_ms is not None
        assert 0 < stats.lead.allowed_ms <= stats.lead.most_ms
        for secret in ("token", "watch_token", "owner"):
            answer = await rig.http.get(path, headers=bearer(opened[secret]))
            assert answer.status_code == 200
            assert set(answer.json()) == FIELDS
        shown = await rig.http.get(f"/v1/sessions/{opened['id']}", headers=bearer(opened["token"]))
        assert shown.json()["view"]["lead"]["most_ms"] == stats.lead.most_ms
    assert (await rig.http.get(path, headers=bearer("nonsense"))).status_code == 404


async def test_the_newest_playhead_goes_before_a_command(rig: ServerRig) -> None:
    """What a control that acts now takes back begins after what the client has seen."""
    opened = await rig.open()
    async with connect(rig.url, session=opened["id"], token=opened["token"]) as driver:
        told: list[str] = []
        async for event in driver.stream():
            if event.type == "media.chunk" and event.last and event.chunk >= 2:
                break
        link = driver._link
        send = link.send

        async def sent(text: str | bytes) -> None:
            told.append(str(text))
            await send(text)

        link.send = sent  # type: ignore[method-assign]
        await driver.push_action({"move": "left"}, act="now")
        await asyncio.sleep(0)
        await until(lambda: len(told) >= 2)
        assert '"playhead"' in told[0]
        assert '"push_action"' in told[1]
        assert '"now"' in told[1]
