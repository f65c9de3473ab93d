"""Whether a loop may run at all: paused or not, watched or not."""


class RunGate:
    """What a session has said about running. A chunk that has begun is no place to stop unwatched.

    Attributes:
        paused: whether it waits for `resume` or `advance`.
        refresh: what was held is planned anew when controls have come.
        follows: while paused, it may run as far as the loop that leads has come.
    """

    def __init__(self) -> None:
        """Let everything run."""
        self.paused = False
        self.refresh = False
        self.follows = False
        self._watched = True
        self._budget = 0  # chunks that may be put out while paused

    def pause(self) -> None:
        """Run no further unit; may be repeated."""
        self.paused, self.refresh = True, True
        self.skip()

    def resume(self) -> None:
        """Go on; may be repeated."""
        self.paused = False
        self.skip()

    def advance(self, chunks: int) -> None:
        """Put out `chunks` more chunks, then be paused."""
        if not self.paused:
            self.pause()
        self._budget += chunks

    def follow(self) -> None:
        """While paused, go as far as the loop that leads, then be paused."""
        if not self.paused:
            self.pause()
        self.follows = True

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while nobody watches."""
        self._watched = watched

    def shown(self) -> None:
        """Note that a chunk is out."""
        self._budget = max(0, self._budget - 1)

    def skip(self) -> None:
        """Forget the chunks that were still to be put out while paused."""
        self._budget, self.follows = 0, False

    @property
    def held(self) -> bool:
        """Whether nothing may run before `resume`, `advance` or, where it follows, another loop."""
        return self.paused and not self._budget

    def open(self, begun: bool, *, behind: bool = False) -> bool:
        """Tell whether a unit may run now.

        Args:
            begun: whether it is one of a chunk that has begun.
            behind: whether the loop that leads has come further.
        """
        held = self.held and not (self.follows and behind)
        return not held and (self._watched or begun)
