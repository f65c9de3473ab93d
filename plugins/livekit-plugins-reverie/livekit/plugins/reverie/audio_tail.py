"""The end of a voice agent's chain of sound, made to tell when what it says is cut off."""

from collections.abc import Callable

from livekit import rtc
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities


class InterruptingTail(AudioOutput):
    """Passes an agent's voice on as it is; `cleared` is called when it is cut off."""

    def __init__(self, onward: AudioOutput, cleared: Callable[[], None]) -> None:
        super().__init__(
            label="WorldInterruption",
            capabilities=AudioOutputCapabilities(pause=True),
            next_in_chain=onward,
            sample_rate=onward.sample_rate,
        )
        self._cleared = cleared

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Pass a piece of voice on."""
        await super().capture_frame(frame)
        await self._onward.capture_frame(frame)

    def flush(self) -> None:
        """Pass on that an utterance is whole."""
        super().flush()
        self._onward.flush()

    def clear_buffer(self) -> None:
        """Pass on that what was not heard is not to be heard, and say so."""
        self._onward.clear_buffer()
        self._cleared()

    @property
    def _onward(self) -> AudioOutput:
        assert self.next_in_chain is not None, "a tail is made with what it passes on to"
        return self.next_in_chain


def install_tail(output: AudioOutput | None, cleared: Callable[[], None]) -> AudioOutput | None:
    """Return a new tail to put under a chain of sound; None where there is none, or one already."""
    if output is None:
        return None
    tail = output
    while (onward := tail.next_in_chain) is not None:
        if isinstance(tail, InterruptingTail):
            return None
        tail = onward
    return None if isinstance(tail, InterruptingTail) else InterruptingTail(tail, cleared)
