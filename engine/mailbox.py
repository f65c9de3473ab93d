"""The mailbox: everything asked of a loop between two steps that take controls.

Inputs merge as their control declares (`Merge`). What was taken by a step that is rolled back is
put back before what came since, so that nothing is ever lost. Every input gets exactly one
receipt: it is among the `receipts` of what a step takes, or it was superseded.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from reverie.engine.emissions import ControlSuperseded
from reverie.engine.errors import UnknownControlError
from reverie.engine.inputs import (
    AcceptedInputs,
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
    StreamInput,
    TurnInput,
)
from reverie.engine.key_queue import KeyQueue
from reverie.engine.open_chunk import QueuedValue, TakenControls
from reverie.models.contract.controls import Controls, Merge, Turn
from reverie.models.contract.loop import LoopRequest
from reverie.models.contract.spec import LoopSpec

KEY_EDGES = 64
TURNS = 32
RECEIPTS = 1024
SHOWN_AGAIN = 64
"""Pieces of a `FIFO` stream beyond its capacity, which a lost worker had taken already."""
PROMPT = "/prompt"
"""Key of the prompt among the parameters; no parameter can be called so."""


class Mailbox:
    """The bounded mailbox of one loop; what does not fit is superseded by nothing."""

    def __init__(
        self, request: LoopRequest, loop: LoopSpec, tell: Callable[[ControlSuperseded], None]
    ) -> None:
        """Begin empty, with the request's prompt and parameters in effect.

        Args:
            request: the session that it belongs to.
            loop: what it takes.
            tell: hears of every control that will never act.
        """
        self._session = request.session
        self._tell = tell
        self.accepted = AcceptedInputs(loop)
        self._keys = {
            name: KeyQueue(tuple(keys), KEY_EDGES) for name, keys in self.accepted.keys.items()
        }
        self._latest: dict[str, QueuedValue] = {}
        self._axes: dict[str, float] = {}
        self._turns: deque[tuple[str, ControlId]] = deque()
        self._media: dict[str, deque[StreamInput]] = {
            name: deque() for name in self.accepted.streams
        }
        self._receipts: list[ControlId] = []
        self.prompt = request.prompt
        self.parameters = dict(request.parameters)

    @property
    def has_news(self) -> bool:
        """Whether a step that takes controls now would see anything new."""
        moved = any(queue.moved for queue in self._keys.values()) or any(self._media.values())
        return moved or bool(self._latest or self._axes or self._turns)

    def push(self, inputs: Sequence[ControlInput], *, silent: bool = False) -> None:
        """Merge inputs in order, with a receipt for each or, `silent`, without.

        Raises:
            UnknownControlError: the loop does not take one of them; none was merged.
        """
        if refused := self.accepted.refused(inputs):
            raise UnknownControlError(f"the loop takes no {refused}")
        for item in inputs:
            if not silent:
                self._receipts.append(item.control)
            self._merge(item)
        self._bound_receipts()

    def release_keys(self) -> None:
        """Release every key that is held."""
        for queue in self._keys.values():
            queue.release_all()

    def want(self, prompt: str | None, parameters: Mapping[str, float]) -> None:
        """Have the next step take what is in effect, from a state made under these.

        A prompt of None, or a parameter that is not named, is unknown and will be told again.
        Silent: the client that asked has had a receipt. What is still waiting comes first.
        """
        if self.accepted.prompt and prompt != self.prompt:
            self._latest.setdefault(PROMPT, QueuedValue(self.prompt, None))
        for name, value in self.parameters.items():
            if name in self.accepted.parameters and parameters.get(name) != value:
                self._latest.setdefault(name, QueuedValue(value, None))

    def peek(self) -> Controls:
        """Return what a step that takes controls now would see."""
        seen = {name: queue.peek() for name, queue in self._keys.items()}
        prompt = self._latest.get(PROMPT)
        return Controls(
            prompt=None if prompt is None else str(prompt.value),
            keys={name: keys for name, keys in seen.items() if keys},
            axes=dict(self._axes),
            parameters={
                name: float(wanted.value) for name, wanted in self._latest.items() if name != PROMPT
            },
            turns=tuple(Turn(text, control) for text, control in list(self._turns)[:1]),
            media={
                name: tuple(item.media for item in self._next_media(name))
                for name, waiting in self._media.items()
                if waiting
            },
        )

    def take(self) -> TakenControls:
        """Remove and return what the next step takes; keys that are held stay held.

        Of several turns that is the oldest, so that each gets its receipt as it is begun; of a
        clip, no more than its capacity.
        """
        prompt = self._latest.get(PROMPT)
        media = {name: self._next_media(name) for name in self._media}
        later = {control for _, control in list(self._turns)[1:]}
        for name, waiting in self._media.items():
            later.update(item.control for item in list(waiting)[len(media[name]) :])
        replaced = {
            item.control
            for name, items in media.items()
            if self.accepted.streams[name].merge is Merge.LATEST
            for item in items
        }
        receipts = tuple(control for control in self._receipts if control not in later)
        taken = TakenControls(
            controls=self.peek(),
            receipts=receipts,
            prompt=prompt.control if prompt else None,
            edges={name: queue.take() for name, queue in self._keys.items()},
            latest=dict(self._latest),
            turns=tuple(self._turns)[:1],
            media=media,
            acts=not replaced.issuperset(receipts),
        )
        self._latest.clear()
        self._axes.clear()
        if self._turns:
            self._turns.popleft()
        for name, taken_media in media.items():
            for _ in taken_media:
                self._media[name].popleft()
        self._receipts = [control for control in self._receipts if control in later]
        return taken

    def _next_media(self, name: str) -> tuple[StreamInput, ...]:
        return tuple(self._media[name])[: self.accepted.streams[name].capacity]

    def put_back(self, taken: TakenControls) -> None:
        """Undo a `take`: what it returned comes before what has come since."""
        self._receipts[:0] = taken.receipts
        for name, edges in taken.edges.items():
            self._lose(self._keys[name].put_back(edges))
        for name, wanted in taken.latest.items():
            newer = self._latest.setdefault(name, wanted)
            if newer is not wanted:
                self._supersede(wanted.control, newer.control)
        for name, value in taken.controls.axes.items():
            self._axes[name] = self._axes.get(name, 0.0) + value
        self._turns.extendleft(reversed(taken.turns))
        self._bound_turns()
        for name, items in taken.media.items():
            self._media[name].extendleft(reversed(items))
            self._bound_media(name)
        self._bound_receipts()

    def hand_over(
        self, given_up: Sequence[TakenControls], tell: Callable[[ControlSuperseded], None]
    ) -> None:
        """Serve another driver, which hears by `tell`; what was `given_up` will never act."""
        for taken in given_up:
            self._receipts[:0] = taken.receipts
            self._lose(list(taken.receipts))
        self._tell = tell

    def abandon(self) -> None:
        """Give up everything that waits: the loop has ended."""
        self._lose(list(self._receipts))
        self._turns.clear()
        self.take()

    def _merge(self, item: ControlInput) -> None:
        match item:
            case PromptInput(control, text):
                self.prompt = text
                self._replace(PROMPT, QueuedValue(text, control))
            case ParameterInput(control, name, value):
                self.parameters[name] = value
                self._replace(name, QueuedValue(value, control))
            case AxisInput(_, name, value):
                self._axes[name] = self._axes.get(name, 0.0) + value
            case TurnInput(control, text):
                self._turns.append((text, control))
                self._bound_turns()
            case KeysInput(control, name, edges):
                for edge in edges:
                    self._lose(self._keys[name].add(edge, control))
            case StreamInput(name=name):
                self._media[name].append(item)
                self._bound_media(name)

    def _replace(self, name: str, wanted: QueuedValue) -> None:
        older = self._latest.get(name)
        self._latest[name] = wanted
        if older is not None:
            self._supersede(older.control, wanted.control)

    def _bound_turns(self) -> None:
        while len(self._turns) > TURNS:
            self._lose([self._turns.popleft()[1]])

    def _bound_media(self, name: str) -> None:
        spec, waiting = self.accepted.streams[name], self._media[name]
        most = spec.capacity if spec.merge is Merge.LATEST else spec.capacity + SHOWN_AGAIN
        while len(waiting) > most:
            if spec.merge is Merge.LATEST:
                self._supersede(waiting.popleft().control, waiting[-1].control)
            else:  # the sender keeps count, so this is rare
                self._lose([waiting.pop().control])

    def _bound_receipts(self) -> None:
        # Only movements and auto-repeats can pile up: they have merged into what still waits.
        while len(self._receipts) > RECEIPTS:
            self._supersede(self._receipts[0], self._receipts[-1])

    def _lose(self, controls: list[ControlId]) -> None:
        for control in controls:
            self._supersede(control, None)

    def _supersede(self, control: ControlId | None, by: ControlId | None) -> None:
        if control is not None and control in self._receipts:
            self._receipts.remove(control)
            self._tell(ControlSuperseded(self._session, control, by))
