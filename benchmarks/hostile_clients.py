"""Memory of the server and the answers of ``/healthz`` while clients send bombs, stop reading, or only connect.

Each attack has a server of its own. ``--scale`` is the size of the attacks, ``--after`` the seconds for which a server
is watched then. By attack: the memory of the server before, at its peak and after (MiB), the answers to the attackers
by status, and of ``/healthz`` the number of answers, failures and the longest wait (s).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import tempfile
import threading
import time
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rig.rounds import options, report

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.servers import RunningServer

MIB = 2**20
#: Seconds for an answer of /healthz.
GIVEN_UP = 30.0


def gzip_of(piece: bytes, size: int, head: bytes = b"", tail: bytes = b"") -> bytes:
    """Return a gzip body that inflates to ``size`` bytes of repeated pieces."""
    block = piece * (MIB // len(piece))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (
        packer.compress(head)
        + b"".join(packer.compress(block) for _ in range(size // len(block)))
        + packer.compress(tail)
        + packer.flush()
    )


class Server:
    """A server under attack."""

    def __init__(self, running: RunningServer) -> None:
        self.running = running
        parts = urlsplit(running.url)
        self.where = (parts.hostname, parts.port)
        self.key = running.platform_key

    def resident(self) -> int:
        """Return the current memory of the process in bytes."""
        text = Path(f"/proc/{self.running.process.pid}/statm").read_text("ascii")
        return int(text.split()[1]) * resource.getpagesize()

    def head(self, method: str, path: str, **headers: str) -> bytes:
        """Return the head of a request with the key."""
        key = self.running.extract_key if path.startswith("/v1") else self.key
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            f"Authorization: Basic {b64encode(f'{key}:'.encode()).decode()}",
        ]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    async def post(self, path: str, body: bytes, **headers: str) -> int:
        """Return the status of the answer to a body; 0 for a connection that ended without one."""
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(*self.where)
            writer.write(self.head("POST", path, Content_Length=str(len(body)), Connection="close", **headers) + body)
            line = await reader.readline()
            await reader.read()
            return int(line.split()[1]) if line else 0
        except OSError:
            return 0
        finally:
            if writer is not None:
                writer.close()


Attack = Callable[[Server, float], Awaitable[Counter[Any]]]


async def strings(server: Server, scale: float) -> Counter[Any]:
    """Send four bodies of millions of short strings at once."""
    size = int(60 * MIB * scale)
    empty, short = (gzip_of(b"[" + b'"%b",' % key * 250_000 + b'"k"]\n', size) for key in (b"", b"k"))
    paths = ("/hcf/1/f/s/s/q/deleted", "/collections/1/s/c/deleted")
    sent = [server.post(path, body, Content_Encoding="gzip") for path in paths for body in (empty, short)]
    return Counter(await asyncio.gather(*sent))


async def nested(server: Server, scale: float) -> Counter[Any]:
    """Send bodies that decode to much more than their size."""
    size = int(60 * MIB * scale)
    lists, objects = gzip_of(b"[],", size, b"[", b"0]"), gzip_of(b"{},", size, b'{"a":[', b"0]}")
    paths = ("/jobs/1/1/1", "/api/projects/1/periodicjobs", "/projects/1/settings", "/jobq/1/startjob", "/jobs/1/1/1/x")
    sent = [server.post(path, body, Content_Encoding="gzip") for path in paths for body in (lists, objects)]
    return Counter(await asyncio.gather(*sent))


async def records(server: Server, scale: float) -> Counter[Any]:
    """Send bodies of many records without content."""
    line = b'{"_key":"k","a":[' + b"{}," * 100_000 + b"{}]}\n"
    body = gzip_of(line, int(60 * MIB * scale))
    small = gzip_of(b'{"_key":"k"}\n', int(12 * MIB * scale))
    paths = ("/collections/1/s/c", "/items/1/1/1", "/hcf/1/f/s/s", "/activity/1", "/jobq/1/push", "/jobq/1/update")
    sent = [server.post(path, each, Content_Encoding="gzip") for path in paths for each in (body, small)]
    return Counter(await asyncio.gather(*sent))


async def readers(server: Server, scale: float) -> Counter[Any]:
    """Request a large result from a thousand clients and read nothing of it."""
    number = int(1000 * scale)
    for start in range(24):
        blob = os.urandom(400_000).hex()
        assert await server.post(f"/items/1/1/2?start={start}", json.dumps({"blob": blob}).encode()) == 200
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(number):
            _, writer = await asyncio.open_connection(*server.where, limit=1024)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            stack.callback(writer.close)
            writer.write(server.head("GET", "/items/1/1/2"))
        await asyncio.sleep(20)
    return Counter()


async def idle(server: Server, scale: float) -> Counter[Any]:
    """Open more connections than the server accepts, and send nothing."""
    number = int(4400 * scale)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(number):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(*server.where)
                stack.callback(writer.close)
        found: Counter[Any] = Counter()
        for _ in range(20):
            found[await server.post("/items/1/1/7", b'{"a": 1}\n')] += 1
            await asyncio.sleep(0.25)
    return found


async def pieces(server: Server, scale: float) -> Counter[Any]:
    """Send bodies in chunks of one byte, from many clients at once."""
    number = int(100 * scale) or 1
    body = b"1\r\n \r\n" * (2 * MIB // 6) + b"0\r\n\r\n"

    async def one() -> int:
        reader, writer = await asyncio.open_connection(*server.where)
        try:
            writer.write(server.head("POST", "/items/1/1/9", Transfer_Encoding="chunked", Connection="close") + body)
            line = await reader.readline()
            return int(line.split()[1]) if line else 0
        except OSError:
            return 0
        finally:
            writer.close()

    return Counter(await asyncio.gather(*(one() for _ in range(number))))


async def pipelines(server: Server, scale: float) -> Counter[Any]:
    """Send requests without end, and read no answer."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(int(200 * scale) or 1):
            _, writer = await asyncio.open_connection(*server.where, limit=1024)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            stack.callback(writer.transport.abort)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n" * 100_000)
        await asyncio.sleep(10)
    return Counter()


