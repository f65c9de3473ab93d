"""The snapshots that a session has taken by name, as far as they outlive its worker. Pure."""

from reverie.gpu_pool.wire.errors import RequestRefusedError
from reverie.gpu_pool.wire.session_messages import KeptSnapshot


class SnapshotLog:
    """What is kept under each name, and which names were lost with a worker."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptSnapshot | None] = {}  # None: only this worker has it
        self._lost: set[str] = set()

    @property
    def all(self) -> tuple[KeptSnapshot, ...]:
        """Those that another worker can restore."""
        return tuple(kept for kept in self._kept.values() if kept)

    def get(self, name: str) -> KeptSnapshot | None:
        """Return what another worker could restore under a name."""
        return self._kept.get(name)

    def keep(self, name: str, snapshot: KeptSnapshot, *, lasts: bool) -> None:
        """Keep a snapshot; one that does not last is lost with the worker that took it."""
        self._kept[name] = snapshot if lasts else None
        self._lost.discard(name)

    def check(self, name: str) -> None:
        """Refuse a snapshot that was lost.

        Raises:
            RequestRefusedError: it was lost with the worker that kept it.
        """
        if name in self._lost:
            text = f"snapshot {name!r} was lost with the worker that kept it"
            raise RequestRefusedError("unknown_snapshot", text)

    def lose_what_does_not_last(self) -> None:
        """Note that the worker is gone, and with it what only that worker had."""
        gone = [name for name, kept in self._kept.items() if kept is None]
        for name in gone:
            del self._kept[name]
        self._lost.update(gone)
