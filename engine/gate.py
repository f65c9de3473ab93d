"""Whether a loop may run at all: paused or not, watched or not."""


class Gate:
    """What a session has said about running. A chunk that has begun is no place to stop unwatched.

    Attributes:
        paused: whether it waits for `resume` or `advance`.
        refresh: what was held is planned anew when controls have come.
    """

    def __init__(self) -> None:
        """Let everything run."""
        self.paused = False
        self.refresh = False
        self._watched = True
        self._allowance = 0  # chunks that may be put out while paused

    def pause(self) -> None:
        """Run no further unit; may be repeated."""
        self.paused, self.refresh, self._allowance = True, True, 0

    def resume(self) -> None:
        """Go on; may be repeated."""
        self.paused, self._allowance = False, 0

    def advance(self, chunks: int) -> None:
        """Put out `chunks` more chunks, then be paused."""
        if not self.paused:
            self.pause()
        self._allowance += chunks

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while nobody watches."""
        self._watched = watched

    def shown(self) -> None:
        """Note that a chunk is out."""
        self._allowance = max(0, self._allowance - 1)

    def skip(self) -> None:
        """Forget the chunks that were still to be put out while paused."""
        self._allowance = 0

    @property
    def held(self) -> bool:
        """Whether nothing may run before `resume` or `advance`."""
        return self.paused and not self._allowance

    def open(self, begun: bool) -> bool:
        """Tell whether a unit may run now, of a chunk that has `begun` or of a new one."""
        return not self.held and (self._watched or begun)
