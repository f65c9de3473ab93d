"""The SDK's native part may abort when a process ends: these tests have one to themselves."""

from pathlib import Path

import pytest
from own_process import run_apart, tell


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run_apart(config, items, Path(__file__).parent)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    tell(report)
