"""How the loops of a session begin: for the first time, in another worker, or after a failure."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reverie.engine.driver import LoopDriver
from reverie.engine.errors import ChunkNotKeptError
from reverie.engine.loop_context import PeerTimes
from reverie.engine.loop_start import LoopStart
from reverie.gpu_pool.wire.session_messages import OpenSession
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.models.contract.blocks import LoopState
from reverie.models.contract.loop import LoopRequest
from reverie.models.contract.spec import LoopSpec, ProgramSpec, StreamKind


class LoopStarts:
    """Makes the drivers of one session. Whatever a model raises passes through."""

    timing: str
    """The loop whose media time is the session's: the first one that has any."""
    reported: tuple[str, ...]
    """The loops whose chunks viewers report: those with pictures, else those with sound."""

    def __init__(
        self,
        model: LoadedModel,
        message: OpenSession,
        drivers: Mapping[str, LoopDriver[Any]],
        origin: Mapping[str, LoopDriver[Any]] | None = None,
    ) -> None:
        """Prepare the starts.

        Args:
            model: what they run on.
            message: what the session was opened with.
            drivers: the session's, by loop, as they are whenever one of them looks at another.
            origin: those of the session that it parts from.
        """
        self._origin = origin or {}
        self._model = model
        self._message = message
        self._drivers = drivers
        self._program: ProgramSpec = model.instance.spec.program(message.program)
        loops = model.loops(message.program)
        media = [loop for loop in loops if loop.has_media]
        self.timing = media[0].name if media else self.leading
        seen = [
            loop for loop in media if any(each.kind is StreamKind.VIDEO for each in loop.streams)
        ]
        self.reported = tuple(loop.name for loop in seen or media)

    @property
    def leading(self) -> str:
        """The loop whose chunks are the session's."""
        return self._program.loops[0]

    def first(self, loop: LoopSpec) -> LoopDriver[Any]:
        """Begin a loop, fork from another, or continue with what a lost worker has left of it."""
        message = self._message
        if loop.name in self._origin:
            return self._parted(loop, self._origin[loop.name])
        chunks = message.chunks if loop.name == self.leading else 0
        durables = {durable.loop: durable for durable in message.durables}
        driver = self._begin(
            loop,
            self._request(loop),
            LoopStart(
                durable=durables.get(loop.name),
                chunks=message.numbers.get(loop.name, message.utterances.get(loop.name, chunks)),
                pts_us=message.pts_us,
            ),
            receipt_for_opening=loop.name == self._reader,
        )
        for snapshot in message.kept:
            for durable in snapshot.durables:
                if durable.loop == loop.name:
                    chunk = snapshot.chunk if loop.name == self.leading else -1
                    driver.keep(snapshot.name, chunk, durable)
        return driver

    def _parted(self, loop: LoopSpec, other: LoopDriver[Any]) -> LoopDriver[Any]:
        assert self._message.origin is not None, "a fork names its origin"
        origin = self._message.origin
        told = self._origin[origin.seen_of or self.leading]
        fork = other.parting(told.media_us(origin.chunk) if other.is_paced else None)
        if origin.exact and loop.name == self.leading and fork.chunk != origin.chunk:
            raise ChunkNotKeptError(
                f"chunk {origin.chunk} is not kept; the nearest is {fork.chunk}"
            )
        paced = [each for each in self._origin.values() if each.is_paced] or [other]
        pts_us = max(each.position.pts_us for each in paced)
        start = LoopStart(chunks=fork.chunk + 1, pts_us=pts_us, checkpoint=fork)
        return self._begin(loop, self._request(loop), start)

    def successor(self, driver: LoopDriver[Any]) -> LoopDriver[Any]:
        """End a loop that has failed and restart it, with what is in effect and what waits."""
        loop = self._model.instance.spec.loop(driver.loop)
        driver.close()
        successor = self._begin(
            loop,
            driver.request,
            LoopStart(
                chunks=driver.next_chunk,
                pts_us=driver.position.pts_us,
                mailbox=driver.hand_over(),
            ),
        )
        if driver.paused:
            successor.pause()
        return successor

    @property
    def _reader(self) -> str | None:
        """The loop that gives the receipt of the opening prompt; None when that was given."""
        message = self._message
        if message.durables or message.chunks or message.utterances or message.origin:
            return None
        loops = self._model.loops(self._program.name)
        return next((loop.name for loop in loops if loop.prompt_tokens), None)

    def _request(self, loop: LoopSpec) -> LoopRequest:
        message = self._message
        specs = self._model.instance.spec.program_parameters(message.program)
        values = {spec.name: spec.default for spec in specs} | dict(message.parameters)
        mine = {spec.name: values[spec.name] for spec in loop.parameters}
        return LoopRequest(message.session, message.seed, message.prompt, mine, message.stop)

    def _begin(
        self,
        loop: LoopSpec,
        request: LoopRequest,
        start: LoopStart[Any],
        *,
        receipt_for_opening: bool = False,
    ) -> LoopDriver[Any]:
        options = replace(
            self._model.options,
            lead=self._program.lead,
            receipt_for_opening=receipt_for_opening,
            has_successor=loop.name != self.leading,
        )
        has_clock = loop.has_media or loop.name == self.timing
        return LoopDriver(
            self._model.kernels[loop.name],
            self._model.instance,
            request,
            options,
            replace(
                start,
                peers={name: partial(self._peer_state, name) for name in loop.reads},
                peer_us=None if has_clock else self._media_us,
                peer_times=self._peer_times(loop),
                frame_memory=self._model.frame_memory,
            ),
        )

    def _peer_state(self, loop: str) -> LoopState | None:
        return self._drivers[loop].shown_state

    def _media_us(self) -> int:
        timing = self._drivers.get(self.timing)
        return timing.position.pts_us if timing is not None else self._message.pts_us

    def _peer_times(self, loop: LoopSpec) -> PeerTimes:
        if not loop.has_media:
            return PeerTimes()
        return PeerTimes(
            leading=None if loop.name == self.timing else self._media_us,
            reported=None if loop.name in self.reported else self._reported_us,
            kept=None if loop.name == self.leading else self._kept_us,
        )

    def _kept_us(self) -> int:
        leading = self._drivers.get(self.leading)
        return leading.kept_us if leading is not None else 0

    def _reported_us(self) -> int:
        drivers = [self._drivers[name] for name in self.reported if name in self._drivers]
        return max((each.position.pts_us for each in drivers if not each.ended), default=0)
