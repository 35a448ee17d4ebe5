"""A server on loopback that plays what its test says: answers, and the faults no healthy server shows."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec


@dataclass
class Request:
    """A request as it arrived; ``path`` is decoded, ``raw_path`` is not."""

    method: str
    raw_path: str
    headers: dict[str, str]
    body: bytes
    raw_body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.raw_path).path)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.raw_path).query, keep_blank_values=True)

    def parameter(self, name: str) -> str | None:
        return next((value for key, value in self.parameters if key == name), None)

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def lines(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.body.splitlines()]


@dataclass
class Reply:
    """An answer. ``cut`` ends the connection after so many bytes of the body; ``framed`` False leaves out its
    length; ``drop`` ends the connection instead of answering; ``until`` is waited for after ``pause_at`` bytes of
    the body, or before the answer."""

    status: int = 200
    body: bytes = b""
    type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    framed: bool = True
    drop: bool = False
    compress: bool = False
    until: asyncio.Event | None = None
    pause_at: int | None = None


def json_reply(value: Any, status: int = 200, **more: Any) -> Reply:
    return Reply(status, msgspec.json.encode(value), **more)


def lines_reply(*records: Any, **more: Any) -> Reply:
    body = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    return Reply(body=body, type="application/x-jsonlines", **more)


Script = list[Reply] | Callable[[Request], Reply]


class PlayedServer:
    """Answers with the replies of ``script`` in their order, repeating the last, or with what it returns."""

    def __init__(self) -> None:
        self.script: Script = [Reply()]
        self.requests: list[Request] = []
        self.url = ""
        self._connections: set[asyncio.StreamWriter] = set()

    async def start(self, listening: socket.socket | None = None) -> None:
        listening = listening or socket.create_server(("127.0.0.1", 0))
        self._server = await asyncio.start_server(self._serve, sock=listening)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        for writer in self._connections:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while request := await _read(reader):
                self.requests.append(request)
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Return True if the connection stays open."""
        reply = self._reply(request)
        if reply.until is not None and reply.pause_at is None:
            await reply.until.wait()
        if reply.drop:
            return False
        headers = {"Content-Type": reply.type} if reply.type else {}
        body = reply.body
        if reply.compress:
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        if reply.framed:
            headers["Content-Length"] = str(len(body))
        headers.update(reply.headers)
        try:
            reason = HTTPStatus(reply.status).phrase
        except ValueError:
            reason = "Other"
        head = [f"HTTP/1.1 {reply.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*head, "", ""]).encode())
        if reply.until is not None and reply.pause_at is not None:
            writer.write(body[: reply.pause_at])
            await reply.until.wait()
            body = body[reply.pause_at :]
        writer.write(body[: reply.cut])
        await writer.drain()
        return reply.framed and reply.cut is None

    def _reply(self, request: Request) -> Reply:
        if callable(self.script):
            return self.script(request)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


async def _read(reader: asyncio.StreamReader) -> Request | None:
    first = await reader.readline()
    if not first:
        return None
    method, path, _ = first.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    body = gzip.decompress(raw) if headers.get("content-encoding") == "gzip" else raw
    return Request(method, path, headers, body, raw)
