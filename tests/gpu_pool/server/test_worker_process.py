import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import odd_models
import pytest
from pool_rig import LIMIT_S, Viewer, is_alive, open_files, running, worker_pid
from stub_model import LOG_VARIABLE, read_log
from waiting import until

from reverie.gpu_pool.server.worker_process import ProcessHost

pytestmark = pytest.mark.timeout(150)  # processes start slowly on a busy machine

PARENT = """
import asyncio, sys
from pool_rig import Viewer, running, worker_pid

async def main(family: str) -> None:
    async with running("process", family=family) as pool:
        async with Viewer("orphan").watching(pool, step_ms=1):
            print(worker_pid(pool), flush=True)
            await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A child of ours that has nothing to do with the pool."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def segments() -> set[str]:
    return {entry.name for entry in Path("/dev/shm").iterdir()}


async def test_no_worker_outlives_a_server_that_is_killed(
    bystander: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """C24, in the middle of a step that does not even let the worker notice."""
    log = tmp_path / "steps"
    before = segments()
    path = os.pathsep.join(entry for entry in sys.path if entry)
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        odd_models.place("hog_family"),
        env={**os.environ, "PYTHONPATH": path, LOG_VARIABLE: str(log)},
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        worker = int(await parent.stdout.readline())
    await until(lambda: any(line.session == "orphan" for line in read_log(log)))
    assert is_alive(worker)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await until(lambda: not is_alive(worker), limit_s=5)
    assert segments() == before
    assert bystander.poll() is None


async def test_a_worker_whose_connection_ends_leaves_by_itself() -> None:
    host = ProcessHost()
    await asyncio.to_thread(host.start)
    host.connection.close()
    assert await asyncio.to_thread(host.wait, LIMIT_S) == "exit code 0"
    host.close()


async def test_a_worker_that_was_killed_before_it_started_ends() -> None:
    host = ProcessHost()
    assert host.wait(0) == "not started"
    host.kill()
    await asyncio.to_thread(host.start)
    assert await asyncio.to_thread(host.wait, LIMIT_S) == "killed by SIGKILL"
    host.close()


async def test_a_pool_that_is_closed_leaves_no_process_and_no_descriptor() -> None:
    before, names = open_files(), segments()
    async with running("process") as pool:
        pid = worker_pid(pool)
        async with Viewer("a").watching(pool):
            assert is_alive(pid)
    assert not is_alive(pid)
    await until(lambda: open_files() == before)
    assert segments() == names


async def test_a_step_that_hogs_its_interpreter_does_not_hold_up_the_server() -> None:
    """C27: the event loop stays prompt while the worker is busy, its queue always full."""
    async with running("process", family=odd_models.place("busy_family")) as pool:
        viewer, other = Viewer("a"), Viewer("b")
        delays: list[float] = []
        loop = asyncio.get_running_loop()
        async with viewer.watching(pool, step_ms=150), other.watching(pool, step_ms=150):
            while len(viewer.frames) < 2 or len(other.frames) < 2:
                due = loop.time() + 0.01
                await asyncio.sleep(0.01)
                delays.append(loop.time() - due)
        delays.sort()
        # A loop that waited for a step would be late by 150 ms again and again.
        assert delays[int(len(delays) * 0.99) - 1] < 0.12
        assert len(delays) > 50


def test_what_others_send_is_told_from_a_kill_of_our_own_and_from_a_fault() -> None:
    ends: list[tuple[Callable[[ProcessHost], None], bool]] = [
        (lambda host: os.kill(host.pid or 0, signal.SIGKILL), True),
        (lambda host: os.kill(host.pid or 0, signal.SIGTERM), True),
        (lambda host: os.kill(host.pid or 0, signal.SIGSEGV), False),
        (lambda host: host.kill(), False),
        (lambda host: host.connection.close(), False),
    ]
    for end, by_others in ends:
        host = ProcessHost()
        host.start()
        assert not host.ended_by_others()
        end(host)
        assert host.wait(60)
        host.kill()
        assert host.ended_by_others() is by_others
        host.close()


def test_a_kill_for_memory_is_said_to_be_one_and_is_the_workers_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reverie.gpu_pool.server.worker_process._VMSTAT", tmp_path / "vmstat")
    (tmp_path / "vmstat").write_text("nr_free 9\noom_kill 3\n")
    host = ProcessHost()
    host.start()
    (tmp_path / "vmstat").write_text("nr_free 9\noom_kill 4\n")
    os.kill(host.pid or 0, signal.SIGKILL)
    assert host.wait(60) == "killed by SIGKILL as memory ran out"
    assert not host.ended_by_others()
    host.close()
