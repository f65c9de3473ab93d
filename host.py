"""The composition root: makes the pool and the sessions from one deployment.

async with Engine.from_deployment() as engine:
    async with engine.session(prompt="a frozen lake land") as session:
        async for event in session.stream():
            ...
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from reverie.config import Deployment
from reverie.gpu_pool.server.pool import Pool
from reverie.media import Clock, SpeechError
from reverie.media.audio.espeak import Espeak, Speech
from reverie.models.contract.spec import ModelSpec
from reverie.sessions.client.local_session import LocalSession
from reverie.sessions.protocol.errors import VoiceError
from reverie.sessions.recording.recordings import Recordings
from reverie.sessions.runtime.session_request import SessionRequest
from reverie.sessions.runtime.session_store import SessionStore

DRAIN_S = 10.0
"""How long an engine waits for its open sessions when it stops."""


class Engine:
    """Everything that a server or a program needs to run sessions. Enter it to start it."""

    def __init__(self, deployment: Deployment, clock: Clock | None = None) -> None:
        """Keep the deployment; `start` and `load` do the work."""
        self.deployment = deployment
        self.pool = Pool(deployment.pool)
        self._clock = clock
        self._store: SessionStore | None = None
        self._exits = AsyncExitStack()

    @classmethod
    def from_deployment(cls, deployment: Deployment | Path | str | None = None) -> Self:
        """Return an engine for the given deployment, or for that of this process.

        Args:
            deployment: a file as for `reverie serve --config`; None takes the one that
                `REVERIE_CONFIG` names, if any. In both cases variables win over the file.

        Raises:
            DeploymentError: the file or a variable is not valid.
        """
        if isinstance(deployment, Deployment):
            return cls(deployment)
        return cls(Deployment.of_process(None if deployment is None else Path(deployment)))

    async def __aenter__(self) -> Self:
        """Start the workers and load the models; return when they are all warm.

        Raises:
            ModelUnavailableError: a model could not be loaded; nothing is left running.
        """
        await self.start()
        await self.load()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Make the engine's parts, so that a server can answer while `load` runs.

        Raises:
            RecordingsError: the folder for recordings cannot be used; nothing is left running.
            VoiceError: the voice that the deployment names is not installed; nothing is left
                running.
        """
        speech = self._find_speech()
        self._exits.push_async_callback(self.pool.close)
        recordings = await self._open_recordings()
        tasks = await self._exits.enter_async_context(asyncio.TaskGroup())
        tasks.create_task(recordings.run(), name="recordings")
        self._exits.callback(recordings.leave)
        self._store = SessionStore(
            self.pool,
            self.deployment.sessions,
            tasks,
            clock=self._clock,
            recordings=recordings,
            speech=speech,
        )

    def _find_speech(self) -> Speech | None:
        options = self.deployment.voice
        if options.engine is None:
            return None
        try:
            return Espeak.find(options.language, options.words_per_min)
        except SpeechError as error:
            raise VoiceError(f"voice.engine is {options.engine}, but {error}") from error

    async def _open_recordings(self) -> Recordings:
        recordings = Recordings(self.deployment.recordings)
        try:
            await recordings.start()
        except BaseException:
            await self._exits.aclose()
            raise
        self._exits.push_async_callback(recordings.close)
        return recordings

    async def load(self) -> None:
        """Start the workers and load the models.

        Raises:
            ModelUnavailableError: a model could not be loaded; nothing is left running.
        """
        try:
            await self.pool.start()
        except BaseException:
            await self._exits.aclose()
            raise

    async def drain(self, limit_s: float = DRAIN_S) -> None:
        """Refuse new sessions and end the open ones after their current chunk."""
        await self.store.drain(limit_s)

    async def stop(self) -> None:
        """End all sessions and workers. Idempotent."""
        if self._store is not None:
            await self.store.drain(DRAIN_S)
        await self._exits.aclose()

    @property
    def store(self) -> SessionStore:
        """All sessions."""
        assert self._store is not None, "an engine has sessions once it is started"
        return self._store

    @property
    def ready(self) -> bool:
        """Whether every model is loaded and warm."""
        return self.pool.ready

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """The served models, by the name that sessions use."""
        return self.pool.specs

    @asynccontextmanager
    async def session(
        self,
        *,
        model: str = "",
        program: str = "",
        prompt: str = "",
        seed: int | None = None,
        parameters: Mapping[str, float] | None = None,
        voice: bool = False,
        stop: Sequence[str] = (),
    ) -> AsyncGenerator[LocalSession, None]:
        """Open a session in this process; it ends with the block.

        Args:
            model: empty takes the first that is served.
            program: empty takes the model's first.
            seed: None takes a random one.
            voice: speak the model's text, as the audio stream `voice`.
            stop: texts that end an answer, in a program that takes turns.

        Raises:
            BadRequestError: names the argument that is wrong.
            TooManyError: no slot is free, and the wait queue is full.
            SessionEndedError: the session could not start.
        """
        request = SessionRequest(
            model=model or next(iter(self.specs), ""),
            program=program,
            prompt=prompt,
            seed=seed,
            parameters=parameters or {},
            voice=voice,
            stop=tuple(stop),
        )
        credentials = await self.store.create(request)
        async with LocalSession(credentials.session, store=self.store) as session:
            yield session
