"""LiveKit for tests: a server, what can go wrong with it, and people in its rooms.

With `LIVEKIT_URL`, `LIVEKIT_API_KEY` and `LIVEKIT_API_SECRET` the same tests use that server, which
cannot be told to go wrong: tests that need it are skipped.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from livekit import api
from net_namespace import ADDRESS, namespace_or_skip

START_S = 60.0
STOP_S = 10.0
API_KEY = "testkey"
API_SECRET = "a secret of the tests, of which there is need of 32 bytes"

_rooms = itertools.count(1)


@dataclass(frozen=True, slots=True)
class LiveKit:
    """A running server.

    Attributes:
        is_ours: whether it is the suite's own, which goes wrong on request.
    """

    url: str
    api_key: str
    api_secret: str
    is_ours: bool

    @property
    def http_url(self) -> str:
        """Where its API is."""
        return self.url.replace("ws", "http", 1)

    def new_room(self) -> str:
        """Return the name of a room that no other test uses."""
        return f"room-{os.getpid()}-{next(_rooms)}"

    def token(self, identity: str, room: str, *, life_s: float = 3600, **attributes: str) -> str:
        """Return what lets somebody into a room."""
        grants = api.VideoGrants(room_join=True, room=room, can_update_own_metadata=True)
        return (
            api.AccessToken(self.api_key, self.api_secret)
            .with_identity(identity)
            .with_name(identity)
            .with_ttl(timedelta(seconds=life_s))
            .with_attributes(attributes)
            .with_grants(grants)
            .to_jwt()
        )

    def api(self) -> api.LiveKitAPI:
        """Return a client of its API; close it."""
        return api.LiveKitAPI(self.http_url, self.api_key, self.api_secret)

    def must_be_ours(self) -> None:
        """Skip the test unless this server goes wrong on request."""
        if not self.is_ours:
            pytest.skip(f"{self.url} cannot be told to go wrong")

    async def fault(
        self, fault: str, room: str, identity: str, *, kind: str = "", count: int = 1
    ) -> None:
        """Have something go wrong for a participant; `livekit_server.fault_api` lists what.

        A test that needs it is skipped where the server is not the suite's own.
        """
        self.must_be_ours()
        query: dict[str, str | int] = {"room": room, "identity": identity}
        query |= {"kind": kind, "count": count}
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{self.http_url}/faults/{fault}", params=query)
        assert answer.status_code == 200, answer.text


@contextmanager
def livekit_network() -> Iterator[None]:
    """Have this thread, and what it starts, in a network apart, unless a real server is given.

    Must be entered before the SDK's first use in the process: its threads stay where they begin.
    """
    if "LIVEKIT_URL" in os.environ:
        yield
        return
    with namespace_or_skip() as network, network.entered():
        yield


@contextmanager
def livekit_server(folder: Path) -> Iterator[LiveKit]:
    """Run the suite's server as a process in this thread's network, or use the real one given.

    Its log is in `folder`, and is shown when it does not start.
    """
    if "LIVEKIT_URL" in os.environ:
        key, secret = os.environ["LIVEKIT_API_KEY"], os.environ["LIVEKIT_API_SECRET"]
        yield LiveKit(os.environ["LIVEKIT_URL"], key, secret, is_ours=False)
        return
    here = Path(__file__).parent
    arguments = ["--host", ADDRESS, "--key", API_KEY, "--secret", API_SECRET]
    log = folder / "livekit_server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "livekit_server", *arguments],
            cwd=here.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url, f"the server did not start:\n{log.read_text()}"
        yield LiveKit(url, API_KEY, API_SECRET, is_ours=True)
    finally:
        stop_process(process)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """End a process that ends with its standard input; after a while, whatever it is at."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
