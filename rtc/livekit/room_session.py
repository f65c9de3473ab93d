"""The tasks that serve a session to one room, from the first track to the last event.

The room's callbacks (`room_events.py`) only record; everything that waits is a task of one
group here. The end of one task ends the service of the room, and `run` returns why.
"""

import asyncio
from contextlib import aclosing, suppress

from livekit import rtc

from reverie.rtc.livekit.calls import Answer, Calls
from reverie.rtc.livekit.camera import Camera
from reverie.rtc.livekit.chat import READERS, TextIntake
from reverie.rtc.livekit.command_gateway import OWN
from reverie.rtc.livekit.errors import (
    InputRefusedError,
    NotPublishedError,
    RoomEnding,
    RoomSessionOverError,
)
from reverie.rtc.livekit.picture_track import REPEAT_S
from reverie.rtc.livekit.rest_rules import Rest
from reverie.rtc.livekit.room_context import RoomContext
from reverie.rtc.livekit.room_events import RoomEvents
from reverie.rtc.livekit.room_tracks import RoomTracks
from reverie.rtc.livekit.status import note
from reverie.rtc.wire.errors import first_of
from reverie.sessions.protocol.events import (
    AnyEvent,
    ControlApplied,
    ControlSuperseded,
    Error,
    SessionClosed,
    SessionInterrupted,
)
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit, TextDelta

LEFT = "left"
"""The reason of a room session that was cancelled."""
EXACT = ("rgb24", "pcm16")
"""The codecs that tracks are made from, because LiveKit encodes by itself."""

MEND_S = 1.0
"""Pause before the next try to publish a track that the room did not take."""
CHECK_S = 2.0
"""Interval of the checks whether the server still takes the tracks."""
MEASURE_S = 2.0
"""Interval of the frame rate measurement."""
LAST_EVENTS_S = 2.0
"""Limit for telling the room why a world ended."""


