"""Bytes on their way to the disk."""

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reverie.media.files.appended_file import AppendedFile

LIMIT_S = 20.0


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


async def test_what_is_appended_is_there_in_order_once_it_is_closed(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    failures: list[str] = []
    file = AppendedFile(tmp_path / "a", executor, failures.append)
    for number in range(100):
        file.append(bytes([number]) * 1000)
        if number % 7 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT_S):
        await file.close()
    assert (tmp_path / "a").read_bytes() == b"".join(bytes([each]) * 1000 for each in range(100))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert not failures


async def test_a_full_disk_is_told_once_and_nothing_more_is_written(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    failures: list[str] = []
    file = AppendedFile(
        tmp_path / "a",
        executor,
        failures.append,
        open_file=lambda _: os.open("/dev/full", os.O_WRONLY),
    )
    for _ in range(3):
        file.append(b"x" * 1000)
    async with asyncio.timeout(LIMIT_S):
        await file.close()
        file.append(b"x")
        await file.close()
    assert failures == ["disk_full"]
    assert file.failure == "disk_full"


async def test_a_file_that_is_there_is_not_written_over_nor_is_a_link_followed(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    (tmp_path / "there").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    failures: list[str] = []
    for name in ("there", "link"):
        file = AppendedFile(tmp_path / name, executor, failures.append)
        file.append(b"x")
        async with asyncio.timeout(LIMIT_S):
            await file.close()
    assert failures == ["write_failed", "write_failed"]
    assert (tmp_path / "there").read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere").exists()


async def test_a_disk_that_does_not_keep_up_is_not_waited_for(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    gate, failures = threading.Event(), list[str]()

    def slow(path: Path) -> int:
        assert gate.wait(LIMIT_S)
        return os.open(path, os.O_WRONLY | os.O_CREAT)

    file = AppendedFile(
        tmp_path / "a", executor, failures.append, pending_bytes=5_000, open_file=slow
    )
    for _ in range(10):
        file.append(b"x" * 1000)
    assert failures == ["disk_slow"]
    gate.set()
    async with asyncio.timeout(LIMIT_S):
        await file.close()
