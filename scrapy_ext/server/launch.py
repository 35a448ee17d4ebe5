"""Start of a server without its keys in the command line and environment that other processes can read.

Linux shows the command line and the environment that a program was executed with for as long as it runs, whatever the
program does with them. A server that finds a secret there executes itself anew, as the same process, without them: its
configuration goes by a descriptor that only it has. So this module imports little before it has done that.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.compatibility.python import safe_module
from scrapy_ext.jobprocess import handover
from scrapy_ext.jobprocess.confinement import system
from scrapy_ext.server.config.command_line import SECRETS
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.store.engine.address import DatabaseUrl

#: Runs the server whose configuration comes by the descriptor of which its argument is the number.
MODULE: Final = "scrapy_ext.server.launch"
_ROOT: Final = Path(__file__).resolve().parents[2]
#: Modules that the server locks files, and limits and ends the processes of jobs and browsers with.
_MODULES: Final = ("fcntl", "pwd", "resource")


def _unsupported() -> str:
    missing = [] if hasattr(os, "fork") else ["os.fork"]
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if not missing:
        return ""
    lacks = "" if sys.platform == "win32" else f" (this Python has no {', '.join(missing)})"
    return f"the server needs Linux or macOS{lacks}; on Windows, run it in WSL or a container"


#: Reason why no server runs on this system; empty where it does.
UNSUPPORTED: Final = _unsupported()


def start(config: ServerConfig) -> int:
    """Run a server until it ends; returns its exit code."""
    if UNSUPPORTED:
        print(f"error: {UNSUPPORTED}", file=sys.stderr, flush=True)  # noqa: T201 - the command's own output
        return 1
    _open_standard_streams()
    words = _masked(sys.argv[1:], _secrets(config))
    if words != sys.argv[1:] or any(os.environ.get(name) for name in SECRETS):
        _execute_anew(config, words)
    return _serve(config)


def _open_standard_streams() -> None:
    """Open the null device in the place of closed standard streams.

    What the server opens next would else get their numbers, and what is printed would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)  # inheritable
            if opened != number:
                os.close(opened)
        setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process


def _serve(config: ServerConfig) -> int:
    with contextlib.suppress(OSError):
        system.hide_memory()
    # While modules are imported, collections find nothing and take an eighth of the start; the ready server enables
    # them.
    gc.disable()
    # Imported now: it is much, and would be loaded twice.
    from scrapy_ext.server.http import uvicorn_names

    if reason := uvicorn_names.unsupported():
        print(f"error: {reason}", file=sys.stderr, flush=True)  # noqa: T201 - the command's own output
        return 1
    from scrapy_ext.server.serve import serve

    return serve(config)


def main() -> int:
    """Run the server whose configuration comes by the descriptor that the command line names."""
    _open_standard_streams()
    data = handover.take(int(sys.argv[1]))
    return _serve(msgspec.json.decode(data, type=ServerConfig, dec_hook=lambda kind, value: kind(value)))


def _secrets(config: ServerConfig) -> list[str]:
    """The parts of a configuration that nobody may read."""
    keys = [config.extract_key, config.platform_key, config.attributes_key]
    urls = [*(proxy.partition("=")[2] for proxy in config.proxies), config.attributes_url]
    addresses = [url for url in urls if url and urlsplit(url).password]
    database = config.database.secret if config.database is not None else ""
    if "password" in database or urlsplit(database).password:
        addresses.append(database)
    return [value for value in (*keys, *addresses) if value]


def _masked(words: Iterable[str], secrets: Collection[str]) -> list[str]:
    """The words of a command line without the values that are secret."""
    masked = list(words)
    for value in secrets:
        for place, word in enumerate(masked):
            if word == value or word.endswith("=" + value):
                masked[place] = word.removesuffix(value) + "***"
    return masked


def _execute_anew(config: ServerConfig, words: Iterable[str]) -> None:
    """Execute this module with a clean environment and command line; returns only where the system does not do it."""
    descriptor = offer(config)
    os.set_inheritable(descriptor, True)
    # The working directory comes before the packages of Python only where this package itself was found there.
    module = ["-m", MODULE] if Path.cwd() == _ROOT else safe_module(MODULE)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    command = [sys.executable, *flags, *module, str(descriptor), *words]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, command, environment())  # noqa: S606 - no shell
    except OSError:
        os.close(descriptor)


def offer(config: ServerConfig) -> int:
    """A descriptor with the configuration, for a process that runs :data:`MODULE` with its number."""
    return handover.offer(msgspec.json.encode(config, enc_hook=_encoded))


def environment() -> dict[str, str]:
    """The environment of such a process: without the secrets, which are in its configuration."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def _encoded(value: object) -> object:
    if isinstance(value, DatabaseUrl):
        return value.secret
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError


if __name__ == "__main__":
    sys.exit(main())
