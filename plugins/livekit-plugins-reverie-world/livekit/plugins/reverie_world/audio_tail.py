"""A tail for a voice agent's audio output that reports interruptions of its speech."""

import asyncio
from collections.abc import Callable

from livekit import rtc
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities
from livekit.plugins.reverie_world.log import logger

FINISH_LIMIT_S = 5.0
"""Limit for a player to report the end of an interrupted utterance."""


class InterruptingTail(AudioOutput):
    """Passes an agent's speech on unchanged; calls `cleared` when it is interrupted.

    An agent waits for the end of its speech. When a remote player never reports it, the speech
    counts as ended `limit_s` after the interruption; a second report is ignored.
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
        """Pass a frame of speech on."""
        self._begun += not self._is_speaking
        self._is_speaking = True
        await super().capture_frame(frame)
        await self._onward.capture_frame(frame)

    def flush(self) -> None:
        """Pass on that an utterance is complete."""
        self._is_speaking = False
        super().flush()
        self._onward.flush()

    def clear_buffer(self) -> None:
        """Pass on that unheard speech is dropped, and report it."""
        self._onward.clear_buffer()
        self._cleared()
        asyncio.get_running_loop().call_later(self._limit_s, self._end, self._begun)

    def _count_end(self, _: object) -> None:
        self._ended += 1

    def _end(self, due: int) -> None:
        """Count utterances from before an interruption as ended."""
        for _ in range(due - self._ended):
            logger.warning(
                "a player did not report the end of an interrupted utterance; it counts as ended"
            )
            self.on_playback_finished(playback_position=0.0, interrupted=True)

    @property
    def _onward(self) -> AudioOutput:
        assert self.next_in_chain is not None, "a tail is created with its next output"
        return self.next_in_chain


def install_tail(output: AudioOutput | None, cleared: Callable[[], None]) -> AudioOutput | None:
    """Return a new tail for an audio output; None without an output, or if it has a tail."""
    if output is None:
        return None
    tail = output
    while (onward := tail.next_in_chain) is not None:
        if isinstance(tail, InterruptingTail):
            return None
        tail = onward
    return None if isinstance(tail, InterruptingTail) else InterruptingTail(tail, cleared)
