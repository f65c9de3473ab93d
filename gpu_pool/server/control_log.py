"""The controls of a session as a new worker has to get them. Pure.

Every input is kept until its receipt. What has acted is folded into the prompt, the parameters and
the keys now in effect.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reverie.engine.inputs import (
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
    StreamInput,
)
from reverie.models.contract.controls import KeyEdge

_PENDING = 4096
_SHOWN = 64
"""Pictures that have acted and are in no snapshot yet."""


class ControlLog:
    """The controls of one session.

    Attributes:
        prompt: the one in effect.
        parameters: those in effect.
    """

    def __init__(self, prompt: str, parameters: Mapping[str, float]) -> None:
        self.prompt = prompt
        self.parameters = dict(parameters)
        self._held: dict[tuple[str, str], ControlId] = {}
        self._pending: dict[ControlId, list[ControlInput]] = {}
        self._shown: deque[tuple[int, StreamInput]] = deque(maxlen=_SHOWN)  # and when they acted
        self._replayed: set[ControlId] = set()

    def pushed(self, inputs: Sequence[ControlInput]) -> None:
        """Keep inputs that were sent to the worker."""
        for item in inputs:
            self._pending.setdefault(item.control, []).append(item)
        while len(self._pending) > _PENDING:
            self._pending.pop(next(iter(self._pending)))

    def applied(self, control: ControlId, pts_us: int) -> bool:
        """Note that a control acts from a media time on; False when that was told before."""
        for item in self._pending.pop(control, ()):
            self._fold(item, pts_us)
        return not self._heard_before(control)

    def dropped(self, control: ControlId) -> bool:
        """Note that a control will never act; False when that was told before."""
        self._pending.pop(control, None)
        return not self._heard_before(control)

    def drop_shown(self, since_us: int | None = None) -> None:
        """Forget pictures that have acted, or those that did at a media time or later."""
        kept = [] if since_us is None else [each for each in self._shown if each[0] < since_us]
        self._shown = deque(kept, _SHOWN)

    def release_keys(self) -> None:
        """Note that every held key is released."""
        self._held.clear()
        for control, inputs in self._pending.items():
            self._pending[control] = [_let_go(item) for item in inputs]

    def replayed(self) -> Iterator[ControlInput]:
        """Yield keys that are held, what no snapshot holds yet, then what never got a receipt."""
        for (name, key), control in self._held.items():
            self._replayed.add(control)
            yield KeysInput(control, name, (KeyEdge(key, True),))
        for _, shown in self._shown:
            self._replayed.add(shown.control)
            yield shown
        for inputs in self._pending.values():
            yield from inputs

    def _heard_before(self, control: ControlId) -> bool:
        if control not in self._replayed:
            return False
        self._replayed.remove(control)
        return True

    def _fold(self, item: ControlInput, pts_us: int) -> None:
        match item:
            case StreamInput():
                self._shown.append((pts_us, item))
            case PromptInput(text=text):
                self.prompt = text
            case ParameterInput(name=name, value=value):
                self.parameters[name] = value
            case KeysInput(name=name, edges=edges, control=control):
                for edge in edges:
                    self._held.pop((name, edge.key), None)
                    if edge.down:
                        self._held[name, edge.key] = control
            case _:
                pass


def _let_go(item: ControlInput) -> ControlInput:
    """Return the input with a release after every press."""
    if not isinstance(item, KeysInput):
        return item
    down = {edge.key: edge.down for edge in item.edges}
    releases = tuple(KeyEdge(key, False) for key, held in down.items() if held)
    return replace(item, edges=item.edges + releases)
