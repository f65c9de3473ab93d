"""What comes in from one attachment's client, on any transport: read, weighed, handed in."""

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
    """Turns messages into commands of an attachment, or into the errors that answer them."""

    def __init__(self, attachment: Attachment, options: ServerOptions, metrics: Metrics) -> None:
        self._attachment = attachment
        self._options = options
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        rate, burst, now_s = options.commands_per_s, options.command_burst, self._loop.time()
        self._commands = TokenBucket(rate, burst, now_s)
        self.seen: Callable[[int], None] = _unheeded  # told each chunk that the client has seen
        # Apart, for a burst of commands must not cost the playhead that the generation waits for.
        self._playheads = TokenBucket(rate, burst, now_s)

    def hear(self, message: str | bytes, *, quiet: bool = False) -> None:
        """Hand a message in. Never waits.

        Args:
            quiet: answer it only when it is wrong.
        """
        try:
            command = decode_command(message)
            self._check_rate(command)
        except RefusedError as error:
            self._metrics.refused.labels("command").inc()
            self._attachment.outbox.put(error_event(error))
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


def _unheeded(_: int) -> None:
    pass
