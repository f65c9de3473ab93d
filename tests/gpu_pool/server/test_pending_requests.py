import asyncio

import pytest

from reverie.gpu_pool import AskTimeoutError, RequestRefusedError, WorkerLostError
from reverie.gpu_pool.server.pending_requests import PendingRequests
from reverie.gpu_pool.wire.messages import RequestDone, RequestRefused


class RequestRig:
    """PendingRequests, and what they led to, in order."""

    def __init__(self, limit_s: float = 60.0) -> None:
        self.happened: list[str] = []
        self.pending_requests = PendingRequests(
            limit_s, lambda reason: self.happened.append(reason)
        )

    def note(self, what: str) -> None:
        self.happened.append(what)


async def test_an_answer_reaches_the_request_that_it_answers() -> None:
    rig = RequestRig()
    one, other = rig.pending_requests.put("one", "s"), rig.pending_requests.put("other", "s")
    assert one.number != other.number
    rig.pending_requests.answer(RequestDone(other.number, "s", 5))
    assert (await other.answer).chunk == 5
    assert not one.answer.done()
    assert len(rig.pending_requests) == 1


async def test_a_refusal_is_an_error_with_its_code() -> None:
    rig = RequestRig()
    question = rig.pending_requests.put("one", "s", on_failed=lambda e: rig.note(str(e)))
    rig.pending_requests.answer(
        RequestRefused(question.number, "s", "chunk_not_kept", "it is gone")
    )
    with pytest.raises(RequestRefusedError, match="it is gone") as refused:
        await question.answer
    assert refused.value.code == "chunk_not_kept"
    assert rig.happened == ["it is gone"]


async def test_a_cancelled_request_is_not_waited_for_but_its_answer_is_noticed() -> None:
    rig = RequestRig()
    question = rig.pending_requests.put(
        "one", "s", on_done=lambda done: rig.note(f"chunk {done.chunk}")
    )
    question.answer.cancel()
    rig.pending_requests.answer(RequestDone(question.number, "s", 2))
    assert rig.happened == ["chunk 2"]
    assert not rig.pending_requests


async def test_an_answer_that_is_unknown_or_comes_twice_means_nothing() -> None:
    rig = RequestRig()
    question = rig.pending_requests.put("one", "s", on_done=lambda _: rig.note("done"))
    for _ in range(2):
        rig.pending_requests.answer(RequestDone(question.number, "s"))
    rig.pending_requests.answer(RequestDone(0, "s"))
    assert rig.happened == ["done"]


async def test_without_an_answer_in_time_the_worker_is_replaced_before_the_request_fails() -> None:
    rig = RequestRig(limit_s=0.01)
    question = rig.pending_requests.put("one", "s", on_failed=lambda _: rig.note("failed"))
    with pytest.raises(AskTimeoutError, match="not answered within"):
        await question.answer
    assert rig.happened == ["one was not answered within 0.01 s", "failed"]


async def test_when_the_worker_is_lost_every_request_learns_it_at_once() -> None:
    rig = RequestRig()
    pending_requests = [rig.pending_requests.put(f"q{index}", "s") for index in range(3)]
    rig.pending_requests.fail_all(WorkerLostError("killed"))
    for question in pending_requests:
        with pytest.raises(WorkerLostError, match="killed"):
            await asyncio.wait_for(question.answer, 20)
        assert question.timer.cancelled()
    assert not rig.pending_requests
