"""What a request for a session is answered when the store has none to give."""

import json

import pytest
from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.http.refusals import with_typed_errors
from reverie.sessions import SessionEndedError


@pytest.mark.parametrize(("reason", "passes"), [("no_worker", True), ("model_unavailable", False)])
async def test_when_to_come_again_is_said_only_where_that_may_help(
    reason: str, passes: bool
) -> None:
    async def create(request: Request) -> Response:
        raise SessionEndedError(reason, "the model is not served now")

    answer = await with_typed_errors(create)(Request({"type": "http", "headers": []}))
    error = json.loads(bytes(answer.body))["error"]
    assert (answer.status_code, error["code"]) == (503, reason)
    assert (error["retry_after_s"] is not None) == passes
    assert ("retry-after" in answer.headers) == passes
