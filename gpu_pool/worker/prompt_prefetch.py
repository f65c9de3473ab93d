"""Where prompts wait until they have been read. Step thread only.

Whatever says what a prompt will be read under (the prompt itself, and parameters that change how it
is read) is kept back together; all else passes. So the loop that a prompt is delivered to finds it
in the cache of the encoder, and no session's pictures wait for the encoder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from reverie.engine.emissions import ControlFailed, ControlSuperseded
from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput
from reverie.gpu_pool.worker.prompt_encoder_thread import (
    EncodeRequest,
    EncodeResult,
    PromptEncoderThread,
)
from reverie.gpu_pool.worker.prompt_inputs import EffectiveControls, Inputs, merged, target, without
from reverie.models.contract.instance import ModelInstance


@dataclass(frozen=True, slots=True)
class DirectInputs:
    """What can be delivered at once, and receipts of what waited and gives way."""

    inputs: Inputs
    superseded: tuple[ControlSuperseded, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptDelivery:
    """The outcome of a reading.

    Attributes:
        inputs: to be delivered now; none when it failed.
        superseded: receipts of what was overtaken meanwhile.
    """

    read: EncodeResult
    inputs: Inputs
    superseded: tuple[ControlSuperseded, ...] = ()


@dataclass(slots=True)
class _SessionPrompts:
    """What is being read of one session.

    Attributes:
        effect: what will be in effect when all of it is delivered.
        last: the number of its newest reading.
        gate: the session does not run before this reading has come back; 0: it runs.
        overtaken: for what passed meanwhile, its control and the newest reading that it overtakes.
    """

    effect: EffectiveControls
    last: int
    gate: int = 0
    overtaken: dict[str, tuple[ControlId, int]] = field(default_factory=dict)


class PromptPrefetch:
    """Keeps prompts back for an instance that wants to read them first; for any other, nothing."""

    def __init__(
        self,
        instance: ModelInstance,
        now_us: Callable[[], int],
        wake: Callable[[], None],
        limit_us: int,
    ) -> None:
        """Begin empty.

        Args:
            instance: the model that takes the prompts.
            now_us: the step thread's clock.
            wake: called on another thread when there is something to `take`.
            limit_us: the longest that a prompt may take from its arrival on.
        """
        read = instance.prepare_prompt
        self._reader = (
            PromptEncoderThread(read, wake, instance.device) if read is not None else None
        )
        self._matters = instance.prompt_parameters
        self._knows_prompt = instance.knows_prompt
        self._now_us = now_us
        self._limit_us = limit_us
        self._sessions: dict[str, _SessionPrompts] = {}
        self._numbers = count(1)

    def holds(self, session: str) -> bool:
        """Whether a session must not run yet: the prompt that it begins with is being read."""
        under_way = self._sessions.get(session)
        return under_way is not None and under_way.gate > 0

    def open(self, session: str, effect: EffectiveControls) -> None:
        """Have the prompt read that a session is to begin with."""
        if self._reader is not None and not self._knows(effect):
            reading = self._reading(session, effect, (), opening=True)
            self._sessions[session] = _SessionPrompts(effect, reading.number, reading.number)
            self._reader.put(session, lambda _: reading)

    def bring(
        self, session: str, effect: EffectiveControls, inputs: Sequence[ControlInput]
    ) -> DirectInputs:
        """Keep back what must be read first, and let the rest pass.

        Args:
            session: the session that they are for.
            effect: what is in effect, without what waits here.
            inputs: oldest first.
        """
        if self._reader is None:
            return DirectInputs(tuple(inputs))
        if not any(self._is_read(item) for item in inputs):
            return self._overtaking(session, tuple(inputs))
        kept = tuple(item for item in inputs if isinstance(item, PromptInput | ParameterInput))
        if session not in self._sessions and self._knows(effect.after(kept)):
            return DirectInputs(tuple(inputs))
        under_way = self._sessions.setdefault(session, _SessionPrompts(effect, 0))
        under_way.effect = under_way.effect.after(kept)
        told: list[ControlSuperseded] = []

        def join(older: EncodeRequest | None) -> EncodeRequest:
            waits = merged(session, (*(older.inputs if older else ()), *kept), told)
            opening = older is not None and older.opening
            reading = self._reading(session, under_way.effect, waits, opening=opening)
            under_way.last = reading.number
            return reading

        self._reader.put(session, join)
        return DirectInputs(tuple(item for item in inputs if item not in kept), tuple(told))

    def begin_again(self, session: str) -> None:
        """Hold a session that was reset until what was said before the reset has been read."""
        if under_way := self._sessions.get(session):
            under_way.gate = under_way.last

    def take(self) -> list[PromptDelivery]:
        """Return what has been read, or cannot be; sessions that waited for it may begin."""
        if self._reader is None:
            return []
        return [self._delivered(read) for read in self._reader.take(self._now_us())]

    @property
    def lost(self) -> EncodeResult | None:
        """The reading during which the device has failed, if it has."""
        return self._reader.lost if self._reader is not None else None

    @property
    def wake_us(self) -> int | None:
        """When to `take` again although nothing was read; None: then only."""
        return self._reader.due_us if self._reader is not None else None

    def forget(self, session: str) -> None:
        """Forget a session."""
        self._sessions.pop(session, None)
        if self._reader is not None:
            self._reader.forget(session)

    def close(self) -> None:
        """Read nothing more."""
        if self._reader is not None:
            self._reader.close()

    def _is_read(self, item: ControlInput) -> bool:
        if isinstance(item, ParameterInput):
            return item.name in self._matters
        return isinstance(item, PromptInput)

    def _knows(self, effect: EffectiveControls) -> bool:
        known = self._knows_prompt
        return known is not None and known(effect.prompt, effect.parameters)

    def _reading(
        self, session: str, effect: EffectiveControls, inputs: Inputs, *, opening: bool
    ) -> EncodeRequest:
        number, due_us = next(self._numbers), self._now_us() + self._limit_us
        return EncodeRequest(
            number, session, effect.prompt, effect.parameters, inputs, opening, due_us
        )

    def _overtaking(self, session: str, inputs: Inputs) -> DirectInputs:
        """Let inputs pass; what is older and waits for a prompt gives way to them."""
        under_way = self._sessions.get(session)
        newer = {target(item): item.control for item in inputs if isinstance(item, ParameterInput)}
        if self._reader is None or under_way is None or not newer:
            return DirectInputs(inputs)
        under_way.effect = under_way.effect.after(inputs)
        told: list[ControlSuperseded] = []

        def give_way(older: EncodeRequest | None) -> EncodeRequest | None:
            if older is None:
                return None
            return replace(older, inputs=without(session, older.inputs, newer, told))

        self._reader.put(session, give_way)
        under_way.overtaken.update({name: (by, under_way.last) for name, by in newer.items()})
        return DirectInputs(inputs, tuple(told))

    def _delivered(self, read: EncodeResult) -> PromptDelivery:
        reading = read.reading
        under_way = self._sessions[reading.session]
        newer = {
            name: by for name, (by, last) in under_way.overtaken.items() if reading.number <= last
        }
        told: list[ControlSuperseded] = []
        inputs = without(reading.session, reading.inputs, newer, told)
        if reading.number >= under_way.gate:
            under_way.gate = 0
        if reading.number == under_way.last:
            del self._sessions[reading.session]
        return PromptDelivery(read, inputs, tuple(told))


def failures(delivered: PromptDelivery, effect: EffectiveControls) -> list[ControlFailed]:
    """Say of every input of a reading that it will never act, and what is in effect instead."""
    read = delivered.read
    assert read.fault is not None, "what was read has not failed"
    return [
        ControlFailed(
            read.reading.session, item.control, read.fault, read.message, effect.value(item)
        )
        for item in delivered.inputs
    ]
