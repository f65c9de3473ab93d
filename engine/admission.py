"""Who may start: room in the cache pool, and the device's time. API SKELETON."""

from reverie.engine.driver import DriverOptions
from reverie.models.instance import ModelInstance
from reverie.models.spec import LoopSpec


class CostBook:
    """What units cost: an exponentially weighted mean of seconds for each cost key."""

    def unit(self, cost_key: str, seconds: float) -> None: raise NotImplementedError
    def chunk(self, loop: str, seconds: float, media_s: float) -> None: raise NotImplementedError
    def seconds(self, cost_key: str) -> float | None: raise NotImplementedError
    def load(self, loop: str) -> float | None:
        """Return device seconds per second of media of one session; None while unknown."""
        raise NotImplementedError


class Admission:
    """Counts the blocks that running sessions may come to need. `slots` for `Loaded`."""

    def __init__(self, instance: ModelInstance, sessions: int, options: DriverOptions) -> None: ...

    def slots(self, loop: LoopSpec) -> int:
        """How many sessions of `loop` fit at once, when there are no others."""
        raise NotImplementedError

    def session_bytes(self, loop: LoopSpec) -> int: raise NotImplementedError

    def admit(self, session: str, loop: LoopSpec) -> None:
        """Hold room for a session. Raises AdmissionError."""
        raise NotImplementedError

    def leave(self, session: str) -> None:
        """Give the room back; does nothing for one that has none."""
        raise NotImplementedError
