"""What a worker's session does when it is asked: each request, carried out on all its loops."""

from reverie.engine.errors import (
    NoSnapshotError,
    UnknownSnapshotError,
)
from reverie.engine.loop_status import Position
from reverie.gpu_pool.wire.session_messages import (
    ActNow,
    Advance,
    Interrupt,
    Pause,
    Request,
    Reset,
    RestoreSnapshot,
    Resume,
    Rewind,
    TakeSnapshot,
)
from reverie.gpu_pool.worker.session_loops import SessionLoops
from reverie.models.contract.loop import Durable


class SessionRequests(SessionLoops):
    """The part of a worker's session that requests are for. Step thread only."""

    def carry_out(self, message: Request) -> Position:
        """Do what a request asks, and return where the session is then.

        Raises:
            EngineRefusedError: a loop refused it; nothing has changed.
        """
        match message:
            case Pause():
                return self.pause()
            case Resume():
                return self.resume()
            case Advance(chunks=chunks):
                return self.advance(chunks)
            case Interrupt(seen=seen, loop=loop, seen_of=seen_of):
                return self.interrupt(seen, loop, seen_of)
            case ActNow(seen=seen, seen_of=seen_of, ahead_us=ahead_us):
                return self.take_back(seen, seen_of, ahead_us)
            case Rewind(chunk=chunk):
                return self.rewind(chunk)
            case Reset(seed=seed):
                return self.reset(seed)
            case TakeSnapshot(name=name):
                return self.snapshot(name)
            case RestoreSnapshot(name=name):
                return self.restore(name)

    def pause(self) -> Position:
        """Run no further unit."""
        for driver in self._drivers.values():
            driver.pause()
        return self.position

    def resume(self) -> Position:
        """Run again."""
        for driver in self._drivers.values():
            driver.resume()
        return self.position

    def advance(self, chunks: int) -> Position:
        """Put out `chunks` more chunks, then be paused; loops of text stay paused.

        Other loops with media go as far as those chunks do.
        """
        for driver in self._drivers.values():
            if driver is self.leading or driver.loop == self._timing:
                driver.advance(chunks)
            elif driver.is_paced:
                driver.follow()
            else:
                driver.pause()
        return self.position

    def interrupt(self, seen: int | None, loop: str | None, seen_of: str = "") -> Position:
        """Drop what is unfinished or unseen, of one loop or of all.

        Args:
            seen: the last chunk that was seen; None: nothing was.
            loop: the only loop to interrupt.
            seen_of: the loop whose chunk was seen; empty for the session's.

        Returns:
            The position of that loop; of the session, if it is all of them.

        Raises:
            UnknownLoopError: the program runs no such loop.
            LoopEndedError: it has ended.
        """
        drivers = [self.driver(loop)] if loop is not None else self._all_alive()
        seen_us = self._told(seen_of).media_us(-1 if seen is None else seen)
        for driver in drivers:
            if driver.is_paced:
                driver.interrupt_until(seen_us)
            else:
                driver.cancel()
        if loop is not None:
            return drivers[0].position
        return self._go_on_together()

    def take_back(self, seen: int | None, seen_of: str, ahead_us: int) -> Position:
        """Drop what would still be unseen after a while, and was made under no newer control.

        Loops of text are not broken off. While paused nothing is dropped, nor where making it
        again takes as long as seeing it.

        Args:
            seen: the last chunk that was seen; None: nothing was.
            seen_of: the loop whose chunk that is; empty for the session's.
            ahead_us: media after it that will have been seen by then.
        """
        seen_us = self._told(seen_of).media_us(-1 if seen is None else seen)
        paced = [driver for driver in self._paced() if not driver.ended]
        until_us = max([seen_us + ahead_us, *(driver.acted_us for driver in paced)])
        if self.leading.paused or all(
            driver.media_us(None) - until_us <= driver.worth_us for driver in paced
        ):
            return self.position
        for driver in paced:
            driver.interrupt_until(until_us)
        return self._go_on_together()

    def rewind(self, chunk: int) -> Position:
        """Continue from right after `chunk` of the leading loop; what is refused changes nothing.

        Other loops with media go back to the same media time, and loops of text end what they are
        saying.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        back_us = self.leading.media_us(chunk)
        paced = [driver for driver in self._followers() if driver.is_paced]
        for driver in paced:
            driver.require_kept(back_us)
        self.leading.rewind(chunk)
        for driver in self._followers():
            if driver.is_paced:
                driver.rewind_until(back_us)
            else:
                driver.cancel()
        return self._go_on_together()

    def reset(self, seed: int | None) -> Position:
        """Begin again under the prompt and parameters now in effect; None keeps the seed."""
        for driver in self._all_alive():
            driver.reset(seed)
        return self._go_on_together()

    def snapshot(self, name: str) -> Position:
        """Keep the state after the newest chunk, and those of the other loops that have one.

        Raises:
            NoSnapshotError: no chunk was put out yet, or its state cannot be kept.
            SnapshotLimitError: there are too many already.
        """
        position = self.leading.snapshot(name)
        now_us = self.leading.media_us(None)
        for driver in self._followers():
            try:
                driver.snapshot(name, now_us if driver.is_paced else None)
            except NoSnapshotError:
                continue  # it has said nothing yet, and will begin from the request
        return position

    @property
    def durables(self) -> tuple[Durable, ...]:
        """What outlives this worker of its present state."""
        made = [driver.durable() for driver in self._drivers.values()]
        return tuple(durable for durable in made if durable is not None)

    def kept(self, name: str) -> tuple[Durable, ...]:
        """Return what outlives this worker of a snapshot."""
        found = [driver.kept(name) for driver in self._drivers.values()]
        return tuple(durable for durable in found if durable is not None)

    def restore(self, name: str) -> Position:
        """Continue from a kept state; a loop that had said nothing then begins from the request.

        Raises:
            UnknownSnapshotError: there is none of that name.
        """
        self.leading.restore(name)
        for driver in self._followers():
            try:
                driver.restore(name)
            except UnknownSnapshotError:
                driver.reset()
        return self._go_on_together()

    def _go_on_together(self) -> Position:
        """Have every loop with media begin its next frame at the same media time."""
        paced = [driver for driver in self._paced() if not driver.ended]
        next_us = max((driver.position.pts_us for driver in paced), default=0)
        for driver in paced:
            driver.go_on_at(next_us)
        return self.position
