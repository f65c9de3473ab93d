"""A thread that reads prompts before they are delivered, so that no step waits for a text encoder.

One prompt at a time, in the order in which sessions came. What waits is at most one reading a
session: a newer one replaces the one that waits. What is being read is never given up for
a newer one, so that a flood of prompts cannot keep every one of them from acting.
"""

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from reverie.engine.emissions import FaultCode
from reverie.engine.inputs import ControlInput
from reverie.models.contract.errors import DeviceLostError, DeviceMemoryError
from reverie.models.services.device_errors import retry_out_of_memory

logger = logging.getLogger(__name__)

ReadPrompt = Callable[[str, Mapping[str, float]], None]
"""See `ModelInstance.prepare_prompt`."""

_LEAVING_S = 1.0


@dataclass(frozen=True, slots=True)
class EncodeRequest:
    """A prompt that is to be read.

    Attributes:
        number: counts up.
        parameters: those that will be in effect with it.
        inputs: what is delivered once it has been read, oldest first.
        opening: the session has not begun yet, and does with it.
        due_us: when it will have taken too long.
    """

    number: int
    session: str
    prompt: str
    parameters: Mapping[str, float]
    inputs: tuple[ControlInput, ...]
    opening: bool
    due_us: int


@dataclass(frozen=True, slots=True)
class EncodeResult:
    """The outcome of a reading; `fault` is None when the prompt was read."""

    reading: EncodeRequest
    fault: FaultCode | None = None
    message: str = ""


class PromptEncoderThread:
    """Called by the step thread, except for what runs on its own thread."""

    def __init__(
        self, read: ReadPrompt, wake: Callable[[], None], device: torch.device | None = None
    ) -> None:
        """Start the thread.

        Args:
            read: reads a prompt; may take its time, and may raise.
            wake: called on the thread whenever `take` has something new.
            device: where prompts are read.
        """
        self._device = device
        self._read = read
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, EncodeRequest] = OrderedDict()
        self._now: EncodeRequest | None = None
        self._dropped = False  # no session waits for what is being read any more
        self._done: deque[EncodeResult] = deque()
        self._lost: EncodeResult | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="prompt-reader", daemon=True)
        self._thread.start()

    def put(
        self, session: str, make: Callable[[EncodeRequest | None], EncodeRequest | None]
    ) -> None:
        """Have a prompt read.

        Args:
            session: the session that it belongs to.
            make: from what waits of that session and is not being read yet to what is to wait in
                its place; None leaves all as it is.
        """
        with self._changed:
            reading = make(self._waiting.get(session))
            if reading is not None:
                self._waiting[session] = reading
                self._changed.notify()

    def take(self, now_us: int) -> list[EncodeResult]:
        """Return what was read since the last call, and what has taken too long, oldest first."""
        with self._changed:
            done = list(self._done)
            self._done.clear()
            if self._now is not None and not self._dropped and self._now.due_us <= now_us:
                self._dropped = True
                done.append(_late(self._now))
            for session, reading in list(self._waiting.items()):
                if reading.due_us <= now_us:
                    done.append(_late(self._waiting.pop(session)))
        return done

    @property
    def lost(self) -> EncodeResult | None:
        """The reading during which the device has failed, if it has."""
        with self._changed:
            return self._lost

    @property
    def due_us(self) -> int | None:
        """When the next reading will have taken too long; None while there is none."""
        with self._changed:
            times = [reading.due_us for reading in self._waiting.values()]
            if self._now is not None and not self._dropped:
                times.append(self._now.due_us)
        return min(times, default=None)

    def forget(self, session: str) -> None:
        """Read nothing more for a session, and report nothing of it."""
        with self._changed:
            self._waiting.pop(session, None)
            if self._now is not None and self._now.session == session:
                self._dropped = True
            kept = [read for read in self._done if read.reading.session != session]
            self._done = deque(kept)

    def close(self) -> None:
        """End the thread; a reading that does not end is left behind, on a daemon thread."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()
        self._thread.join(_LEAVING_S)

    def _run(self) -> None:
        while (reading := self._next()) is not None:
            read = self._outcome(reading)
            with self._changed:
                if read.fault is FaultCode.DEVICE_LOST:
                    self._lost = read  # that concerns every session, whether or not it was given up
                elif not self._dropped:
                    self._done.append(read)
                self._now, self._dropped = None, False
            self._wake()

    def _next(self) -> EncodeRequest | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            _, self._now = self._waiting.popitem(last=False)
            return self._now

    def _outcome(self, reading: EncodeRequest) -> EncodeResult:
        try:
            retry_out_of_memory(
                lambda: self._read(reading.prompt, reading.parameters), self._device
            )
        except DeviceLostError as lost:
            return EncodeResult(reading, FaultCode.DEVICE_LOST, str(lost))
        except DeviceMemoryError as error:
            logger.error("session %s: its prompt cannot be read: %s", reading.session, error)
            return EncodeResult(reading, FaultCode.OUT_OF_MEMORY, str(error))
        except Exception as error:
            # The session boundary: a prompt that cannot be read is no reason to read no others.
            logger.exception("session %s: its prompt cannot be read", reading.session)
            return EncodeResult(
                reading, FaultCode.PROMPT_FAILED, f"{type(error).__name__}: {error}"
            )
        return EncodeResult(reading)


def _late(reading: EncodeRequest) -> EncodeResult:
    logger.error("session %s: its prompt was not read in time", reading.session)
    return EncodeResult(reading, FaultCode.PROMPT_TIMEOUT, "the prompt was not read in time")
