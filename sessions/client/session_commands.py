"""The commands of a client's session, one method each.

Each returns the command's id once it is certain to act, and raises `CommandError` when it was
refused; then nothing has changed.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal

from reverie.sessions.client.media_upload import MediaUpload


class SessionCommands(MediaUpload):
    """Controls a session; a subclass defines how a command gets to it."""

    async def push_text(
        self,
        text: str,
        *,
        mode: Literal["replace", "append", "turn"] = "replace",
        act: Literal["after", "now"] = "after",
    ) -> str:
        """Replace the prompt; mode `append` adds to it, and `""` clears it.

        With mode `turn` the text is said to the model, in a program that takes turns; the answer
        comes as `text.delta` events whose `answers` is the id that this returns.

        Args:
            text: the text.
            mode: what becomes of it.
            act: `now` takes back what would still wait here when its first frame comes.
        """
        return await self._command("push_text", text=text, mode=mode, act=act)

    async def push_action(
        self,
        action: Mapping[str, str | float],
        *,
        edge: Literal["tap", "press", "release"] = "tap",
        act: Literal["after", "now"] = "after",
    ) -> str:
        """Tap, press or release keys, or move axes. A pressed key acts until its release.

        With `act` `now`, what would still wait here when its first frame comes is taken back.
        """
        return await self._command("push_action", action=dict(action), edge=edge, act=act)

    async def release_all(self) -> str:
        """Release every held key."""
        return await self._command("release_all")

    async def update(
        self,
        *,
        prompt: str | None = None,
        reset: bool = False,
        act: Literal["after", "now"] = "after",
        **parameters: float,
    ) -> str:
        """Change parameters, and with them the prompt or the world, all in one step.

        `act` is as for `push_action`.
        """
        return await self._command(
            "update", prompt=prompt, reset=reset, act=act, parameters=parameters
        )

    async def interrupt(self, loop: str | None = None) -> str:
        """Drop what is unfinished or unseen, and continue from what was seen last.

        A `loop` is interrupted alone. A loop of text ends its utterance and does not begin it
        again; turns that it has not begun to answer are still answered.
        """
        return await self._command("interrupt", loop=loop)

    async def rewind(self, chunk: int) -> str:
        """Continue from an earlier chunk that is still kept."""
        return await self._command("rewind", chunk=chunk)

    async def pause(self) -> str:
        """Stop before the next step; idempotent."""
        return await self._command("pause")

    async def resume(self) -> str:
        """Continue; idempotent."""
        return await self._command("resume")

    async def step(self, count: int = 1) -> str:
        """While paused, put out some chunks and stay paused."""
        return await self._command("step", count=count)

    async def reset(self, *, seed: int | None = None) -> str:
        """Begin again under the prompt now in effect, with the same seed or another."""
        return await self._command("reset", seed=seed)

    async def snapshot(self, name: str = "default") -> str:
        """Keep the state after the newest shown chunk in memory."""
        return await self._command("snapshot", name=name)

    async def restore(self, name: str = "default") -> str:
        """Continue from a snapshot."""
        return await self._command("restore", name=name)

    async def record_start(self, *, inputs: bool = False) -> str:
        """Record what the session puts out; `artifact.created` names the recording.

        Args:
            inputs: also record the pictures that are pushed.
        """
        return await self._command("record_start", inputs=inputs)

    async def record_stop(self) -> str:
        """End the recording; `artifact.completed` follows once it is complete."""
        return await self._command("record_stop")

    async def clip(self, seconds: float = 10.0) -> str:
        """Keep the last seconds as a clip, if a client watched them through an encoder."""
        return await self._command("clip", seconds=float(seconds))

    async def request_key_frame(self, stream: str = "video") -> str:
        """Ask for a frame that can be decoded without earlier ones."""
        return await self._command("request_key_frame", stream=stream)

    @abstractmethod
    async def _command(self, type: str, **fields: object) -> str:
        """Send a command and return its id.

        Raises:
            CommandError: it was refused.
        """
