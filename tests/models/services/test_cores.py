"""How many cores a process may use."""

import os
from pathlib import Path

import pytest

from reverie.models.services.cores import available_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None), ("", None), ("1 0", None)],
)
def test_a_quota_of_a_container_counts(tmp_path: Path, text: str, cores: int | None) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert available_cores((quota,)) == (cores or machine)


def test_a_machine_without_quotas_has_all_its_cores(tmp_path: Path) -> None:
    assert available_cores((tmp_path / "nothing",)) >= 1
