"""`/v1/status`: what the server would answer to a request for a session, without asking for one.

A browser prints each refused request in red. A page that asks here first, and waits while the
answer is no, makes no request that is known to fail.
"""

from starlette.requests import Request
from starlette.responses import Response

from reverie.gpu_pool import ModelStatus
from reverie.rtc.app_context import AppContext
from reverie.rtc.http.auth import authorized
from reverie.rtc.http.json_bodies import JsonObject, error_json, json_response
from reverie.rtc.http.refusals import REFUSALS, refusal_of
from reverie.rtc.http.session_routes import check_open, model_of, owner_of
from reverie.sessions import SessionRequest


class StatusRoute:
    """The handler of `/v1/status`. It refuses nothing, opens nothing and counts nothing."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def show(self, request: Request) -> Response:
        """Say how far the models are, and what `POST /v1/sessions` would be answered now."""
        session = request.query_params.get("session")
        body: dict[str, object] = {
            "state": self._state(request.query_params.get("model")),
            **self._opening(request, with_owner=session is None),
            "models": [
                self._model(name, status) for name, status in self._context.models.status.items()
            ],
        }
        if session is not None:
            body["session"] = self._session(request, session)
        return json_response(body)

    def _opening(self, request: Request, *, with_owner: bool) -> JsonObject:
        context = self._context
        try:
            check_open(context)
            context.check_rate("openings", request, count=False)
            position = context.store.expected_position(
                SessionRequest(
                    model=model_of(context, request.query_params.get("model")),
                    program=request.query_params.get("program", ""),
                    owner=owner_of(request) if with_owner else None,
                    address=context.addresses.of(request),
                )
            )
        except REFUSALS as error:
            return {
                "open": False,
                "position": None,
                "refusal": error_json(refusal_of(error).refusal),
            }
        return {"open": True, "position": position, "refusal": None}

    def _session(self, request: Request, session: str) -> JsonObject:
        try:
            authorized(self._context, request, session)
        except REFUSALS as error:
            return {"id": session, "live": False, "refusal": error_json(refusal_of(error).refusal)}
        return {"id": session, "live": True, "refusal": None}

    def _state(self, name: str | None) -> str:
        """Return the state of what would be opened: of the model, or of the server that ends."""
        models = self._context.models
        if self._context.draining:
            return "draining"
        wanted = name or next(iter(models.specs or models.status), "")
        status = models.status.get(wanted)
        if status is None:
            return "ready" if models.ready else "loading"
        return self._state_of(wanted, status)

    def _model(self, name: str, status: ModelStatus) -> JsonObject:
        return {
            "name": name,
            "state": self._state_of(name, status),
            "slots": status.slots,
            "busy": status.busy,
            "waiting": status.waiting,
        }

    def _state_of(self, name: str, status: ModelStatus) -> str:
        if status.failure:
            return "failed"
        if status.ready:
            return "ready"
        return "restarting" if name in self._context.models.specs else "loading"
