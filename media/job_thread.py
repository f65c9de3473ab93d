"""A thread for blocking work that never keeps the process from exiting.

`concurrent.futures` and asyncio join their threads when the interpreter leaves, so one hanging
encoder would keep the process alive. These threads are daemons: a hanging job is abandoned.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class JobThread(Executor):
    """One thread that runs one job at a time, in order; it starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call soon.

        Raises:
            RuntimeError: after `shutdown`.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"thread {self._name} takes no more jobs")
            self._jobs.put((future, partial(fn, *args, **kwargs)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; waiting ones are still done, unless they are cancelled.

        Args:
            wait: block until the thread has ended, which is never if a job hangs.
            cancel_futures: drop waiting jobs.
        """
        with self._lock:
            self._closed = True
            while cancel_futures and not self._jobs.empty():
                if (job := self._jobs.get()) is not None:
                    job[0].cancel()
            self._jobs.put(None)
            thread = self._thread
        if wait and thread is not None:
            thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(*job)
            del job  # the job may refer to large objects, and the next one may come late


async def run_apart(work: Callable[[], T], name: str = "job") -> T:
    """Run one blocking call on a thread of its own. When cancelled, the call is abandoned."""
    thread = JobThread(name)
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, work)
    finally:
        thread.shutdown(wait=False)


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # the waiting caller gets any exception
        future.set_exception(error)
    else:
        future.set_result(result)
