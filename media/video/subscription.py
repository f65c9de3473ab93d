"""One viewer of a fan-out."""

from collections.abc import Callable
from dataclasses import replace

from reverie.media.types import MediaFrame

Deliver = Callable[[MediaFrame], None]
"""Takes one frame, at once, on the event loop. It bounds what it keeps."""


def _nothing(_: "VideoSubscription") -> None:
    pass


class VideoSubscription:
    """Hands frames to one viewer, in order, from a key frame on.

    Attributes:
        held: the viewer's connection is behind, so it gets no frames now.
    """

    def __init__(
        self,
        deliver: Deliver,
        request_key: Callable[[], None],
        leave: Callable[["VideoSubscription"], None],
        limit: Callable[["VideoSubscription", int | None], None],
        resume: Callable[["VideoSubscription"], None] = _nothing,
        *,
        follows: bool = False,
        leads: bool = False,
    ) -> None:
        """Made by `VideoFanout.subscribe`.

        Args:
            deliver: takes the frames.
            request_key: asks for a key frame.
            leave: called once, at `close`.
            limit: notes what the watcher can take.
            resume: called when the watcher is held no longer.
            follows: it takes what is made for others, and makes nothing go on without them.
            leads: the others slow it down neither by their limits nor by their key frames.
        """
        self.follows = follows
        self.leads = leads
        self.held = False
        self._deliver = deliver
        self._request_key = request_key
        self._leave = leave
        self._limit = limit
        self._resume = resume
        self._closed = False
        self._skipped = 0  # frames that other viewers got while this one was held

    @property
    def has_gap(self) -> bool:
        """Whether only a key frame can follow what the viewer has."""
        return self._skipped > 0

    def request_key_frame(self) -> None:
        """Request a key frame. Requests are merged."""
        if not self._closed:
            self._request_key()

    def limit(self, bits_per_s: int | None) -> None:
        """Set how many bits a second this viewer can take; None: unknown.

        All viewers of a rendition get the lower median of the known limits.
        """
        if not self._closed:
            self._limit(self, bits_per_s)

    def hold(self, held: bool) -> None:
        """Say whether the watcher's line is behind.

        While all watchers of a rendition are held, its frames wait unencoded, and late ones give
        way to newer ones. While only some are, they skip frames up to a key frame.
        """
        if self._closed or held == self.held:
            return
        self.held = held
        if not held:
            self._resume(self)

    def close(self) -> None:
        """Stop; nothing is delivered afterwards. Idempotent."""
        if not self._closed:
            self._closed = True
            self._leave(self)

    def hand_over(self, frame: MediaFrame) -> None:
        """Deliver a frame of the stream; called by the fan-out."""
        if self._closed:
            return
        if self._skipped and not frame.encoded.key:
            self.pass_over(frame)
            return
        skipped, self._skipped = self._skipped, 0
        self._deliver(replace(frame, dropped=frame.dropped + skipped))

    def pass_over(self, frame: MediaFrame) -> None:
        """Note a frame that this viewer does not get; called by the fan-out."""
        self._skipped += 1 + frame.dropped

    def hand_over_still(self, frame: MediaFrame) -> None:
        """Deliver a single picture outside the stream; called by the fan-out."""
        if not self._closed and not self.held:
            self._deliver(frame)