class RoomSession:
    """Serves one room.

    Attributes:
        shown: set once the room has the track of the world's pictures.
    """

    def __init__(self, context: RoomContext, room: rtc.Room) -> None:
        """Serve nothing yet; needs the running loop."""
        self.shown = asyncio.Event()
        self.camera = Camera(context.session, context.options, self.refuse)
        self._context = context
        self._room = room
        self._tracks = RoomTracks(context.session, room.local_participant, context.options)
        self._texts = TextIntake(context.options, context.gateway.say, self.refuse)
        calls = Calls(context.gateway, self).handlers()
        self._room_events = RoomEvents(context, room, self, self.camera, self._texts, calls)
        self._torn = asyncio.Event()  # the room may lack a track

    async def run(self) -> RoomEnding:
        """Serve until the room or the session is over; cancelled, leave the room as it was."""
        ending = RoomEnding(LEFT)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._start(tasks)
                self._context.gateway.here = self.is_here
                with self._room_events.listening():
                    raise RoomSessionOverError(await self._room_events.over)
        except* RoomSessionOverError as group:
            ending = first_of(group).ending
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._context.options.room_s):
                    await self._leave(told=ending.reason != LEFT)
        return ending

    def newest_chunk(self) -> int:
        """Return the newest chunk that was shown; -1 before the first."""
        return self._context.chunk

    def is_here(self, identity: str) -> bool:
        """Tell whether a participant is in the room."""
        return identity in self._room.remote_participants

    def ask_rest(self, wanted: bool) -> None:
        """Pause or resume, as a participant asked."""
        self._context.rest_rules.rest(Rest.ASKED, wanted)

    def state(self) -> Answer:
        """Return all that a front end shows."""
        told = {name: value for name, value in self._context.board.shown.values() if value}
        return {**told, "view": self._context.session.view.model_dump(mode="json")}

    def refuse(self, by: str, why: InputRefusedError) -> None:
        """Tell one participant alone that their request is refused."""
        self._context.publisher.refuse(by, why)

    def torn(self) -> None:
        """Note that the room may lack a track, and has forgotten the attributes."""
        self._torn.set()
        self._context.board.forget()

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        context, speaker = self._context, self._room.local_participant
        tasks.create_task(self._feed(), name="world to room")
        tasks.create_task(self._steer(), name="steering")
        tasks.create_task(self._mend(), name="mend tracks")
        tasks.create_task(self._check(), name="check tracks")
        tasks.create_task(self._measure(), name="measure")
        tasks.create_task(self._repeat(), name="repeat")
        tasks.create_task(self._watch(), name="viewers")
        tasks.create_task(self.camera.show(), name="camera")
        tasks.create_task(context.rest_rules.keep(), name="rest")
        tasks.create_task(context.board.tell(speaker), name="attributes")
        tasks.create_task(context.publisher.send(speaker), name="events")
        tasks.create_task(context.captions.send(speaker), name="captions")
        for number in range(READERS):
            tasks.create_task(self._texts.serve(), name=f"texts {number}")
        context.board.forget()

    async def _feed(self) -> None:
        """Send the session's output to the room, at the room's pace."""
        last: AnyEvent | None = None
        for init in self._context.inits.values():
            await self._begin(init)
        async with aclosing(self._context.session.stream()) as events:
            async for event in events:
                last = event
                await self._take(event)
        ending = RoomEnding("session_over", _close_reason(last))
        self._context.board.change(status="ended", reason=ending.message)
        await self._send_last_events()
        raise RoomSessionOverError(ending)

    async def _take(self, event: AnyEvent) -> None:
        context = self._context
        match event:
            case MediaInit(stream=stream, codec=codec):
                if codec not in EXACT:
                    message = f"{stream} comes as {codec}; attach for {' and '.join(EXACT)}"
                    raise RoomSessionOverError(RoomEnding("needs_decoder", message))
                context.inits[stream] = event
                await self._begin(event)
            case MediaChunk():
                await self._tracks.show(event)
                context.chunk = max(context.chunk, event.chunk) if event.last else context.chunk
            case SessionInterrupted(chunk=chunk):
                context.chunk = chunk
                await self._tracks.cut()
            case TextDelta():
                context.captions.note(event)
                if event.cut:
                    self._tracks.cancel_speech()
            case ControlApplied() | ControlSuperseded():
                context.receipts.note(event)
                context.publisher.note(event, context.gateway.author(event.control))
        if not isinstance(event, ControlApplied | ControlSuperseded):
            context.publisher.note(event, None)
        context.board.put(note(context.board.status, event))

    async def _begin(self, init: MediaInit) -> None:
        try:
            await self._tracks.begin(init)
        except NotPublishedError:
            self._torn.set()
        else:
            self.shown.set()

    async def _steer(self) -> None:
        while True:
            steer = await self._context.input_queue.take()
            try:
                await self._context.gateway.steer(steer)
            except InputRefusedError as why:
                if steer.by != OWN:
                    self.refuse(steer.by, why)

    async def _mend(self) -> None:
        """Publish what the room has lost, however often that takes."""
        while True:
            await self._torn.wait()
            self._torn.clear()
            if await self._tracks.mend():
                self.shown.set()
            else:
                self._torn.set()
                await asyncio.sleep(MEND_S)

    async def _check(self) -> None:
        """Notice tracks that the server has taken away, which no event tells."""
        while True:
            await asyncio.sleep(CHECK_S)
            is_up = self._room.connection_state == rtc.ConnectionState.CONN_CONNECTED
            if is_up and not await self._tracks.check():
                self._torn.set()

    async def _measure(self) -> None:
        before = 0
        while True:
            await asyncio.sleep(MEASURE_S)
            shown = self._tracks.video.shown if self._tracks.video else 0
            fps = max(shown - before, 0) / MEASURE_S
            self._context.board.change(fps=f"{fps:.0f}")
            before = shown

    async def _repeat(self) -> None:
        """Repeat the newest picture while the world is paused, so that a new viewer sees it."""
        while True:
            await asyncio.sleep(REPEAT_S)
            if self._tracks.video is not None and not self._context.rest_rules.parked:
                self._tracks.video.repeat()

    async def _watch(self) -> None:
        await self._context.rest_rules.watch()
        in_line = self._context.session.view.state == "queued"
        watched = f"no viewers for keep_empty_s ({self._context.options.keep_empty_s:g} s)"
        message = "no viewers are left to wait for a slot" if in_line else watched
        raise RoomSessionOverError(RoomEnding("abandoned", message))

    async def _leave(self, *, told: bool) -> None:
        gone = not self._room.isconnected()
        await self._tracks.close(gone=gone)
        if not gone and not told:
            await self._context.board.retract(self._room.local_participant)

    async def _send_last_events(self) -> None:
        """Tell the room why the world has ended, if the room still answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EVENTS_S):
                await self._context.board.all_told()
                await self._context.publisher.all_sent()


def _close_reason(last: AnyEvent | None) -> str:
    match last:
        case SessionClosed(reason=reason):
            return reason
        case Error(code=code):
            return code
    return "detached"
