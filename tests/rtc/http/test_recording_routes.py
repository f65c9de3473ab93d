"""Recordings over HTTP, and how they outlive what made them."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from media_suite import ECHO
from moving_pictures import file_of, grey
from projection import played
from rtc_rig import ServerRig, WireClient, bearer, server_rig
from stub_model import read_stamp

from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.recording.options import RecordingOptions


def options(folder: Path, **changes: Any) -> RecordingOptions:
    return RecordingOptions.model_validate({"folder": folder, **changes})


async def recorded(rig: ServerRig, opened: dict[str, Any], chunks: int = 3) -> dict[str, Any]:
    """Record some chunks of a session that is driven in H.264."""
    path, drives = f"/v1/sessions/{opened['id']}/recordings", bearer(opened["token"])
    async with rig.client(opened, codecs=["h264"]) as client:
        await client.hears("media.chunk")
        begun = await rig.http.post(path, headers=drives)
        assert begun.status_code == 201, begun.text
        await _watch(client, chunks)
        ended = await rig.http.post(f"{begun.headers['location']}/stop", headers=drives)
    assert ended.status_code == 200, ended.text
    found: dict[str, Any] = ended.json()
    return found


async def _watch(client: WireClient, chunks: int) -> None:
    newest = client.events[-1]
    assert isinstance(newest, MediaChunk)
    await client.chunk(newest.chunk + chunks)


def path_of(recording: dict[str, Any], rest: str = "") -> str:
    return f"/v1/sessions/{recording['session']}/recordings/{recording['id']}{rest}"


async def test_a_recording_is_begun_ended_listed_fetched_and_deleted(tmp_path: Path) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        recording = await recorded(rig, opened)
        watches = bearer(opened["watch_token"])
        listed = await rig.http.get(f"/v1/sessions/{opened['id']}/recordings", headers=watches)
        video = await rig.http.get(path_of(recording, "/video.mp4"), headers=watches)
        lines = await rig.http.get(path_of(recording, "/events.jsonl"), headers=watches)
        refused = await rig.http.delete(path_of(recording), headers=watches)
        gone = await rig.http.delete(path_of(recording), headers=bearer(opened["token"]))
        after = await rig.http.get(path_of(recording), headers=watches)
    assert (recording["state"], recording["reason"]) == ("complete", "stopped")
    assert listed.json()["recordings"] == [recording]
    assert video.headers["content-type"] == "video/mp4"
    assert video.headers["content-disposition"].endswith(f'"reverie-{recording["id"]}.mp4"')
    shown = played(video.content)
    assert len(shown.pictures) == recording["frames"] > 12
    for picture in shown.pictures:
        read_stamp(picture)
    assert lines.status_code == 200
    assert (refused.status_code, gone.status_code, after.status_code) == (403, 204, 404)
    assert os.listdir(tmp_path) == []


async def test_a_player_may_ask_for_a_part_of_it(tmp_path: Path) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        recording = await recorded(rig, opened)
        watches = bearer(opened["watch_token"])
        whole = await rig.http.get(path_of(recording, "/video.mp4"), headers=watches)
        part = await rig.http.get(
            path_of(recording, "/video.mp4"), headers={**watches, "Range": "bytes=100-199"}
        )
        beyond = await rig.http.get(
            path_of(recording, "/video.mp4"), headers={**watches, "Range": "bytes=999999999-"}
        )
        unread = await rig.http.get(
            path_of(recording, "/video.mp4"), headers={**watches, "Range": "lines=1-2"}
        )
    assert part.status_code == 206
    assert part.content == whole.content[100:200]
    assert part.headers["content-range"] == f"bytes 100-199/{len(whole.content)}"
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(whole.content)}"
    assert unread.status_code == 400
    for refused in (beyond, unread):
        assert refused.json()["error"].items() >= {"code": "bad_range", "field": "Range"}.items()


async def test_a_recording_outlives_its_session_for_clients_with_its_secrets(
    tmp_path: Path,
) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened, other = await rig.open(), await rig.open()
        recording = await recorded(rig, opened)
        ended = await rig.http.delete(
            f"/v1/sessions/{opened['id']}", headers=bearer(opened["token"])
        )
        assert ended.status_code == 204
        answers = {
            name: await rig.http.get(path_of(recording, "/video.mp4"), headers=bearer(secret))
            for name, secret in (
                ("token", opened["token"]),
                ("watch", opened["watch_token"]),
                ("owner", opened["owner"]),
                ("another's token", other["token"]),
                ("another's owner", other["owner"]),
            )
        }
        nobody = await rig.http.get(path_of(recording))
    codes = {name: answer.status_code for name, answer in answers.items()}
    assert (codes["token"], codes["watch"], codes["owner"]) == (200, 200, 200)
    assert codes["another's token"] in (404, 410)
    assert codes["another's owner"] in (404, 410)
    assert nobody.status_code == 401


async def test_it_outlives_the_server_in_a_folder_that_is_named(tmp_path: Path) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        recording = await recorded(rig, opened)
    async with server_rig(recordings=options(tmp_path)) as rig:
        answer = await rig.http.get(
            path_of(recording, "/video.mp4"), headers=bearer(opened["watch_token"])
        )
        assert answer.status_code == 200
        assert len(played(answer.content).pictures) == recording["frames"]


async def test_a_clip_of_the_last_seconds_comes_whole(tmp_path: Path) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        drives = bearer(opened["token"])
        path = f"/v1/sessions/{opened['id']}/clips"
        early = await rig.http.post(path, headers=drives, json={"seconds": 2.0})
        async with rig.client(opened, codecs=["jpeg"]) as client:
            await client.chunk(10)
            clip = await rig.http.post(path, headers=drives, json={"seconds": 2.0})
        odd = await rig.http.post(path, headers=drives, json={"seconds": -1.0})
        video = await rig.http.get(f"{clip.headers['location']}/video.mp4", headers=drives)
    assert (early.status_code, early.json()["error"]["code"]) == (409, "nothing_to_record")
    assert clip.status_code == 201, clip.text
    assert (odd.status_code, odd.json()["error"]["field"]) == (400, "seconds")
    assert clip.json()["kind"] == "clip"
    assert 24 * 2 <= len(played(video.content).pictures) <= 24 * 4 + 1


NAMES = (
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e",
    "deployment.yaml",
    "0" * 24,
    "a%00b",
    "C:%5Cwindows",
    "http:%2f%2f169.254.169.254",
    "x" * 3000,
)


async def test_c39_no_name_from_outside_becomes_a_path(tmp_path: Path) -> None:
    (tmp_path / "deployment.yaml").write_text("secret")
    (tmp_path / ("0" * 24 + ".mp4")).symlink_to("/etc/passwd")
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        recording = await recorded(rig, opened)
        own = f"/v1/sessions/{opened['id']}/recordings"
        paths = [f"{own}/{name}" for name in NAMES]
        paths += [f"{own}/{name}/video.mp4" for name in NAMES]
        paths += [f"/v1/sessions/{name}/recordings" for name in NAMES]
        paths += [path_of(recording, f"/{name}") for name in (*NAMES, "video.mp4%00", "passwd")]
        for path in paths:
            for method in ("GET", "DELETE"):
                headers = bearer(opened["token"])
                request = httpx.Request(method, rig.url + path, headers=headers)
                answer = await rig.http.send(request)  # which tidies no path up
                assert answer.status_code in (400, 401, 404, 405), (method, path)
                assert "root:" not in answer.text
                assert "secret" not in answer.text
        kept = await rig.http.get(path_of(recording), headers=bearer(opened["token"]))
        assert kept.json() == recording
    assert (tmp_path / "deployment.yaml").read_text() == "secret"


async def test_a_viewer_records_nothing(tmp_path: Path) -> None:
    async with server_rig(recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        for way in ("recordings", "clips"):
            answer = await rig.http.post(
                f"/v1/sessions/{opened['id']}/{way}", headers=bearer(opened["watch_token"])
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "read_only")


async def test_where_nothing_is_recorded_that_is_said(rig: ServerRig) -> None:
    opened = await rig.open()
    answer = await rig.http.post(
        f"/v1/sessions/{opened['id']}/recordings", headers=bearer(opened["token"])
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_enabled")


async def test_a_client_that_fills_all_storage_deletes_no_other_owners_recordings(
    tmp_path: Path,
) -> None:
    options_ = options(tmp_path, keep_count=4, keep_count_per_address=3)
    async with server_rig(recordings=options_, sessions=8) as rig:
        victim = await rig.open()
        kept = await recorded(rig, victim, 1)
        async with rig.caller("127.0.0.2") as stranger:
            other = ServerRig(rig.url, rig.pool, rig.store, rig.context, stranger)
            for _ in range(3):
                await recorded(other, await other.open(), 1)
            late = await other.open()
            async with rig.client(late, codecs=["h264"]) as client:
                await client.hears("media.chunk")
                path = f"/v1/sessions/{late['id']}/recordings"
                refused = await stranger.post(path, headers=bearer(late["token"]))
                told = await client.ask(type="record_start")
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "too_many")
        assert "keep_count" in error["message"]
        assert refused.headers["Retry-After"] == "60"
        assert told.type == "error"
        shown = await rig.http.get(path_of(kept), headers=bearer(victim["token"]))
        assert shown.json() == kept


async def test_each_stream_that_takes_pictures_is_recorded_to_a_file_of_its_own(
    tmp_path: Path,
) -> None:
    async with server_rig(family=ECHO, recordings=options(tmp_path)) as rig:
        opened = await rig.open()
        path, drives = f"/v1/sessions/{opened['id']}", bearer(opened["token"])
        async with rig.client(opened) as client:
            begun = await rig.http.post(f"{path}/recordings", headers=drives, json={"inputs": True})
            for stream, level in (("camera", 40), ("clip", 200), ("clip", 200)):
                pushed = await rig.http.put(
                    f"{path}/inputs/{stream}", headers=drives, content=file_of(grey(level))
                )
                assert pushed.status_code == 200, pushed.text
                await client.hears("media.chunk")
            ended = await rig.http.post(f"{begun.headers['location']}/stop", headers=drives)
        recording = ended.json()
        files = [
            await rig.http.get(path_of(recording, f"/{name}.mp4"), headers=drives)
            for name in ("input", "input-2", "input-3")
        ]
    assert [(each["stream"], each["frames"]) for each in recording["inputs"]] == [
        ("camera", 1),
        ("clip", 2),
    ]
    assert [answer.status_code for answer in files] == [200, 200, 404]
    levels = [[float(each.mean()) for each in played(file.content).pictures] for file in files[:2]]
    assert levels[0] == pytest.approx([40], abs=4)
    assert levels[1] == pytest.approx([200, 200], abs=4)
