"""Which sessions may start: the cache pool must have room for all that they may come to need."""

from collections.abc import Sequence

from reverie.engine.errors import AdmissionError
from reverie.engine.options import DriverOptions
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.spec import LoopSpec


class Admission:
    """Counts the blocks that admitted sessions may come to need, so that none can run out."""

    def __init__(self, instance: ModelInstance, sessions: int, options: DriverOptions) -> None:
        """Admit at most `sessions`, each driven with `options`."""
        self._pool = instance.blocks
        self._sessions = sessions
        self._options = options
        self._held: dict[str, int] = {}

    @property
    def admitted(self) -> int:
        """How many sessions hold room."""
        return len(self._held)

    def session_blocks(self, loops: Sequence[LoopSpec]) -> int:
        """Return the blocks that one session may need that runs `loops`."""
        return sum(loop.blocks_a_session(self._options.history_chunks) for loop in loops)

    def session_bytes(self, loops: Sequence[LoopSpec]) -> int:
        """Return the cache memory that one session may need that runs `loops`."""
        return self.session_blocks(loops) * (self._pool.block_bytes if self._pool else 0)

    def slots(self, loops: Sequence[LoopSpec]) -> int:
        """Return how many sessions that run `loops` fit at once, when there are no others."""
        blocks = self.session_blocks(loops)
        count = self._pool.count if self._pool else 0
        return min(self._sessions, count // blocks) if blocks else self._sessions

    def require_room(self, program: str, loops: Sequence[LoopSpec]) -> None:
        """Refuse a pool in which no session of a program will ever fit.

        Raises:
            AdmissionError: there are fewer blocks than one session may need.
        """
        blocks, count = self.session_blocks(loops), self._pool.count if self._pool else 0
        if blocks > count:
            needs = f"a session of program {program} needs {blocks}"
            raise AdmissionError(f"the cache pool has {count} blocks, {needs}")

    def admit(self, session: str, loops: Sequence[LoopSpec]) -> None:
        """Hold room for a session until `leave`.

        Raises:
            AdmissionError: there is none now.
        """
        assert session not in self._held, f"session {session} is admitted twice"
        if len(self._held) >= self._sessions:
            raise AdmissionError(f"all {self._sessions} slots are taken")
        blocks, taken = self.session_blocks(loops), sum(self._held.values())
        count = self._pool.count if self._pool else 0
        if taken + blocks > count:
            raise AdmissionError(f"{blocks} cache blocks are needed, {count - taken} are left")
        self._held[session] = blocks

    def leave(self, session: str) -> None:
        """Give a session's room back; does nothing for one that has none."""
        self._held.pop(session, None)
