"""Agent workers, as `AgentServer` connects them, and the jobs that they get."""

import logging
import time
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web
from livekit.protocol import agent, models

from livekit_server.room import new_sid
from livekit_server.signalling import SERVER_INFO
from livekit_server.tokens import Claims, Tokens

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Agents:
    """Hands jobs to workers; a job waits until there is a worker of its name.

    Attributes:
        url: where agents are told to connect; set once the server listens.
        jobs: all there have been, by id.
    """

    tokens: Tokens
    url: str = ""
    jobs: dict[str, agent.Job] = field(default_factory=dict)
    _workers: dict[web.WebSocketResponse, str] = field(default_factory=dict)
    _waiting: list[agent.Job] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Be a worker's connection."""
        self.tokens.claims(request)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        try:
            async for message in socket:
                if message.type == WSMsgType.BINARY:
                    await self._handle(socket, agent.WorkerMessage.FromString(message.data))
        finally:
            self._workers.pop(socket, None)
        return socket

    async def dispatch(self, room: models.Room, agent_name: str, metadata: str) -> agent.Job:
        """Have an agent join a room, as soon as there is one of that name."""
        job = agent.Job(
            id=new_sid("AJ"),
            dispatch_id=new_sid("AD"),
            type=agent.JobType.JT_ROOM,
            room=room,
            agent_name=agent_name,
            metadata=metadata,
        )
        self.jobs[job.id] = job
        self._waiting.append(job)
        await self._offer_jobs()
        return job

    async def greet(self, room: models.Room) -> None:
        """Have those agents that go to every room join a new one."""
        if "" in self._workers.values():
            await self.dispatch(room, "", "")

    async def _offer_jobs(self) -> None:
        for job in list(self._waiting):
            named = [at for at, name in self._workers.items() if name == job.agent_name]
            if named:
                self._waiting.remove(job)
                offered = agent.AvailabilityRequest(job=job)
                await _send(named[-1], agent.ServerMessage(availability=offered))

    async def _handle(self, socket: web.WebSocketResponse, said: agent.WorkerMessage) -> None:
        kind = said.WhichOneof("message")
        log.debug("worker: %s", kind)
        match kind:
            case "register":
                welcome = agent.RegisterWorkerResponse(
                    worker_id=new_sid("AW"), server_info=SERVER_INFO
                )
                await _send(socket, agent.ServerMessage(register=welcome))
                self._workers[socket] = said.register.agent_name
                await self._offer_jobs()
            case "availability" if said.availability.available:
                await self._assign(socket, said.availability)
            case "update_job":
                self.jobs[said.update_job.job_id].state.status = said.update_job.status
            case "ping":
                now = int(time.time() * 1000)
                pong = agent.WorkerPong(last_timestamp=said.ping.timestamp, timestamp=now)
                await _send(socket, agent.ServerMessage(pong=pong))

    async def _assign(
        self, socket: web.WebSocketResponse, taken: agent.AvailabilityResponse
    ) -> None:
        job = self.jobs[taken.job_id]
        claims = Claims(
            identity=taken.participant_identity,
            name=taken.participant_name,
            metadata=taken.participant_metadata,
            attributes=dict(taken.participant_attributes),
            kind="agent",
            room=job.room.name,
        )
        assignment = agent.JobAssignment(job=job, url=self.url, token=self.tokens.made(claims))
        await _send(socket, agent.ServerMessage(assignment=assignment))


async def _send(socket: web.WebSocketResponse, message: agent.ServerMessage) -> None:
    try:
        await socket.send_bytes(message.SerializeToString())
    except ConnectionError:
        log.debug("a worker has gone")
