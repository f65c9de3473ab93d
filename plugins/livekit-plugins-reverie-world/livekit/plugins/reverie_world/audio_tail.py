"""The end of a voice agent's chain of sound, made to tell when what it says is cut off."""

import asyncio
from collections.abc import Callable

from livekit import rtc
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities
from livekit.plugins.reverie_world.log import logger

FINISH_LIMIT_S = 5.0
"""For whoever plays a voice to say that it ended where it was cut off."""


class InterruptingTail(AudioOutput):
    """Passes an agent's voice on as it is; `cleared` is called when it is cut off.

    An agent waits for the end of what it said. When a player far away never tells of it, it counts
    as ended `limit_s` after the cut; one that tells twice is heard once.
    """

    def __init__(
        self,
        onward: AudioOutput,
        cleared: Callable[[], None],
        limit_s: float = FINISH_LIMIT_S,
    ) -> None:
        super().__init__(
            label="WorldInterruption",
            capabilities=AudioOutputCapabilities(pause=True),
            next_in_chain=onward,
            sample_rate=onward.sample_rate,
        )
        self._cleared = cleared
        self._limit_s = limit_s
        self._is_speaking = False
        self._begun = 0  # utterances
        self._ended = 0
        self.on("playback_finished", self._count_end)

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Pass a piece of voice on."""
        self._begun += not self._is_speaking
        self._is_speaking = True
        await super().capture_frame(frame)
        await self._onward.capture_frame(frame)

    def flush(self) -> None:
        """Pass on that an utterance is whole."""
        self._is_speaking = False
        super().flush()
        self._onward.flush()

    def clear_buffer(self) -> None:
        """Pass on that what was not heard is not to be heard, and say so."""
        self._onward.clear_buffer()
        self._cleared()
        asyncio.get_running_loop().call_later(self._limit_s, self._end, self._begun)

    def _count_end(self, _: object) -> None:
        self._ended += 1

    def _end(self, due: int) -> None:
        """Count as ended what was begun before a cut, whatever is still silent about it."""
        for _ in range(due - self._ended):
            logger.warning("the end of a voice that was cut off was never told; it counts as over")
            self.on_playback_finished(playback_position=0.0, interrupted=True)

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
