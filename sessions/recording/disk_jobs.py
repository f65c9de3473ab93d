"""Jobs on the files of recordings, one after the other, each with a time limit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

SWEEP_S = 30.0
"""How often at least old recordings are looked for."""

JOB_S = 60.0
"""Time for the disk to take a job; after that the job is given up."""

LEAVE_S = 5.0
"""Time for all remaining jobs, once the server is shutting down."""

Job = Callable[[], Awaitable[None]]


class DiskJobs:
    """A queue of jobs; what fails is logged, and the next job follows."""

    def __init__(self) -> None:
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._leave_by_s: float | None = None  # when all must be done, at the end

    def put(self, job: Job) -> None:
        """Add a job."""
        self._jobs.put_nowait(job)

    def limit_rest(self) -> None:
        """Give all jobs that are not done yet `LEAVE_S` together."""
        self._leave_by_s = asyncio.get_running_loop().time() + LEAVE_S

    def end(self) -> None:
        """End `run` after the jobs that wait."""
        self._jobs.put_nowait(None)

    async def run(self, sweep: Callable[[], None]) -> None:
        """Do the jobs until `end`.

        Args:
            sweep: called after each job, and every `SWEEP_S` without one.
        """
        while True:
            try:
                async with asyncio.timeout(SWEEP_S):
                    job = await self._jobs.get()
            except TimeoutError:
                sweep()
                continue
            if job is None:
                return
            await self._do(job)
            sweep()

    async def _do(self, job: Job) -> None:
        limit_s = JOB_S
        if self._leave_by_s is not None:
            limit_s = max(0.0, self._leave_by_s - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(limit_s):
                await job()
        except TimeoutError:
            logger.error("a recording's files took over %g s", limit_s)
        except Exception:
            # The boundary of housekeeping: a failure with one recording must not end the server.
            logger.exception("a job for a recording failed")
