import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import reverie
from reverie.media.job_thread import JobThread, run_apart

ROOMS = ("rtc", "sessions", "media", "gpu_pool", "engine", "models")


def test_jobs_run_one_at_a_time_in_order_on_one_thread() -> None:
    thread, ran = JobThread("jobs"), []
    jobs = [thread.submit(lambda n: ran.append((n, threading.get_ident())), n) for n in range(20)]
    assert [job.result(20) for job in jobs] == [None] * 20
    thread.shutdown()
    assert [number for number, _ in ran] == list(range(20))
    assert len({ident for _, ident in ran}) == 1


def test_what_waits_is_done_after_a_shutdown_unless_it_is_cancelled() -> None:
    for cancel in (False, True):
        thread, gate = JobThread("jobs"), threading.Event()
        first, second = thread.submit(gate.wait, 20), thread.submit(lambda: "done")
        while not first.running():
            pass
        thread.shutdown(wait=False, cancel_futures=cancel)
        with pytest.raises(RuntimeError, match="no more jobs"):
            thread.submit(print)
        gate.set()
        assert first.result(20)
        assert second.cancelled() is cancel
        assert cancel or second.result(20) == "done"


def test_an_error_is_raised_where_the_result_is_asked_for_and_the_thread_goes_on() -> None:
    thread = JobThread("jobs")
    failed, next_one = thread.submit(int, "no number"), thread.submit(int, "7")
    with pytest.raises(ValueError, match="no number"):
        failed.result(20)
    assert next_one.result(20) == 7
    thread.shutdown()


async def test_a_call_apart_gives_its_result_and_can_be_left_alone() -> None:
    assert await run_apart(lambda: 7) == 7
    gate = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_apart(lambda: gate.wait(60))
    gate.set()


def test_a_job_that_hangs_keeps_no_process() -> None:
    program = (
        "import asyncio, threading, time\n"
        "from reverie.media.job_thread import JobThread, run_apart\n"
        "thread, begun = JobThread('jobs'), threading.Event()\n"
        "thread.submit(lambda: (begun.set(), time.sleep(3600)))\n"
        "begun.wait()\n"
        "async def leave():\n"
        "    try:\n"
        "        async with asyncio.timeout(0.01):\n"
        "            await run_apart(lambda: time.sleep(3600))\n"
        "    except TimeoutError:\n"
        "        print('left')\n"
        "asyncio.run(leave())\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    assert ended.stdout == "left\n"


def test_no_room_of_the_server_has_threads_that_the_interpreter_joins_at_its_end() -> None:
    """Each of them would let one call that hangs keep the process for ever."""
    joined = re.compile(r"ThreadPoolExecutor|asyncio\.to_thread|run_in_executor\(None|run_sync")
    root = Path(reverie.__file__).resolve().parent
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for room in ROOMS
        for path in sorted((root / room).rglob("*.py"))
        for line in path.read_text().splitlines()
        if joined.search(line) or ("threading.Thread(" in line and "daemon=True" not in line)
    ]
    assert not found
