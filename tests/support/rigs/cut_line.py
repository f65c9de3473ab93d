"""A line between a client and a server that a test can cut and mend."""

import asyncio
from ssl import SSLContext
from types import TracebackType
from typing import Self


class CutLine:
    """Carries TCP connections to a port, until it is cut: then all break and none gets through.

    With a context it ends TLS, as a proxy in front of a server does.
    """

    def __init__(self, port: int, ssl: SSLContext | None = None) -> None:
        self._to = port
        self._ssl = ssl
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False

    @property
    def url(self) -> str:
        """Where a browser finds the server through this line."""
        assert self._listener is not None, "use it as a context manager"
        port = self._listener.sockets[0].getsockname()[1]
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{port}/"

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._carry, "127.0.0.1", 0, ssl=self._ssl)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._listener is not None
        self.cut()
        self._listener.close()
        await self._listener.wait_closed()

    def cut(self) -> None:
        """Break every connection, as a lost network does, and let no new one through."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Let new connections through again."""
        self._is_cut = False

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
        both = {writer, there_writer}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, there_writer), name="up")
                tasks.create_task(_pump(there_reader, writer), name="down")
        finally:
            self._writers -= both


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        sink.close()
