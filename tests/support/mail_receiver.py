"""A mail server on this machine that keeps what it receives: SMTP without encryption and without passwords."""

from __future__ import annotations

import asyncio
import email
import email.policy
from email.message import EmailMessage

from scrapy_ext.compatibility.python import Self
from tests.support.eventually import eventually_async

_ANSWERS = {
    "EHLO": "250 localhost",
    "HELO": "250 localhost",
    "MAIL": "250 OK",
    "RCPT": "250 OK",
    "DATA": "354 Send the message",
    "RSET": "250 OK",
    "NOOP": "250 OK",
    "QUIT": "221 Bye",
}


class MailReceiver:
    """Receiver at ``host`` (HOST:PORT), used as an async context manager."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.host = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.host = "127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]  # noqa: UP031
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def has(self, number: int) -> list[EmailMessage]:
        """Messages that arrived, once there are so many."""
        await eventually_async(lambda: len(self.messages) >= number)
        return self.messages

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 localhost\r\n")
        while line := (await reader.readline()).decode():
            verb = line[:4].upper()
            writer.write(f"{_ANSWERS.get(verb, '502 Not supported')}\r\n".encode())
            if verb == "DATA":
                text = b""
                while not text.endswith(b"\r\n.\r\n"):
                    text += await reader.readline()
                message = email.message_from_bytes(text[:-5], policy=email.policy.default)
                assert isinstance(message, EmailMessage)
                self.messages.append(message)
                writer.write(b"250 Accepted\r\n")
            if verb == "QUIT":
                break
        writer.close()
