"""The edges of one control with keys, waiting for the next step."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.engine.inputs import ControlId
from reverie.models.contract.controls import KeyEdge, KeyInput


@dataclass(frozen=True, slots=True)
class TaggedEdge:
    """An edge and the control that brought it; None when none did (a lost connection)."""

    edge: KeyEdge
    control: ControlId | None


class KeyQueue:
    """Presses and releases in order, bounded; the oldest taps are dropped first.

    An edge that changes nothing (auto-repeat, a second release) is not kept, so the edges of a key
    alternate. A tap is dropped whole, and the release of a press that a step has seen never is:
    so a flood can cost presses, but never leaves a key held.
    """

    def __init__(self, keys: Sequence[str], capacity: int) -> None:
        """Hold `capacity` edges, or twice the number of keys where that is more."""
        self._capacity = max(capacity, 2 * len(keys))
        self._edges: list[TaggedEdge] = []
        self._down: dict[str, None] = {}

    @property
    def moved(self) -> bool:
        """Whether any edge waits."""
        return bool(self._edges)

    def add(self, edge: KeyEdge, control: ControlId | None) -> list[ControlId]:
        """Append an edge; return the controls of which nothing is left, now that taps went."""
        if edge.down == (edge.key in self._down):
            return []
        self._edges.append(TaggedEdge(edge, control))
        if edge.down:
            self._down[edge.key] = None
        else:
            del self._down[edge.key]
        return self._drop_taps()

    def release_all(self) -> None:
        """Release every key that is down."""
        for key in list(self._down):
            self.add(KeyEdge(key, down=False), None)

    def peek(self) -> KeyInput | None:
        """Return what a step would see; None when nothing is held and nothing moved."""
        if not self._edges and not self._down:
            return None
        return KeyInput(tuple(tagged.edge for tagged in self._edges), tuple(self._down))

    def take(self) -> tuple[TaggedEdge, ...]:
        """Remove and return the edges; what is held stays held."""
        taken = tuple(self._edges)
        self._edges.clear()
        return taken

    def put_back(self, edges: Sequence[TaggedEdge]) -> list[ControlId]:
        """Put edges that were taken before those that came since; return as `add` does."""
        self._edges[:0] = edges
        return self._drop_taps()

    def _drop_taps(self) -> list[ControlId]:
        lost: list[ControlId] = []
        while len(self._edges) > self._capacity:
            tap = self._oldest_tap()
            if tap is None:
                break
            press, release = tap
            control = self._edges[press].control
            del self._edges[release], self._edges[press]
            if control and all(tagged.control != control for tagged in self._edges):
                lost.append(control)
        return lost

    def _oldest_tap(self) -> tuple[int, int] | None:
        for press, tagged in enumerate(self._edges):
            if tagged.edge.down:
                for release in range(press + 1, len(self._edges)):
                    if self._edges[release].edge.key == tagged.edge.key:
                        return press, release
        return None
