from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import odd_models
import pytest
import pytest_asyncio
import stub_model
from pool_rig import running
from waiting import until

from reverie.gpu_pool import Pool


@pytest.fixture(scope="module", params=["inline", "process"])
def mode(request: pytest.FixtureRequest) -> str:
    """Where the worker runs."""
    return str(request.param)


@pytest.fixture(scope="module")
def step_log(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The stub's step log; ask for it before the pool starts, for workers inherit its place."""
    path = tmp_path_factory.mktemp("log") / "steps.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(stub_model.LOG_VARIABLE, str(path))
        yield path


@pytest.fixture(scope="module")
def sessions() -> int:
    """Slots of the shared pool; a module may say otherwise."""
    return 2


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(mode: str, sessions: int, step_log: Path) -> AsyncIterator[Pool]:
    family = odd_models.place("FussyFamily")
    async with running(mode, family=family, sessions=sessions, waiting_line=3) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def pool(shared: Pool) -> AsyncIterator[Pool]:
    """A pool for all tests of a module, which each of them must leave as it was."""
    yield shared
    status = shared.status["stub"]
    await until(lambda: shared.status["stub"].busy == 0)
    assert (status.waiting, status.losses, status.failure) == (0, 0, "")
