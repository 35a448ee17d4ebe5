"""Load over HTTP on this machine: prepared requests, sent over several connections at once.

The sender does as little as can be done, so that it is the server that is measured: it writes bytes, and reads
answers by their length or their chunks without looking inside.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_RECEIVE = 256 * 1024


@dataclass(frozen=True)
class Load:
    """Result: seconds by the clock, processor seconds of the server, bytes of responses, and the seconds of the slowest
    request."""

    seconds: float
    cpu_seconds: float
    received: int
    longest: float = 0.0


def request(method: str, path: str, key: str, body: bytes = b"", **headers: str) -> bytes:
    """Return a request as bytes."""
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    credentials = b64encode(f"{key}:".encode()).decode()
    head = f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {credentials}\r\n{named}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def send(port: int, pid: int, connections: Iterable[Iterable[bytes]]) -> Load:
    """Send the requests of each connection one after the other; raise for a status other than 200."""
    total, longest, failures = [0], [0.0], list[BaseException]()
    lock = threading.Lock()

    def work(requests: Iterable[bytes]) -> None:
        try:
            with Connection(port) as connection:
                for each in requests:
                    asked = time.perf_counter()
                    received = connection.skip(each)
                    with lock:
                        total[0] += received
                        longest[0] = max(longest[0], time.perf_counter() - asked)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(requests,)) for requests in connections]
    cpu, began = cpu_seconds(pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if failures:
        raise failures[0]
    return Load(seconds, cpu_seconds(pid) - cpu, total[0], longest[0])


class Connection:
    """One persistent connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """Send a request; return the body of its response."""
        body: list[bytes] = []
        self._exchange(request, body.append)
        return b"".join(body)

    def skip(self, request: bytes) -> int:
        """Send a request; return the length of its response's body."""
        lengths: list[int] = []
        self._exchange(request, lambda piece: lengths.append(len(piece)))
        return sum(lengths)

    def _exchange(self, request: bytes, take: Callable[[bytes], None]) -> None:
        self._socket.sendall(request)
        head = self._until(b"\r\n\r\n").lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(head.decode() + self._rest.decode(errors="replace"))
        if b"transfer-encoding: chunked" in head:
            while size := int(self._until(b"\r\n"), 16):
                self._exactly(size, take)
                self._until(b"\r\n")
            self._until(b"\r\n")
        else:
            self._exactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]), take)

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._rest += self._receive()
        found, _, self._rest = self._rest.partition(mark)
        return found

    def _exactly(self, size: int, take: Callable[[bytes], None]) -> None:
        while size:
            piece, self._rest = self._rest[:size], self._rest[size:]
            if not piece:
                self._rest = self._receive()
                continue
            take(piece)
            size -= len(piece)

    def _receive(self) -> bytes:
        data = self._socket.recv(_RECEIVE)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_cpu_seconds(pid: int) -> float:
    """Return the processor time of the processes that a process has started, such as PostgreSQL's connections."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0.0
    for child in map(int, children):
        # One may have ended since.
        with contextlib.suppress(FileNotFoundError):
            total += cpu_seconds(child)
    return total


def memory_now(pid: int) -> int:
    """Return the memory (bytes) of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(pid: int) -> int:
    """Return the peak memory (bytes) of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
