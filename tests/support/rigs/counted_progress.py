"""A progress that shows nothing and keeps what it is told."""

from reverie.bench.progress import Progress


class ProgressLog(Progress):
    """Keeps what is said, and how far it came."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.said: list[str] = []
        self.total = self.sum = 0.0

    def say(self, what: str) -> None:
        self.said.append(what)

    def expect(self, total: float) -> None:
        self.total = total

    def advance(self, more: float = 1.0) -> None:
        self.sum += more
