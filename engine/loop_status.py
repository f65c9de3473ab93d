"""What a driver tells about its loop: where it is, and whether it runs."""

from dataclasses import dataclass
from typing import Generic

from reverie.engine.loop_context import LoopContext
from reverie.models.contract.blocks import LoopState
from reverie.models.contract.loop import LoopRequest, S


@dataclass(frozen=True, slots=True)
class Position:
    """The newest chunk of a session, and its next media time.

    Attributes:
        chunk: the last chunk behind it; -1 before the first.
        pts_us: media time at which the next frame will begin.
    """

    chunk: int
    pts_us: int


class LoopStatus(Generic[S]):
    """The part of a driver that can be read at any time and changes nothing."""

    def __init__(self, context: LoopContext[S]) -> None:
        self._context = context

    @property
    def position(self) -> Position:
        """Where the loop is now."""
        return Position(self._context.states.now.chunk, self._context.emitter.next_us)

    @property
    def session(self) -> str:
        """The session that the loop belongs to."""
        return self._context.session

    @property
    def loop(self) -> str:
        """Which loop it is."""
        return self._context.kernel.spec.name

    @property
    def next_chunk(self) -> int:
        """The number that the next new chunk will have."""
        return self._context.emitter.chunk + self._context.open_chunk.frames_out

    @property
    def request(self) -> LoopRequest:
        """The request for a driver that replaces this one."""
        return self._context.wanted_request()

    @property
    def shown_state(self) -> LoopState | None:
        """The newest state whose frames are out, for loops that read this one; None before one."""
        newest = self._context.states.history.newest
        return newest.state if newest.shown else None

    @property
    def is_paced(self) -> bool:
        """Whether a viewer's playhead paces it; a loop of text has a rate of its own."""
        return self._context.lead is not None

    @property
    def paused(self) -> bool:
        """Whether it waits for `resume` or `advance`."""
        return self._context.gate.paused

    @property
    def held(self) -> bool:
        """Whether it is paused, with no chunk left to advance by."""
        return self._context.gate.held

    @property
    def state(self) -> S:
        """The state that the next unit starts from."""
        return self._context.states.now.state

    @property
    def ended(self) -> bool:
        """Whether the loop has failed for good or was closed: `ready` will only say None."""
        return self._context.ended

    @property
    def acted_us(self) -> int:
        """The media time at which the newest chunk ended in which a client's control acts."""
        return self._context.acted_us

    @property
    def worth_us(self) -> int:
        """How much media has to be taken back for a control to show sooner."""
        return self._context.lead.worth_us if self._context.lead is not None else 0

    @property
    def kept_us(self) -> int:
        """The media time that it can go back to."""
        history = self._context.states.history
        return next(iter(history)).media_us if len(history) else 0

    def media_us(self, chunk: int | None) -> int:
        """Return when the newest kept chunk that is not after `chunk` ended; None: the newest."""
        history = self._context.states.history
        if not len(history):  # it was closed
            return self._context.emitter.next_us
        return (history.newest if chunk is None else history.at_or_before(chunk)).media_us
