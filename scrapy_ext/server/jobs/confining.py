"""Confinement of the processes of deployed versions on this machine: jobs, checks and builds.

As far as the system supports it, such a process reads the system, the server's Python with its packages, and its own
environment; writes its own folders; runs as a user of its project; and connects to all addresses except cloud metadata,
the server's database and local ports of the server. ``docs/architecture/security.rst`` has the whole list.
"""

from __future__ import annotations

import asyncio
import configparser
import contextlib
import ipaddress
import json
import logging
import os
import pwd
import shlex
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess import supervisor
from scrapy_ext.jobprocess.child import Child, run
from scrapy_ext.jobprocess.confinement import Confinement
from scrapy_ext.jobprocess.confinement.addresses import is_own
from scrapy_ext.jobprocess.confinement.applying import CONNECTIONS, FILTER, LANDLOCK, SIGNALS, VIEW, interpreter_paths
from scrapy_ext.jobprocess.confinement.probing import USER, ProbeResult
from scrapy_ext.jobprocess.confinement.view import closed_folder
from scrapy_ext.jobprocess.proc import SHARED_MEMORY
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.store.engine.address import DatabaseUrl

#: Values of ``--job-user`` besides names of users.
AUTO: Final = "auto"
NONE: Final = "none"
#: IDs of projects' users, in a range that systemd and distributions do not use (https://systemd.io/UIDS-GIDS/).
FIRST_USER: Final = 1_900_000_000
_USERS: Final = 200_000_000

#: Folders of programs and libraries.
_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm"),
)
#: Entries of /etc that programs need; others may contain keys.
_ETC: Final = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "os-release", "locale.alias"),
    *("debian_version", "lsb-release", "redhat-release", "system-release", "centos-release", "fedora-release"),
    *("alpine-release", "arch-release", "SuSE-release", "gentoo-release", "slackware-version", "pip.conf"),
    "gitconfig",  # without it, git does not run
    *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "resolv.conf", "gai.conf", "services"),
    *("protocols", "networks", "localtime", "timezone", "mime.types", "magic", "xdg/pip", "fonts", "shells", "inputrc"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "terminfo"),
)
_RUN: Final = ("/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", SHARED_MEMORY)
#: Environment variables with paths that processes of deployed versions read.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Addresses of cloud metadata services, which expose keys: link-local ones, and those of Alibaba Cloud, Oracle Cloud,
#: Amazon and Google by IPv6; of Azure the ports that are not DNS.
METADATA: Final = (
    *("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128"),
    *("168.63.129.16/32 80", "168.63.129.16/32 32526"),
)
_POSTGRESQL: Final = 5432
_SECONDS: Final = 60

logger = logging.getLogger(__name__)


class Policy(NamedTuple):
    """The operator's options for the processes of deployed versions."""

    #: ``auto``, ``none``, or the name or number of a user.
    user: str = AUTO
    #: Further readable files and folders.
    read: tuple[str, ...] = ()
    #: Further refused addresses: ``NETWORK`` or ``NETWORK PORT``.
    deny: tuple[str, ...] = ()
    #: The server's database, whose address is refused.
    database: DatabaseUrl | None = None


class ConfinementError(Exception):
    """A process cannot be confined as the operator requires; the message has the reason."""


class User(NamedTuple):
    """IDs of a user and a group."""

    user: int
    group: int


class Confining:
    """Factory of confinements. Raises :class:`ConfigError` for an unknown user, or one that needs root."""

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy = policy or Policy()
        self._named = _named(policy.user)
        self._found: asyncio.Task[ProbeResult] | None = None
        self._is_reported = False
        self._denied: tuple[list[str], list[int]] | None = None

    def user(self, project: int) -> User | None:
        """Return the user of a project; None for the server's."""
        if self._named is not None:
            return self._named
        if self._policy.user == AUTO and os.geteuid() == 0:
            return User(*[FIRST_USER + project % _USERS] * 2)
        return None

    async def report(self) -> None:
        """Log once which defences this system lacks."""
        if self._is_reported:
            return
        self._is_reported = True
        found = await self._probed()
        for line in _undefended(found, self.user(0) is not None):
            logger.warning("%s", line)

    async def of(
        self, project: int, read: Iterable[Path | str], write: Iterable[Path | str], memory: int | None = None
    ) -> Confinement:
        """Return the confinement of a process of a project; raise :class:`ConfinementError`.

        ``read`` and ``write``: its own files and folders. ``memory``: maximum bytes of shared memory.
        """
        await self.report()
        found = await self._probed()
        reading = [*_readable(), *self._policy.read, *map(str, read)]
        writing = [*_DEVICES, *map(str, write)]
        defences = [name for name in (LANDLOCK, SIGNALS, VIEW, FILTER, CONNECTIONS) if name in found.defences]
        if CONNECTIONS in defences:
            defences.remove(FILTER)
        user = await asyncio.to_thread(self._usable, project, found, [*reading, *writing])
        if user is None and VIEW in defences:
            defences.remove(VIEW)
        denied, ports = await self._denied_places()
        number, group = user or (None, None)
        made = Confinement(reading, writing, number, group, denied, ports, defences=defences)
        return made if memory is None else made._replace(shared_memory=memory)

    async def usable_user(self, project: int, needed: Iterable[Path | str]) -> User | None:
        """Return the user for processes of a project; None for the server's. Raises :class:`ConfinementError`."""
        found = await self._probed()
        return await asyncio.to_thread(self._usable, project, found, [*_readable(), *map(str, needed)])

    def _usable(self, project: int, found: ProbeResult, needed: Iterable[str]) -> User | None:
        user = self.user(project)
        if user is None:
            return None
        reason = "" if USER in found.defences else "the system does not allow it"
        if not reason and VIEW not in found.defences:
            reason = _closed(needed, user)
        if not reason:
            return user
        if self._named is not None:
            raise ConfinementError(
                f"--job-user {self._policy.user} cannot be used: {reason}. Run scrapy platform doctor"
            )
        _report_shared_user(reason)
        return None

    async def _probed(self) -> ProbeResult:
        if self._found is None:
            self._found = asyncio.create_task(_probe())
        return await asyncio.shield(self._found)

    async def _denied_places(self) -> tuple[list[str], list[int]]:
        """Return refused addresses and local ports. Names are resolved once, and again after a failure."""
        if self._denied is not None:
            return self._denied
        denied = [*METADATA, *self._policy.deny]
        ports: list[int] = []
        whole = True
        for host, port in _places(self._policy.database):
            if not host:
                ports.append(port)
                continue
            try:
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError:
                whole = False
                continue
            for *_, (name, *_) in found:
                address = ipaddress.ip_address(str(name).partition("%")[0])
                denied.append(f"{address} {port}")
                if is_own(address):
                    ports.append(port)
        if whole:
            self._denied = denied, ports
        return denied, ports


