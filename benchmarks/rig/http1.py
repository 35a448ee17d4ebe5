"""A minimal HTTP/1.1 server, so that the measurement covers the other side.

Requests have a Content-Length or no body; connections stay open unless asked otherwise; one answer after the other.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END_OF_HEAD: Final = b"\r\n\r\n"

#: Handler of a request's path and body; returns the parts of its response from the status line on, and the delay in
#: seconds.
Answer = Callable[[str, bytes], tuple[float, list[bytes]]]


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END_OF_HEAD)) >= 0:
            head = bytes(self._received[:end])
            begin = end + len(_END_OF_HEAD)
            length = _LENGTH.search(head)
            whole = begin + (int(length[1]) if length else 0)
            if len(self._received) < whole:
                return
            body = bytes(self._received[begin:whole])
            del self._received[:whole]
            delay, parts = self._answer(head.split(b" ", 2)[1].decode(), body)
            if delay:
                asyncio.get_running_loop().call_later(delay, self._send, parts)
            else:
                self._send(parts)
            if b"\r\nconnection: close" in head.lower():
                self._transport.close()

    def _send(self, parts: list[bytes]) -> None:
        if not self._transport.is_closing():
            self._transport.write(b"".join(parts))


def head(status: str, content_type: str, length: int, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the head of a response."""
    fields = {"Content-Type": content_type, "Content-Length": str(length), **(headers or {})}
    lines = (f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items()))
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def serve(answer: Answer, *, folder: str = "", asked: Callable[[str], str] | None = None) -> None:
    """Print the port and serve until standard input ends, with TLS given the ``folder`` of a certificate
    (:mod:`rig.certificates`). ``asked`` answers lines of standard input."""
    loop = asyncio.get_running_loop()
    context = None
    if folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(folder, "certificate.pem"), Path(folder, "key.pem"))
    server = await loop.create_server(lambda: Connection(answer), "127.0.0.1", 0, ssl=context, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if asked is not None:
            print(asked(line.strip()), flush=True)
