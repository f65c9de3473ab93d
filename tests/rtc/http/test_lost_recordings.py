"""A server that is killed while it records."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import stub_model
from projection import played
from server_process import ServerProcess
from stub_model import read_stamp
from websockets.sync.client import connect

from reverie.media.files.mp4_survey import survey
from reverie.rtc.wire.framing import decode_event
from reverie.sessions.protocol.media_events import MediaChunk

LIMIT_S = 40.0


@pytest.mark.timeout(150)
def test_a_killed_server_leaves_a_recording_that_plays(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    models = [{"name": "stub", "family": stub_model.LOCATION}]
    server = ServerProcess(
        tmp_path,
        {
            "pool": {"mode": "inline", "models": models},
            "recordings": {"folder": str(folder)},
        },
    )
    server.start()
    try:
        opened = httpx.post(f"{server.url}v1/sessions", json={}).json()
        bearer = {"Authorization": f"Bearer {opened['token']}"}
        one = f"{server.url}v1/sessions/{opened['id']}/recordings"
        assert httpx.post(one, headers=bearer).status_code == 201
        _watch(server, opened, until=lambda: _on_disk(folder) > 2_000_000)
        server.kill()
        [video] = [name for name in os.listdir(folder) if name.endswith(".mp4")]
        left = folder / video
        with left.open("rb") as file:
            whole = survey(file)
        shown = played(left.read_bytes()[: whole.size_bytes])
        assert len(shown.pictures) == whole.frames >= 48
        for picture in shown.pictures:
            read_stamp(picture)
    finally:
        server.kill()


def _on_disk(folder: Path) -> int:
    """Return how much of a recording the disk has, in microseconds."""
    videos = [folder / name for name in os.listdir(folder) if name.endswith(".mp4")]
    if not videos:
        return 0
    with videos[0].open("rb") as file:
        return survey(file).duration_us


def _watch(server: ServerProcess, opened: dict[str, str], until: Callable[[], bool]) -> None:
    url = f"{server.url.replace('http', 'ws', 1)}v1/sessions/{opened['id']}/ws"
    stop_s = time.monotonic() + LIMIT_S
    with connect(url, max_size=None) as socket:
        hello = {"type": "hello", "protocol": 1, "token": opened["token"], "codecs": ["h264"]}
        socket.send(json.dumps(hello))
        while not until():
            assert time.monotonic() < stop_s, "nothing was recorded in time"
            event = decode_event(socket.recv(LIMIT_S))
            if isinstance(event, MediaChunk) and event.last:
                seen = {"type": "playhead", "id": "p", "chunk": event.chunk, "pts_us": event.pts_us}
                socket.send(json.dumps(seen))
