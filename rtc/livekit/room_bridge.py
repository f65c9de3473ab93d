"""A session for rooms, with all state that outlives one room.

    async with reverie.connect(url, prompt="a desert") as session:
        ending = await RoomBridge(session).serve(room)

`serve` returns when that room or the session has ended. Served to another room afterwards, the
world continues there, with the same driver. The program that runs the bridge may steer as well; it
is never refused because of a driver.
"""

import asyncio
from collections.abc import Mapping
from typing import Literal

import numpy as np
from livekit import rtc
from numpy.typing import NDArray

from reverie.rtc.livekit.captions import Captions
from reverie.rtc.livekit.command_gateway import OWN, CommandGateway
from reverie.rtc.livekit.control_lock import LockChange
from reverie.rtc.livekit.errors import InputRefusedError, RoomEnding
from reverie.rtc.livekit.event_publisher import EventPublisher
from reverie.rtc.livekit.input_queue import RoomInputQueue
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.rest_rules import RestRules
from reverie.rtc.livekit.room_context import Receipt, RoomContext
from reverie.rtc.livekit.room_session import RoomSession
from reverie.rtc.livekit.status import StatusBoard, note
from reverie.sessions import Session
from reverie.sessions.protocol.events import SessionUpdated


class RoomBridge:
    """Serves one session to one room at a time."""

    def __init__(self, session: Session, options: BridgeOptions | None = None) -> None:
        options = options or BridgeOptions()
        self._context = RoomContext(
            session=session,
            options=options,
            gateway=CommandGateway(session, options, self._control_lock_changed),
            input_queue=RoomInputQueue(),
            rest_rules=RestRules(session, options, self._rest_changed),
            board=StatusBoard(options),
            publisher=EventPublisher(options),
            captions=Captions(options),
        )
        session.connection_changed = lambda there: self._context.board.lose(not there)
        self._room_session: RoomSession | None = None
        self._there = asyncio.Event()

    @property
    def session(self) -> Session:
        """The session that is served."""
        return self._context.session

    @property
    def driver(self) -> str | None:
        """The identity of the driver; None without one."""
        return self._context.gateway.control_lock.driver

    @property
    def heard(self) -> str:
        """The text of the newest utterance of the world."""
        return self._context.captions.heard

    async def serve(self, room: rtc.Room) -> RoomEnding:
        """Serve a connected room until it or the session has ended, or this is cancelled."""
        if not room.isconnected():
            return RoomEnding("not_connected", "the room is not connected", final=False)
        room_session = self._room_session = RoomSession(self._context, room)
        room_session.camera.driven_by(self.driver)
        self._there.set()
        try:
            return await room_session.run()
        finally:
            self._room_session = None
            self._there.clear()

    async def shown(self) -> None:
        """Wait until a room has the track of the world's pictures."""
        await self._there.wait()
        if self._room_session is not None:
            await self._room_session.shown.wait()

    # --- commands of the program itself ---

    async def say(
        self,
        text: str,
        mode: Literal["replace", "append", "turn"] = "replace",
        *,
        by: str = OWN,
    ) -> str:
        """Send a prompt, and return the control's id.

        Args:
            by: the participant who sent it, who needs the control lock for it.

        Raises:
            InputRefusedError: the session refuses, or does not answer; so do the methods below.
        """
        return await self._context.gateway.say(by, text, mode)

    async def receipt(self, control: str, limit_s: float = 5.0) -> Receipt | None:
        """Wait for the receipt of a control; None when it does not come in time."""
        return await self._context.receipts.of(control, limit_s)

    async def act(
        self,
        action: Mapping[str, str | float],
        edge: Literal["tap", "press", "release"] = "tap",
    ) -> str:
        """Press keys or move axes, and return the control's id."""
        return await self._context.gateway.act(OWN, action, edge)

    async def interrupt(self, loop: str | None = None) -> str:
        """Drop what is unfinished or unseen, also what waits in the tracks of the room."""
        return await self._context.gateway.do(OWN, lambda session: session.interrupt(loop))

    async def show(self, picture: NDArray[np.uint8]) -> str:
        """Push a picture [H, W, 3] into the session, as a camera does."""
        return await self._context.gateway.do(OWN, lambda session: session.push_video(picture))

    def refuse(self, by: str, why: InputRefusedError) -> None:
        """Tell a participant that a request, which the program passed on, is refused."""
        if by != OWN:
            self._context.publisher.refuse(by, why)

    # --- callbacks ---

    def _control_lock_changed(self, change: LockChange) -> None:
        context = self._context
        if change.before is not None:
            context.input_queue.release(change.before)
        context.board.change(
            driver=change.now or "", asking=context.gateway.control_lock.asking or ""
        )
        context.publisher.tell(
            {"type": "world.driver", "driver": change.now, "before": change.before}
        )
        if self._room_session is not None:
            self._room_session.camera.driven_by(change.now)

    def _rest_changed(self) -> None:
        context = self._context
        parked, was = context.rest_rules.parked, context.board.status.status == "parked"
        if parked and not was:
            context.board.change(status="parked")
            context.publisher.tell({"type": "world.parked"})
        if was and not parked:
            context.board.change(status="live")
            context.board.put(note(context.board.status, SessionUpdated(view=context.session.view)))
            context.publisher.tell({"type": "world.revived"})
        context.board.change(viewers=str(len(context.rest_rules.viewers)))
