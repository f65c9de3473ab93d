"""Who may come in: the tokens that participants, workers and callers of the API show."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import jwt
from aiohttp import web

TOKEN_LIFE_S = 3600


@dataclass(frozen=True, slots=True)
class Claims:
    """What a valid token says of its bearer.

    Attributes:
        token: the token itself; empty for one that has still to be made.
    """

    identity: str
    name: str
    metadata: str
    attributes: Mapping[str, str]
    kind: str
    room: str
    hidden: bool = False
    token: str = ""


@dataclass(slots=True)
class Tokens:
    """Check tokens, and make those that a server makes: for agents, and fresh ones.

    Attributes:
        revoked: tokens that are refused as if they had expired.
    """

    api_key: str
    api_secret: str
    revoked: set[str] = field(default_factory=set)
    _made: int = 0

    def claims(self, request: web.Request) -> Claims:
        """Read the token of a request, from its header or its query.

        Raises:
            web.HTTPUnauthorized: it has none, or one that is wrong or has expired.
        """
        header = request.headers.get("Authorization", "")
        token = header.removeprefix("Bearer ") or request.query.get("access_token", "")
        try:
            said = jwt.decode(token, self.api_secret, algorithms=["HS256"], issuer=self.api_key)
        except jwt.PyJWTError as error:
            raise web.HTTPUnauthorized(text=str(error)) from None
        if token in self.revoked:
            raise web.HTTPUnauthorized(text="the token has been revoked")
        grants = said.get("video", {})
        return Claims(
            identity=said.get("sub", ""),
            name=said.get("name", ""),
            metadata=said.get("metadata", ""),
            attributes=said.get("attributes", {}),
            kind=said.get("kind", "standard"),
            room=grants.get("room", ""),
            hidden=bool(grants.get("hidden")),
            token=token,
        )

    def made(self, claims: Claims) -> str:
        """Make a token, unlike any before."""
        self._made += 1
        now = int(time.time())
        grants = {
            "roomJoin": True,
            "room": claims.room,
            "hidden": claims.hidden,
            "agent": claims.kind == "agent",
            "canPublish": True,
            "canSubscribe": True,
            "canPublishData": True,
            "canUpdateOwnMetadata": True,
        }
        said = {
            "iss": self.api_key,
            "sub": claims.identity,
            "name": claims.name,
            "metadata": claims.metadata,
            "attributes": dict(claims.attributes),
            "kind": claims.kind,
            "nbf": now - 5,
            "exp": now + TOKEN_LIFE_S,
            "jti": f"made-{self._made}",
            "video": grants,
        }
        return jwt.encode(said, self.api_secret, algorithm="HS256")
