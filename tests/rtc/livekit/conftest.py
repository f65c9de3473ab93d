"""A server that speaks LiveKit's protocol, for tests that run in a process and a network apart.

The SDK's native part starts threads of its own and may abort when a process ends; so these tests
have a process to themselves, all of which is in one network namespace.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from livekit_rig import LiveKit, livekit_network, livekit_server
from own_process import run_apart, tell


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run_apart(config, items, Path(__file__).parent)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    tell(report)


@pytest.fixture(scope="session")
def network() -> Iterator[None]:
    with livekit_network():
        yield


@pytest.fixture(scope="module")
def livekit(network: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKit]:
    """Run the suite's server, or use the one that `LIVEKIT_URL` names."""
    with livekit_server(tmp_path_factory.mktemp("livekit")) as server:
        yield server
