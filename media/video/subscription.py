"""One watcher of a fan-out."""

from collections.abc import Callable

from reverie.media.types import MediaFrame

Deliver = Callable[[MediaFrame], None]
"""Takes one frame, at once, on the event loop. Bounding what it keeps is its own business."""


class VideoSubscription:
    """Hands frames to one watcher, in order. The fan-out sees to it that the first is a key."""

    def __init__(
        self,
        deliver: Deliver,
        request_key: Callable[[], None],
        leave: Callable[["VideoSubscription"], None],
        limit: Callable[["VideoSubscription", int | None], None],
    ) -> None:
        """Made by `VideoFanout.subscribe`."""
        self._deliver = deliver
        self._request_key = request_key
        self._leave = leave
        self._limit = limit
        self._closed = False

    def request_key_frame(self) -> None:
        """Ask for a frame that can be decoded without earlier ones. Requests coalesce."""
        if not self._closed:
            self._request_key()

    def limit(self, bits_per_s: int | None) -> None:
        """Say how many bits a second this watcher can take; None: it does not know.

        All who share a rendition get what the lower median of those who know can take.
        """
        if not self._closed:
            self._limit(self, bits_per_s)

    def close(self) -> None:
        """Stop; nothing is delivered afterwards. Closing twice is closing once."""
        if not self._closed:
            self._closed = True
            self._leave(self)

    def hand_over(self, frame: MediaFrame) -> None:
        """Deliver a frame, unless the watcher has left."""
        if not self._closed:
            self._deliver(frame)
