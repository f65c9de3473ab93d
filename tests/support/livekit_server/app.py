"""The server as a whole: its routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from livekit_server.agents import Agents
from livekit_server.fault_api import FaultApi
from livekit_server.rooms import Rooms
from livekit_server.tokens import Tokens
from livekit_server.twirp import Api


class Server:
    """A LiveKit-compatible server on one port."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._rooms = Rooms()
        self._agents = Agents(tokens)

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[str]:
        """Serve for as long as the block lasts; yields the URL. Port 0 takes a free one."""
        application = web.Application()
        application.on_response_prepare.append(_let_pages_read)
        application.add_routes(
            [
                # There is no `/rtc/v1`: clients that get 404 for it come to `/rtc`.
                web.get("/rtc", self._join),
                web.get("/rtc/validate", self._validate),
                web.get("/agent", self._agents.serve),
                web.post(
                    "/twirp/{service}/{method}", Api(self._tokens, self._rooms, self._agents).serve
                ),
                web.post("/faults/{fault}", FaultApi(self._tokens, self._rooms).serve),
            ]
        )
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            self._agents.url = f"ws://{host}:{runner.addresses[0][1]}"
            yield self._agents.url
        finally:
            for room in self._rooms:
                for peer in list(room.members.values()):
                    peer.fail_signalling()
            await runner.cleanup()

    async def _validate(self, request: web.Request) -> web.Response:
        self._tokens.claims(request)
        return web.Response(text="success")

    async def _join(self, request: web.Request) -> web.WebSocketResponse:
        claims = self._tokens.claims(request)
        if claims.room not in self._rooms:
            await self._agents.greet(self._rooms.named(claims.room).info)
        return await self._rooms.join(claims, request)


async def _let_pages_read(_: web.Request, response: web.StreamResponse) -> None:
    """Let a page of another origin see an answer, such as the 404 that sends it to `/rtc`."""
    response.headers["Access-Control-Allow-Origin"] = "*"
