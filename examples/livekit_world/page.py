"""Serves the page, and gives visitors tokens for a room: `python page.py`, and open its address.

For tests on one machine: every visitor gets a token. A product has its users sign in first.
"""

import os
import secrets
from pathlib import Path

from aiohttp import web
from livekit import api

HERE = Path(__file__).parent
FILES = ("index.html", "page.js", "livekit-client.umd.js")


async def token(request: web.Request) -> web.Response:
    """Return the address of the LiveKit server, and a token for `name`."""
    name = request.query.get("name", "").strip()[:32] or "guest"
    identity = f"{name}-{secrets.token_hex(2)}"
    room = request.query.get("room", "").strip()[:64] or "world"
    grants = api.VideoGrants(room_join=True, room=room)
    said = api.AccessToken().with_identity(identity).with_name(name).with_grants(grants)
    return web.json_response({"url": os.environ["LIVEKIT_URL"], "token": said.to_jwt()})


async def file(request: web.Request) -> web.FileResponse:
    """Return one of the page's files."""
    name = request.match_info["name"] or "index.html"
    if name not in FILES:
        raise web.HTTPNotFound
    return web.FileResponse(HERE / name)


def main() -> None:
    """Serve on this machine only."""
    missing = [name for name in ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET")
               if name not in os.environ]  # fmt: skip
    if missing:
        raise SystemExit(f"set {', '.join(missing)}, as for the agent")
    app = web.Application()
    app.router.add_get("/token", token)
    app.router.add_get("/{name:[^/]*}", file)
    web.run_app(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")))


if __name__ == "__main__":
    main()
