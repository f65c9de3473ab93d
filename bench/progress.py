"""The progress of a long measurement and the time left: a bar on standard error."""

import sys
from types import TracebackType
from typing import Never, Self

from tqdm import tqdm

_FORM = "{desc} |{bar}| {percentage:3.0f} %, {elapsed} gone, {remaining} left{postfix}"


class Progress:
    """Counts towards a total that can become known later. Shows nothing when it is `quiet`."""

    def __init__(self, total: float = 0.0, *, quiet: bool = False) -> None:
        """Show an empty bar.

        Args:
            total: the amount of work; 0 until it is known.
            quiet: show nothing, as in tests.
        """
        # A file gets a line every five seconds.
        often_s = 0.2 if sys.stderr.isatty() else 5.0
        self._bar: tqdm[Never] = tqdm(
            total=total or None,
            bar_format=_FORM if total else "{desc}",
            file=sys.stderr,
            mininterval=often_s,
            miniters=0,
            smoothing=0.05,  # steps are uneven: the time left follows all of them
            dynamic_ncols=True,
            disable=quiet,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    @property
    def done(self) -> float:
        """The amount of finished work."""
        return float(self._bar.n)

    def say(self, what: str) -> None:
        """Show what is being done."""
        self._bar.set_description_str(what)

    def expect(self, total: float) -> None:
        """Set the amount of work, with the finished part."""
        self._bar.total = total
        self._bar.bar_format = _FORM
        self._bar.refresh()

    def advance(self, more: float = 1.0) -> None:
        """Add finished work."""
        self.reach(self._bar.n + more)

    def reach(self, done: float) -> None:
        """Set the amount of finished work; it never decreases, nor exceeds the total."""
        most = self._bar.total or done
        self._bar.update(max(0.0, min(done, most) - self._bar.n))
