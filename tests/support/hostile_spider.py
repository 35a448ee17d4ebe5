"""A spider that reads whatever it can reach, and one that does what spiders do; both are deployed by the tests."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import scrapy

import scrapy_ext

_LONGEST = 20_000


def tried(action: Callable[[], Any]) -> str:
    """Result of an action, or its error."""
    try:
        return str(action())[:_LONGEST]
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"


def first_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(100)


def read_all() -> dict[str, str]:
    """Data that could be read of other processes, the server's files and its network."""
    own = {str(os.getpid()), "self"}
    found = {}
    for process in sorted(name for name in os.listdir("/proc") if name.isdigit()):
        for part in ("environ", "cmdline", "maps"):
            found[f"{process} {part}"] = tried((Path("/proc") / process / part).read_bytes)
        if process not in own:
            for part in ("fd", "cwd/", "root/root"):
                found[f"{process} {part}"] = tried(lambda p=process, n=part: os.listdir(f"/proc/{p}/{n}"))
            found[f"{process} mem"] = tried(lambda p=process: first_bytes(f"/proc/{p}/mem"))
            found[f"{process} kill"] = tried(lambda p=process: os.kill(int(p), 0))
    data = Path(sys.prefix).parents[2]
    clone = Path(scrapy_ext.__file__).resolve().parents[1]
    for folder in (clone, data, data / "environments", Path("/root"), Path.home().parent, Path("/etc"), Path("/tmp")):
        found[f"list {folder}"] = tried(lambda f=folder: os.listdir(f))
    for path in _files(data):
        found[f"open {path}"] = tried(path.read_bytes)
    for path in ("/etc/shadow", "/proc/1/environ", "/proc/kcore"):
        found[f"open {path}"] = tried(lambda p=path: first_bytes(p))
    found["ptrace"] = tried(lambda: _libc("ptrace", 16, os.getppid(), 0, 0))
    local, remote = struct.pack("PN", 0, 0), struct.pack("PN", 4096, 8)
    found["process_vm_readv"] = tried(lambda: _libc("process_vm_readv", os.getppid(), local, 1, remote, 1, 0))
    found["write"] = tried(lambda: Path(sys.prefix, "planted").write_text("x"))
    found["denied address"] = tried(lambda: socket.create_connection(("127.66.0.1", 9), timeout=5))
    found["denied datagram"] = tried(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.66.0.1", 9)))
    found["environment"] = json.dumps(dict(os.environ))
    found["shared memory"] = tried(lambda: os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize)
    found["user"] = f"{os.getuid()} {os.getgroups()}"
    with contextlib.suppress(OSError):
        found["status"] = Path("/proc/self/status").read_text()
    return found


def _files(data: Path) -> Iterator[Path]:
    known = [data / "platform.db", data / "platform.db-wal", data / "keys"]
    yield from known
    with contextlib.suppress(OSError):
        yield from (path for path in data.rglob("*") if path.is_file() and Path(sys.prefix).parent not in path.parents)


def _libc(name: str, *arguments: Any) -> int:
    result = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return int(result)


if "spider_list" in " ".join(sys.orig_argv):
    Path("read-at-check.json").write_text(json.dumps(read_all()))


class Hostile(scrapy.Spider):
    """Yields what it could read, and what it could when the version was checked."""

    name = "hostile"

    async def start(self) -> Any:
        yield scrapy.Request("data:,page")

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"when": "check", **json.loads(Path("read-at-check.json").read_text())}
        yield {"when": "run", **read_all()}


class Friendly(scrapy.Spider):
    """Uses what spiders use."""

    name = "friendly"
    custom_settings: ClassVar = {"FEEDS": {"out.json": {"format": "json"}}}

    async def start(self) -> Any:
        yield scrapy.Request(os.environ["PLATFORM_URL"] + "/healthz")

    def parse(self, response: Any) -> Iterator[Any]:
        with tempfile.NamedTemporaryFile() as file, sqlite3.connect("own.db") as database:
            file.write(b"x")
            database.execute("CREATE TABLE IF NOT EXISTS t (n)")
        command = [sys.executable, "-c", "import urllib.request, ssl; print(ssl.create_default_context() is not None)"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        thread = threading.Thread(target=list)
        thread.start()
        thread.join()
        names = {each[4][0] for each in socket.getaddrinfo("localhost", 80)}
        Path("data.txt").write_text("written")
        secret = Path("secret.txt")
        secret.write_text("secret of another project")
        yield {"status": response.status, "said": said.strip(), "names": sorted(names & {"127.0.0.1", "::1"})}


class Digger(scrapy.Spider):
    """Yields what it could open and connect to, of what its argument names as JSON."""

    name = "digger"
    places = "{}"

    async def start(self) -> Any:
        yield scrapy.Request("data:,page")

    def parse(self, response: Any) -> Iterator[Any]:
        places = json.loads(self.places)
        found = {path: tried(Path(path).read_text) for path in places["files"]}
        for path in places["sockets"]:
            found[path] = tried(lambda p=path: socket.socket(socket.AF_UNIX).connect(p))
        for host, port in places["addresses"]:
            found[f"{host}:{port}"] = tried(lambda a=(host, port): socket.create_connection(a, timeout=5))
        yield found