ATTACKS: dict[str, Attack] = {
    each.__name__: each for each in (strings, nested, records, readers, idle, pieces, pipelines)
}


async def healthz(server: Server, waits: list[float], ended: threading.Event) -> None:
    """Request /healthz on new connections until the attack has ended."""
    while not ended.is_set():
        began = time.perf_counter()
        try:
            async with timeout_after(GIVEN_UP):
                reader, writer = await asyncio.open_connection(*server.where)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
                writer.close()
            if b" 200 " not in line:
                waits.append(-1.0)
        except (OSError, *TIMEOUT_ERRORS):
            waits.append(-1.0)
        waits.append(time.perf_counter() - began)
        await asyncio.sleep(0.05)


async def highest(server: Server, found: list[int], ended: threading.Event) -> None:
    """Record the highest memory until the attack has ended."""
    while not ended.is_set():
        found[0] = max(found[0], server.resident())
        await asyncio.sleep(0.02)


async def attacked(attack: Attack, scale: float, after: float) -> dict[str, Any]:
    """Return the measurements of one attack."""
    with tempfile.TemporaryDirectory() as folder, RunningServer(Path(folder)) as running:
        server = Server(running)
        await server.post("/items/1/1/1", b'{"a": 1}\n')
        before, peak, waits = server.resident(), [0], list[float]()
        ended = threading.Event()
        # In separate threads, since the attackers keep this loop busy.
        watchers = [
            asyncio.create_task(asyncio.to_thread(asyncio.run, watch))
            for watch in (healthz(server, waits, ended), highest(server, peak, ended))
        ]
        began = time.perf_counter()
        answers = await attack(server, scale)
        seconds = time.perf_counter() - began
        ended.set()
        await asyncio.gather(*watchers)
        await asyncio.sleep(after)
        return {
            "before": before // MIB,
            "peak": peak[0] // MIB,
            "after": server.resident() // MIB,
            "seconds": round(seconds, 1),
            "answers": {str(status): number for status, number in sorted(answers.items())},
            "healthz": sum(wait >= 0 for wait in waits),
            "healthz_failed": waits.count(-1.0),
            "healthz_longest": round(max(waits, default=0), 2),
        }


def main() -> None:
    """Run the attacks."""
    given = options(
        __doc__,
        full={"attacks": [*ATTACKS], "scale": 1.0, "after": 30.0},
        quick={"attacks": [*ATTACKS], "scale": 0.1, "after": 1.0},
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 10_000)), hard))
    report(
        "hostile_clients",
        **{name: asyncio.run(attacked(ATTACKS[name], given.scale, given.after)) for name in given.attacks},
    )


if __name__ == "__main__":
    main()
