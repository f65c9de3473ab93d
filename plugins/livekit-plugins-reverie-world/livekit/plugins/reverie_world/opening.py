"""Opens the session of a world: on a server, or in an engine of this process."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from livekit.agents import (
    NOT_GIVEN,
    APIConnectionError,
    APIConnectOptions,
    APIStatusError,
    NotGivenOr,
)
from livekit.agents.utils import is_given
from livekit.plugins.reverie_world.log import logger

if TYPE_CHECKING:
    from reverie import Engine, Session

_T = TypeVar("_T")

URL_VARIABLE = "REVERIE_URL"
OWNER_VARIABLE = "REVERIE_OWNER"
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Opening:
    """The options of a session, and where it is opened.

    Attributes:
        engine: opens it in this process; None: the server at `url` does.
        owner: the secret of an owner, as that server issued it.
    """

    model: NotGivenOr[str] = NOT_GIVEN
    program: NotGivenOr[str] = NOT_GIVEN
    prompt: NotGivenOr[str] = NOT_GIVEN
    seed: NotGivenOr[int] = NOT_GIVEN
    parameters: NotGivenOr[Mapping[str, float]] = NOT_GIVEN
    voice: bool = False
    url: NotGivenOr[str] = NOT_GIVEN
    owner: NotGivenOr[str] = NOT_GIVEN
    engine: "Engine | None" = None

    def open(self) -> "AbstractAsyncContextManager[Session]":
        """Return the session, to be entered; leaving it ends the world."""
        if self.engine is not None:
            return self.engine.session(
                model=_or(self.model, ""),
                program=_or(self.program, ""),
                prompt=_or(self.prompt, ""),
                seed=_or_none(self.seed),
                parameters=_or_none(self.parameters),
                voice=self.voice,
            )
        from reverie import connect

        return connect(
            self.where,
            model=_or_none(self.model),
            program=_or_none(self.program),
            prompt=_or(self.prompt, ""),
            seed=_or_none(self.seed),
            parameters=_or_none(self.parameters),
            voice=self.voice,
            owner=_or(self.owner, os.environ.get(OWNER_VARIABLE, "")) or None,
        )

    async def enter(self, stack: AsyncExitStack, options: APIConnectOptions) -> "Session":
        """Open the session on a stack, trying again where that may help.

        Raises:
            APIStatusError: the server refuses such a session.
            APIConnectionError: no session was opened after all tries.
        """
        from reverie.sessions import BadRequestError, SessionError

        for tried in count():
            try:
                async with asyncio.timeout(options.timeout):
                    return await stack.enter_async_context(self.open())
            except BadRequestError as error:
                raise APIStatusError(str(error), status_code=400, retryable=False) from error
            except (SessionError, TimeoutError) as error:
                if tried >= options.max_retry:
                    raise APIConnectionError(f"{self.where} opened no world") from error
                logger.warning("no world yet (%s); trying again", error or "no answer in time")
                await asyncio.sleep(options.retry_interval)
        raise AssertionError("counting has no end")

    @property
    def where(self) -> str:
        """The address of the server, or this process."""
        if self.engine is not None:
            return "the engine in this process"
        return _or(self.url, os.environ.get(URL_VARIABLE, "")) or DEFAULT_URL


def _or(value: NotGivenOr[str], otherwise: str) -> str:
    return value if is_given(value) else otherwise


def _or_none(value: NotGivenOr[_T]) -> _T | None:
    return value if is_given(value) else None
