"""A site that speaks nothing but HTTP/2 over TLS."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, RequestReceived

from tests.support.handwritten_site import self_signed
from tests.support.threaded_server import ThreadedServer


class H2Site(ThreadedServer):
    """Answers every path with a page; ``paths`` are those that were asked for."""

    def __init__(self, folder: Path) -> None:
        self.paths: list[str] = []
        self._context = self_signed(folder)
        self._context.set_alpn_protocols(["h2"])
        super().__init__()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError, RuntimeError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    self._answer(connection, event)
                writer.write(connection.data_to_send())
                await writer.drain()
            writer.close()

    def _answer(self, connection: H2Connection, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self.paths.append(dict(event.headers)[":path"])
            body = b"<html><h1>over HTTP/2</h1></html>"
            headers = [(":status", "200"), ("content-type", "text/html"), ("content-length", str(len(body)))]
            connection.send_headers(event.stream_id, headers)
            connection.send_data(event.stream_id, body, end_stream=True)
