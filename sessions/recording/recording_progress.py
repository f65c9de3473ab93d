"""How far the recordings are that are not complete yet, for the sessions that they are of."""

import asyncio
from collections.abc import Callable, Collection

from reverie.media.files.fragmented_mp4 import Recorded
from reverie.sessions.recording.catalogue import RecordingCatalogue
from reverie.sessions.recording.recording import Progress, RecordedInput, Recording
from reverie.sessions.recording.recording_writer import RecordingWriter

OnProgress = Callable[[Recording], None]
"""Called with a recording as it grows, and last at its end; on the event loop."""


class RecordingProgress:
    """Notes progress in the catalogue and tells it."""

    def __init__(self, catalogue: RecordingCatalogue) -> None:
        self._catalogue = catalogue
        self._callbacks: dict[str, OnProgress] = {}
        self._news = asyncio.Event()  # a recording has ended, or was deleted

    @property
    def followed(self) -> Collection[str]:
        """The ids of the recordings that are not complete."""
        return self._callbacks.keys()

    def follow(self, id: str, on_progress: OnProgress) -> None:
        """Tell the progress of a recording from now on."""
        self._callbacks[id] = on_progress

    def leave(self, id: str) -> None:
        """Tell nothing more of a recording."""
        self._callbacks.pop(id, None)

    def note(
        self,
        id: str,
        writer: RecordingWriter,
        state: Progress = "running",
        reason: str = "",
        recorded: Recorded | None = None,
    ) -> None:
        """Note the progress of a recording, and tell it."""
        from_us = -1 if writer.from_us is None else writer.from_us
        inputs = tuple(
            RecordedInput(stream=stream, frames=each.frames, left_out=each.left_out)
            for stream, each in writer.inputs.items()
        )
        held = recorded or writer.recorded
        self.tell(
            self._catalogue.change(
                id, held, from_us, writer.size_bytes, state, reason, inputs=inputs
            )
        )

    def tell(self, changed: Recording | None) -> None:
        """Tell that a recording has changed; None: it was deleted."""
        if changed is not None and changed.id in self._callbacks:
            self._callbacks[changed.id](changed)

    def over(self) -> None:
        """Note that a recording has ended or was deleted."""
        self._news.set()

    async def completed(self, recording: Recording) -> Recording:
        """Wait until a recording is complete; return it as it is then. Safe to cancel."""
        while (entry := self._catalogue.entry(recording.id)) is not None:
            if entry.recording.state != "running":
                return entry.recording
            self._news.clear()
            await self._news.wait()
        return recording.model_copy(update={"state": "complete", "reason": "deleted"})
