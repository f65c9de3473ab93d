"""How far a long measurement has come, and how long it takes yet: a bar on standard error."""

import sys
from types import TracebackType
from typing import Never, Self

from tqdm import tqdm

_FORM = "{desc} |{bar}| {percentage:3.0f} %, {elapsed} gone, {remaining} left{postfix}"


class Progress:
    """Counts towards a total that may be found out on the way. Says nothing when it is `quiet`."""

    def __init__(self, total: float = 0.0, *, quiet: bool = False) -> None:
        """Show an empty bar.

        Args:
            total: how much there is to do; 0 until it is known.
            quiet: show nothing, as in tests.
        """
        # Into a file, which nobody watches second by second, a line comes every five.
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
        """How much is done."""
        return float(self._bar.n)

    def say(self, what: str) -> None:
        """Say what is being done."""
        self._bar.set_description_str(what)

    def expect(self, total: float) -> None:
        """Say how much there is to do, that which is done included."""
        self._bar.total = total
        self._bar.bar_format = _FORM
        self._bar.refresh()

    def advance(self, more: float = 1.0) -> None:
        """Say that so much more is done."""
        self.reach(self._bar.n + more)

    def reach(self, done: float) -> None:
        """Say how much is done altogether; it never becomes less, nor more than all."""
        most = self._bar.total or done
        self._bar.update(max(0.0, min(done, most) - self._bar.n))
