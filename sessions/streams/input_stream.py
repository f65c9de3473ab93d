"""One input stream of a session: from a client's pushes to the loop's inputs.

    push -> InputQueue -> decoding thread (`media`) -> the loop's mailbox -> receipt: room for more

Nothing is decoded on the event loop. No more is under way to the loop than its mailbox holds. So
while a loop is paused or not watched, a client that pushes a clip waits, a camera's older pictures
are dropped, and no memory grows.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from reverie.engine.inputs import StreamInput
from reverie.media import BadInputError, MissingExtraError, Piece
from reverie.models.contract.controls import MediaInput, Merge
from reverie.models.contract.spec import InputSpec
from reverie.sessions.backend.control_receipts import ControlReceipts, Receipt, Tell
from reverie.sessions.backend.worker_channel import WorkerChannel
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import ControlSuperseded
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.session_state import InputState
from reverie.sessions.streams.barge_in import OnSpeech
from reverie.sessions.streams.input_decoder import InputDecoder, Intake
from reverie.sessions.streams.input_queue import InputQueue, MediaPush

logger = logging.getLogger(__name__)

SPARE_PIECES = 2
"""Of a `LATEST` stream, beyond what waits in the mailbox: one that acts, one on its way."""


class InputStream:
    """Decodes pushes into the media that the loop declares. `run` is a child of the session."""

    def __init__(
        self,
        spec: InputSpec,
        state: InputState,
        intake: Intake,
        link: WorkerChannel,
        receipts: ControlReceipts,
        limits: SessionLimits,
        heard: OnSpeech | None = None,
    ) -> None:
        """Take nothing yet.

        Args:
            spec: what the loop declares; with a capacity of 0 it gets nothing of the stream.
            state: the counts to keep.
            intake: decodes.
            link: the channel to the loop.
            receipts: the session's.
            limits: the deployment's.
            heard: called when speech begins or ends in it; None: speech is not detected.
        """
        self.spec = spec
        self.state = state
        self._decoder = InputDecoder(spec, intake, limits.decode_s)
        self._link = link
        self._receipts = receipts
        self._limits = limits
        self._heard = heard
        self.watcher: Callable[[Piece], None] | None = (
            None  # is called with each piece that the loop gets
        )
        self._queue = InputQueue(spec.merge, limits.input_pieces, limits.input_bytes)
        self._over: CommandError | None = None
        self._current: MediaPush | None = None  # taken from the queue and not yet done
        self._under_way = 0  # pieces that the loop has not settled
        self._room = asyncio.Event()
        spare = SPARE_PIECES if spec.merge is Merge.LATEST else 0
        self._most_under_way = spec.capacity + spare

    def put(self, pushed: MediaPush) -> None:
        """Take a push. Never waits; `pushed.done` is called when it is decoded and has room.

        Raises:
            CommandError: there is no room for it, or the session has ended.
        """
        if self._over is not None:
            raise self._over
        try:
            gone = self._queue.put(pushed)
        except CommandError:
            self.state.refused += 1
            raise
        for older in gone:
            self._give_way(older, pushed.command)

    async def run(self) -> None:
        """Decode pushes and send them to the loop until cancelled.

        Raises:
            InputStuckError: a push could not be decoded in time.
        """
        try:
            while True:
                pushed = await self._next()
                if pushed is None:
                    await self._finish()
                else:
                    await self._serve(pushed)
        finally:
            self._decoder.close()

    def shut(self, error: CommandError) -> None:
        """Refuse the waiting pushes: they will not reach the loop."""
        self._over = error
        current, self._current = self._current, None
        for pushed in (*((current,) if current else ()), *self._queue.take_all()):
            pushed.done(error)

    async def _next(self) -> MediaPush | None:
        """Wait for a push; None when nothing more comes of a clip that has begun."""
        if not self._decoder.open:
            return await self._queue.take()
        try:
            async with asyncio.timeout(self._limits.input_gap_s):
                return await self._queue.take()
        except TimeoutError:
            return None

    async def _finish(self) -> None:
        """End a clip, or sound, that its client left unfinished."""
        try:
            pieces = await self._decoder.finish()
            for piece in pieces if self.spec.capacity else ():
                await self._wait_for_room()
                self._send("", None, piece)
            if self._heard is not None:
                for edge in self._decoder.speech_at_end():
                    self._heard(self.spec.name, edge)
        except (BadInputError, CommandError) as error:
            logger.info("input %s: the end of a clip was lost: %s", self.spec.name, error)

    async def _serve(self, pushed: MediaPush) -> None:
        self._current = pushed
        error: CommandError | None = None
        try:
            pieces = await self._decoder.decode(pushed.raw)
            if self._heard is not None:
                for edge in await self._decoder.speech(pieces):
                    self._heard(self.spec.name, edge)
            await self._hand_over(pushed, pieces)
        except BadInputError as bad:
            error = CommandError(ErrorCode.BAD_MEDIA, str(bad), field="data")
        except MissingExtraError as missing:
            error = CommandError(ErrorCode.NOT_INSTALLED, str(missing), field="stream")
        except CommandError as refused:
            error = refused
        if error is not None:
            self.state.refused += 1
        if self._current is pushed:  # else it was shut
            self._current = None
            pushed.done(error)

    async def _hand_over(self, pushed: MediaPush, pieces: tuple[Piece, ...]) -> None:
        told = False
        for piece in pieces if self.spec.capacity else ():
            await self._wait_for_room()
            if self.spec.merge is Merge.LATEST and self._queue.newest_stands_alone:
                self.state.dropped += 1
                continue
            told = told or piece.last
            self._send(pushed.command, pushed.receipt if piece.last else None, piece)
        if pushed.receipt is not None and not told:  # the loop gets nothing of it
            pushed.receipt(ControlSuperseded(control=pushed.command, by=None))

    async def _wait_for_room(self) -> None:
        try:
            async with asyncio.timeout(self._limits.input_wait_s):
                while self._under_way >= self._most_under_way:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            limit = f"{self._limits.input_wait_s:g} s (input_wait_s)"
            text = f"the model did not accept input within {limit}"
            raise CommandError(
                ErrorCode.TOO_MANY, text, field="stream", retry_after_s=1.0
            ) from None

    def _send(self, command: str, tell: Tell | None, piece: Piece) -> None:
        control = self._receipts.new_id()
        media = MediaInput(piece.pts_us, piece.data, piece.last)
        self._under_way += 1
        if self.watcher is not None:
            self.watcher(piece)
        self.state.pieces += 1
        self.state.newest_us = piece.pts_us
        settled: Callable[[Receipt], None] = partial(self._settled, tell)
        self._link.push(command, (StreamInput(control, self.spec.name, media),), settled)

    def _settled(self, tell: Tell | None, receipt: Receipt) -> None:
        self._under_way -= 1
        self._room.set()
        if tell is not None:
            tell(receipt)

    def _give_way(self, older: MediaPush, newer: str) -> None:
        self.state.dropped += 1
        older.done(None)
        if older.receipt is not None:
            older.receipt(ControlSuperseded(control=older.command, by=newer or None))