async def _probe() -> ProbeResult:
    command, environment = supervisor.command("confinement.probing"), supervisor.environment()
    starting = Child.start(command, environment=environment, given=b"", errors=asyncio.subprocess.DEVNULL)
    try:
        return ProbeResult(**json.loads((await run(starting, seconds=_SECONDS)).output))
    except (*TIMEOUT_ERRORS, ValueError, TypeError):
        logger.exception("The defences of this system could not be determined")
        return ProbeResult([])


def _undefended(found: ProbeResult, other_user: bool) -> list[str]:
    """Return a line for each promise that this system does not keep."""
    lines = []
    if LANDLOCK not in found.defences and not (other_user and USER in found.defences):
        lines.append(
            "Deployed code can read what the server's user can, the data directory too, and end its processes: this "
            "system has no Landlock (Linux 5.13 and later), and the server does not run jobs as another user."
        )
    elif LANDLOCK not in found.defences:
        lines.append(
            "Deployed code can read files of this machine that everybody can: this system has no Landlock (Linux 5.13 "
            "and later)."
        )
    elif found.landlock < _SIGNALS_SINCE and not (other_user and USER in found.defences):
        lines.append(
            "Deployed code can send signals to the server and to other jobs: to refuse them needs Linux 6.12, or a "
            "server that is root and runs jobs as other users."
        )
    if SIGNALS not in found.defences:
        lines.append(
            "Deployed code that starts processes all the time can outlive its job: to end them in one step needs the "
            "Landlock of Linux 6.12 or later."
        )
    if CONNECTIONS not in found.defences:
        lines.append(
            "Deployed code can connect to cloud metadata addresses and to the server's database: this system does not "
            "hand over system calls (seccomp user notification, Linux 5.9 and later on x86_64 and aarch64)."
        )
    return lines


#: The version of Landlock that restricts signals.
_SIGNALS_SINCE: Final = 6


@cache
def _report_shared_user(reason: str) -> None:
    logger.warning("Deployed code runs as the server's user, without its privileges: %s.", reason)


def _closed(needed: Iterable[str], user: User) -> str:
    """Return the reason why a user cannot reach needed paths; empty if it can."""
    for path in needed:
        if os.path.exists(path) and (folder := closed_folder(os.path.realpath(path), *user)) is not None:
            return f"another user cannot pass {folder}, and the system allows no mount namespace"
    return ""


def _named(name: str) -> User | None:
    if name in (AUTO, NONE):
        return None
    try:
        found = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        user = User(found.pw_uid, found.pw_gid)
    except KeyError:
        if not name.isdigit():
            raise ConfigError(f"--job-user {name}: there is no such user on this machine. Add it.") from None
        user = User(int(name), int(name))
    if user.user == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ConfigError(f"--job-user {name}: only root can run jobs as another user. Start the server as root.")
    return user


def _places(database: DatabaseUrl | None) -> list[tuple[str, int]]:
    """Return host and port of each server of a database; an empty host for a Unix socket."""
    if database is None:
        return []
    local = ("", int(os.environ.get("PGPORT") or _POSTGRESQL))
    return [("" if each.is_local else each.host, each.port) for each in database.servers] or [local]


@cache
def _readable() -> tuple[str, ...]:
    """Return the paths that every process may read: the system, the server's Python and its packages."""
    named = [path for name in _CERTIFICATES for path in [os.environ.get(name)] if path]
    etc = [f"/etc/{name}" for name in _ETC]
    whole = [*_SYSTEM, *etc, *_RUN, *interpreter_paths(), *named]
    return tuple(dict.fromkeys(whole))


def paths_of_pip(environment: Mapping[str, str], configurations: Iterable[Path]) -> list[str]:
    """Return the paths in pip's variables and configuration files, except its cache."""
    values = [value for name, value in environment.items() if name.startswith("PIP_") and name != "PIP_CACHE_DIR"]
    for path in configurations:
        parser = configparser.RawConfigParser()
        with contextlib.suppress(OSError, UnicodeDecodeError, configparser.Error):
            parser.read_string(path.read_text())
        values += [value for part in parser.sections() for name, value in parser[part].items() if name != "cache-dir"]
    words = [word.removeprefix("file://") for value in values for word in words_of(value)]
    return [word for word in dict.fromkeys(words) if word.startswith("/") and word != "/" and os.path.exists(word)]


def words_of(text: str) -> list[str]:
    """Return the words of a command line, or of one with invalid quoting those between white space."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
