"""A real server in a process of its own, and a real browser."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from chromium import CHROMIUM
from island import Island, island
from playwright.async_api import Browser, async_playwright
from server_process import ServerProcess
from stub_model import LOCATION


def stub(name: str = "stub") -> dict[str, object]:
    """Return the part of a deployment that serves the stub model."""
    return {"name": name, "family": LOCATION, "sessions": 16, "threads": 1}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the stub that all tests share: nobody may end it."""
    deployment = {
        "pool": {"models": [stub(), stub("other")]},
        "sessions": {"grace_s": 15},  # tests leave sessions behind, and others want their places
    }
    process = ServerProcess(tmp_path_factory.mktemp("server"), deployment)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def fragile_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of the stub that the test may kill."""
    process = ServerProcess(tmp_path, {"pool": {"models": [stub()]}})
    process.start()
    yield process
    process.kill()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Headless Chromium, started once."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    """A browser without pages. Those of different contexts share nothing."""
    yield chromium
    for context in chromium.contexts:
        await context.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def settled_island(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Island]:
    """An island whose server has the stub, pocket and echo, made once."""
    folder = tmp_path_factory.mktemp("island")
    deployment: dict[str, object] = {
        "pool": {"models": [stub(), {"name": "pocket"}, {"name": "echo"}]},
        "sessions": {"grace_s": 10},
    }
    async with island(folder, deployment) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def here(settled_island: Island) -> AsyncIterator[Island]:
    """The island without pages, before and after."""
    yield settled_island
    await settled_island.leave_pages()
