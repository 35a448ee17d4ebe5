"""Sending of alerts by Apprise, each message in a process of its own.

Apprise blocks, and opens connections by many libraries. A process can be killed when it takes too long, and is where
the guard of outgoing connections can hold for all of them: an audit hook of Python sees the address of every connection
before it is made. The address of the target comes by standard input, which no other process can read. Its parts are
removed from the outcome.
"""

from __future__ import annotations

import contextlib
import logging
import mimetypes
import os
import re
import sys
import zoneinfo
from asyncio.subprocess import DEVNULL
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Final, NoReturn
from urllib.parse import unquote

import msgspec

from scrapy_ext.api.violations import refused
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, safe_module, timeout_after
from scrapy_ext.jobprocess.child import Child
from scrapy_ext.server.computing.environment import clean_environment
from scrapy_ext.server.dispatching import POLL_INTERVAL, OutboxLoop, SendError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.monitors.alerts import ClaimedMessage

#: Timeout of a message in seconds; shorter than ``store.monitors.alerts.CLAIM``.
TIMEOUT: Final = 60.0
#: Messages sent concurrently: each is a process of about 60 MiB.
AT_ONCE: Final = 2
_MODULE: Final = "scrapy_ext.server.monitors.sending"
_MAX_ANSWER: Final = 64 * 1024
#: Ports of mail, besides those of web sites.
_MAIL: Final = frozenset({25, 465, 587, 2525})
#: Characters of a part of an address that an outcome may show.
_SHORT: Final = 3
_LONGEST: Final = 300

_INSTALL: Final = 'Install it with pip install "scrapy-ext[alerts]"'
MISSING: Final = f"the server has no Apprise. {_INSTALL}"


def check_installed() -> None:
    """Raise :class:`ContractError` where no message can be sent."""
    if find_spec("apprise") is None:
        raise refused("url", "needs Apprise, which the server does not have", f"{_INSTALL}, and start it again.")


class SendTask(msgspec.Struct):
    """A message, its target, and the addresses (HOST:PORT) that the operator allows besides public ones."""

    url: str
    title: str
    body: str
    allowed: list[str]


class SendOutcome(msgspec.Struct):
    accepted: bool
    outcome: str


class AlertSender:
    """Sender of messages; ``allowed``: addresses of ``--allow-host``."""

    def __init__(self, allowed: Iterable[str] = (), *, timeout: float = TIMEOUT) -> None:
        self._allowed = list(allowed)
        self._timeout = timeout

    async def __aenter__(self) -> AlertSender:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: a process under way ends with the task that waits for it."""

    async def send(self, message: ClaimedMessage) -> str:
        """Send a message; return the outcome or raise :class:`SendError`."""
        task = SendTask(message.url, message.title, message.body, self._allowed)
        try:
            async with timeout_after(self._timeout):
                answer = await _ask(msgspec.json.encode(task))
        except TIMEOUT_ERRORS:
            raise SendError(f"no answer within {self._timeout:g} seconds") from None
        except (OSError, msgspec.MsgspecError):
            raise SendError("the process that sends it has failed") from None
        outcome = without_parts(answer.outcome, message.url)
        if not answer.accepted:
            raise SendError(outcome)
        return outcome


async def _ask(task: bytes) -> SendOutcome:
    child = await Child.start(
        [sys.executable, *safe_module(_MODULE)],
        environment=clean_environment(os.environ),
        given=task,
        errors=DEVNULL,  # Apprise logs addresses that it cannot read
        dies_with_parent=True,
    )
    try:
        answer = b""
        while piece := await child.output.read(_MAX_ANSWER):
            answer += piece
            if len(answer) > _MAX_ANSWER:
                break
        return msgspec.json.decode(answer, type=SendOutcome)
    finally:
        await child.end()


def without_parts(text: str, url: str) -> str:
    """Return an outcome without anything of an address but its scheme, on one line."""
    _, _, rest = url.partition("://")
    parts = {each for part in re.split(r"[/:@?&=#,+]+", rest) for each in (part, unquote(part)) if len(each) > _SHORT}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "***")
    return re.sub(r"[\x00-\x1f\x7f\s]+", " ", text).strip()[:_LONGEST]


class AlertDispatcher(OutboxLoop[ClaimedMessage]):
    """Sender of a store's alerts, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: AlertSender) -> None:
        super().__init__("alerts", store.alerts, sender.send, sender, at_once=AT_ONCE, poll_interval=POLL_INTERVAL)


# ── in the process of a message ──


class _Guard:
    """Audit hook that refuses connections to addresses that are not public, other programs, and files other than those
    of Python and its packages."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(_addresses(allowed))
        places = (*filter(None, sys.path), sys.prefix, sys.base_prefix, *zoneinfo.TZPATH)
        self._folders = tuple(os.path.join(os.path.realpath(place), "") for place in places)
        #: The first refusal, which libraries report as one of many errors.
        self.refusal = ""

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            if arguments[1] is not None:  # the address of a connected socket was checked before
                self._check(arguments[1])
        elif event == "open" and not isinstance(arguments[0], int):
            self._check_file(os.fsdecode(arguments[0]))
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            self._refuse("a target cannot start programs; use another service")

    def _check(self, address: object) -> None:
        from scrapy_ext.server.net.guard import PORTS, is_public

        if not isinstance(address, tuple) or len(address) < 2:
            self._refuse("a target cannot use a socket of this machine; use another service")
        host, port = str(address[0]).partition("%")[0], address[1]
        if (host, port) in self._allowed:
            return
        if not is_public(host):
            self._refuse("its address is not public; the operator of the server can allow it with --allow-host")
        if port not in PORTS | _MAIL:
            self._refuse(f"port {port} is not one of web or mail servers; --allow-host allows it")

    def _check_file(self, path: str) -> None:
        # No refusal of the message: libraries look for files that need not be there, such as .netrc.
        if not os.path.realpath(path).startswith(self._folders):
            raise PermissionError("a target cannot use files of the server")

    def _refuse(self, reason: str) -> NoReturn:
        self.refusal = self.refusal or f"not sent: {reason}"
        raise PermissionError(reason)


def _addresses(allowed: Iterable[str]) -> Iterable[tuple[str, int]]:
    import socket

    for each in allowed:
        host, _, port = each.rpartition(":")
        with contextlib.suppress(OSError, ValueError):
            found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
            yield from ((str(address[0]), int(port)) for *_, address in found)


def _send(task: SendTask) -> SendOutcome:
    try:
        import apprise  # only here: it takes a second
    except ImportError:
        return SendOutcome(False, MISSING)
    guard = _Guard(task.allowed)
    receiver = apprise.Apprise()
    if not receiver.add(task.url):
        return SendOutcome(False, "the address is not one that Apprise accepts")
    from scrapy_ext.server.net import guard as _loaded  # noqa: F401 - before the hook

    mimetypes.init()  # as above: it reads files of the system
    sys.addaudithook(guard)
    with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as log:  # type: ignore[no-untyped-call]
        accepted = bool(receiver.notify(title=task.title, body=task.body, body_format=apprise.NotifyFormat.TEXT))
        lines = log.getvalue().strip().splitlines()
    if accepted:
        return SendOutcome(True, "accepted")
    return SendOutcome(False, guard.refusal or (lines[-1] if lines else "it was not accepted"))


def main() -> int:
    """Send the message of standard input, and write the outcome to standard output."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=SendTask)
    logging.disable(logging.NOTSET)
    sys.stdout.write(msgspec.json.encode(_send(task)).decode())
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
