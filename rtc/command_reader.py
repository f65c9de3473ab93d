"""Messages of one attachment's client, on any transport: decoded, rate limited, submitted."""

import asyncio
from collections.abc import Callable

from reverie.rtc.metrics import Metrics
from reverie.rtc.options import ServerOptions
from reverie.rtc.rate_limit import TokenBucket
from reverie.rtc.wire.errors import RateLimitedError, RefusedError
from reverie.rtc.wire.framing import decode_command, error_event
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.commands import AnyCommand, Playhead


class CommandReader:
    """Turns messages into commands of an attachment, or into error events."""

    def __init__(self, attachment: Attachment, options: ServerOptions, metrics: Metrics) -> None:
        self._attachment = attachment
        self._options = options
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        rate, burst, now_s = options.commands_per_s, options.command_burst, self._loop.time()
        self._commands = TokenBucket(rate, burst, now_s)
        self.seen: Callable[[int], None] = _ignored  # called with each chunk that the client saw
        # Separate, because a burst of commands must not delay the playhead that generation awaits.
        self._playheads = TokenBucket(rate, burst, now_s)

    def read(self, message: str | bytes, *, quiet: bool = False) -> None:
        """Submit the command in a message. Never waits.

        Args:
            quiet: answer it only when it is refused.
        """
        try:
            command = decode_command(message)
            self._check_rate(command)
        except RefusedError as error:
            self._metrics.refused.labels("command").inc()
            self._attachment.outbox.put(error_event(error.refusal))
        else:
            self._metrics.commands.labels(command.type).inc()
            if isinstance(command, Playhead):
                self.seen(command.chunk)
            self._attachment.submit(command, quiet=quiet)

    def _check_rate(self, command: AnyCommand) -> None:
        bucket = self._playheads if isinstance(command, Playhead) else self._commands
        wait_s = bucket.wait_s(self._loop.time())
        if wait_s:
            raise RateLimitedError(
                self._options.command_burst,
                self._options.commands_per_s,
                command=command.id,
                retry_after_s=wait_s,
            )


def _ignored(_: int) -> None:
    pass
