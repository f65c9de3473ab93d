"""`WorldSession`: a generated world as the video of an agent, by the avatar interface of agents.

    world = reverie_world.WorldSession(prompt="a desert")
    await world.start(agent_session, ctx.room)

It opens a world on a reverie server, or in an engine of this process, and serves it to the room
until either has ended. `reverie.rtc.livekit` does the work; this is its interface for agents.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from livekit import rtc
from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS,
    NOT_GIVEN,
    AgentSession,
    APIConnectionError,
    APIConnectOptions,
    APIError,
    NotGivenOr,
    room_io,
    utils,
)
from livekit.agents.llm import Tool, Toolset
from livekit.agents.utils import is_given
from livekit.agents.voice.avatar import AvatarSession
from livekit.plugins.reverie_world.audio_tail import install_tail
from livekit.plugins.reverie_world.joining import connected, tell_failed
from livekit.plugins.reverie_world.log import logger
from livekit.plugins.reverie_world.opening import Opening
from livekit.plugins.reverie_world.player import Player
from livekit.plugins.reverie_world.tools import world_tools

if TYPE_CHECKING:
    from reverie import Engine
    from reverie.rtc.livekit import BridgeOptions, RoomBridge, RoomEnding

JOIN_S = 30.0
"""Limit for a room to connect after a world was started for it."""


class WorldSession(AvatarSession[Literal["world_ended"]]):
    """A world in a room, published by the agent itself. Emits `world_ended` (`RoomEnding`)."""

    def __init__(
        self,
        *,
        model: NotGivenOr[str] = NOT_GIVEN,
        program: NotGivenOr[str] = NOT_GIVEN,
        prompt: NotGivenOr[str] = NOT_GIVEN,
        seed: NotGivenOr[int] = NOT_GIVEN,
        parameters: NotGivenOr[Mapping[str, float]] = NOT_GIVEN,
        voice: bool = False,
        url: NotGivenOr[str] = NOT_GIVEN,
        owner: NotGivenOr[str] = NOT_GIVEN,
        engine: "Engine | None" = None,
        participant_identity: NotGivenOr[str] = NOT_GIVEN,
        webcam: bool = True,
        chat: bool = False,
        prompts_from: Literal["driver", "everyone"] = "driver",
        keep_empty_s: NotGivenOr[float] = NOT_GIVEN,
        max_bitrate: NotGivenOr[int] = NOT_GIVEN,
        interrupted_by_agent: bool = True,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> None:
        """Open nothing yet.

        Args:
            model: its name on the server; the default is the first; likewise `program`.
            prompt: the first prompt.
            voice: speak the text of the program, where the server has a voice.
            url: of the server; the default is `REVERIE_URL`, or http://127.0.0.1:8000.
            owner: the secret of an owner, issued by that server since its start; the default is
                `REVERIE_OWNER`, or a new owner.
            engine: runs the world in this process instead; it must have been started.
            participant_identity: whose camera the world sees; the default is the driver's.
            webcam: whether it sees a camera.
            chat: take `lk.chat` as prompts, where no `AgentSession` reads it.
            prompts_from: who may send prompts.
            keep_empty_s: how long a world waits in a room without viewers.
            interrupted_by_agent: whether interrupted speech of the agent interrupts the world.
            conn_options: for opening the session on the server.
        """
        super().__init__()
        self._opening = Opening(model, program, prompt, seed, parameters, voice, url, owner, engine)
        self._camera = "" if not webcam else participant_identity
        self._chat = chat
        self._prompts_from = prompts_from
        self._keep_empty_s = keep_empty_s
        self._max_bitrate = max_bitrate
        self._interrupted_by_agent = interrupted_by_agent
        self._conn_options = conn_options
        self._identity = ""
        self._bridge: RoomBridge | None = None
        self._world_task: asyncio.Task[None] | None = None
        self._cut_off = asyncio.Event()
        self._tools = world_tools(Player(lambda: self._bridge))

    @property
    def avatar_identity(self) -> str:
        """The agent's own identity: it publishes the world itself."""
        return self._room.local_participant.identity if self._room else self._identity

    @property
    def provider(self) -> str:
        """The name in metrics."""
        return "reverie"

    @property
    def tools(self) -> list[Tool | Toolset]:
        """`set_scene`, `move` and `look`, for the `tools` of an `Agent`."""
        return list(self._tools)

    @property
    def bridge(self) -> "RoomBridge":
        """The bridge of the world, for everything else.

        Raises:
            RuntimeError: the world was not started, or has ended.
        """
        if self._bridge is None:
            raise RuntimeError("there is no world: it was not started, or it has ended")
        return self._bridge

    def room_options(self, *, chat: bool = True) -> room_io.RoomOptions:
        """Return options for an `AgentSession` that neither hears nor speaks.

        Args:
            chat: each line of the chat is a prompt; otherwise the chat is for the agent's language
                model, which answers in writing.
        """
        own = room_io.TextInputOptions(text_input_cb=self.on_chat)
        return room_io.RoomOptions(
            audio_input=False,
            audio_output=False,
            text_output=not chat,
            text_input=own if chat else room_io.TextInputOptions(),
            close_on_disconnect=False,
        )

    async def start(self, agent_session: AgentSession[Any], room: rtc.Room) -> None:
        """Open a world and show it in the room; return once it is served there.

        The room is told why none could be opened (`world.status`, `world.reason`).

        Raises:
            APIConnectionError: no world was opened, after all retries.
            APIStatusError: the server refuses to open such a world.
        """
        if self._world_task is not None:
            raise RuntimeError("a WorldSession can be started only once")
        await super().start(agent_session, room)
        if self._interrupted_by_agent:
            agent_session.on("agent_state_changed", self._listen_to_agent)
            self._listen_to_agent()
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._world_task = asyncio.create_task(self._run(room, served), name="world")
        try:
            await asyncio.wait([served, self._world_task], return_when=asyncio.FIRST_COMPLETED)
            if not served.done():
                await self._world_task  # raises what went wrong
                raise APIConnectionError("the world ended before it was shown")
        except APIError as error:
            await tell_failed(room, error.message)
            await self.aclose()
            raise
        except BaseException:
            await self.aclose()
            raise

    async def update_prompt(self, text: str) -> str:
        """Send a prompt, and return the control's id."""
        return await self.bridge.say(text)

    async def send_action(
        self,
        action: Mapping[str, str | float],
        edge: Literal["tap", "press", "release"] = "tap",
    ) -> str:
        """Press keys or move axes, and return the control's id."""
        return await self.bridge.act(action, edge)

    async def push_video(self, frame: rtc.VideoFrame) -> str:
        """Push a picture into the session."""
        rgb = frame.convert(rtc.VideoBufferType.RGB24)
        return await self.bridge.show(
            np.frombuffer(rgb.data, np.uint8).reshape(rgb.height, rgb.width, 3)
        )

    async def interrupt(self) -> str:
        """Drop what is unfinished or unseen, and continue from the last seen chunk."""
        return await self.bridge.interrupt()

    async def on_chat(self, _: AgentSession[Any], event: room_io.TextInputEvent) -> None:
        """Take a line of chat as a prompt: the `text_input_cb` of an `AgentSession`."""
        from reverie.rtc.livekit import InputRefusedError

        if self._bridge is None:
            logger.warning("a line of chat came while there is no world")
            return
        by = event.participant.identity if event.participant else ""
        try:
            await self._bridge.say(event.text, by=by)
        except InputRefusedError as refusal:
            self._bridge.refuse(by, refusal)

    async def aclose(self) -> None:
        """End the world and leave the room as it was. Idempotent."""
        task, self._world_task = self._world_task, None
        if task is not None:
            await utils.aio.cancel_and_wait(task)
        if self._agent_session is not None:
            self._agent_session.off("agent_state_changed", self._listen_to_agent)
        if self._room is not None:
            self._identity = self.avatar_identity if self._room.isconnected() else self._identity
            self._room.off("connection_state_changed", self._on_connection_state_changed)
        self._room = None  # or the base would remove the agent itself from the room
        await super().aclose()

    async def _run(self, room: rtc.Room, served: "asyncio.Future[None]") -> None:
        try:
            ending = await self._serve(room, served)
        except Exception as error:
            if not served.done():  # `start` raises it
                raise
            from reverie.rtc.livekit import RoomEnding

            logger.exception("the world failed")
            ending = RoomEnding("failed", str(error))
        finally:
            self._bridge = None
        logger.info("the world has ended: %s %s", ending.reason, ending.message)
        self.emit("world_ended", ending)

    async def _serve(self, room: rtc.Room, served: "asyncio.Future[None]") -> "RoomEnding":
        # The import takes a second or two, which would block the event loop of the agent.
        bridges = await asyncio.to_thread(import_module, "reverie.rtc.livekit")
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(JOIN_S):
                await connected(room)
            session = await self._opening.enter(stack, self._conn_options)
            self._bridge = bridge = bridges.RoomBridge(session, self._options())
            async with asyncio.TaskGroup() as tasks:
                cutting = tasks.create_task(self._follow_agent(bridge), name="interruptions")
                asyncio.get_running_loop().call_soon(_settle, served)
                ending: RoomEnding = await bridge.serve(room)
                cutting.cancel()
        return ending

    def _options(self) -> "BridgeOptions":
        from reverie.rtc.livekit import BridgeOptions

        options = BridgeOptions(
            takes_chat=self._chat,
            prompts_from=self._prompts_from,
            camera=self._camera if is_given(self._camera) else None,
        )
        if is_given(self._keep_empty_s):
            options = replace(options, keep_empty_s=self._keep_empty_s)
        if is_given(self._max_bitrate):
            options = replace(options, max_bitrate=self._max_bitrate)
        return options

    def _listen_to_agent(self, _: object = None) -> None:
        """Append a tail to the agent's audio output, once it has one."""
        if self._agent_session is None:
            return
        tail = install_tail(self._agent_session.output.audio, self._cut_off.set)
        if tail is not None:
            self._agent_session.output.replace_audio_tail(tail)

    async def _follow_agent(self, bridge: "RoomBridge") -> None:
        from reverie.rtc.livekit import InputRefusedError

        while True:
            await self._cut_off.wait()
            self._cut_off.clear()
            try:
                await bridge.interrupt()
            except InputRefusedError as refusal:
                logger.warning("the world was not interrupted: %s", refusal)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
