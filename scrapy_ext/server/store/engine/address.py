"""URLs of PostgreSQL databases, whose passwords are never shown."""

from __future__ import annotations

import os
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from scrapy_ext.server.store.engine.errors import StoreError

_SCHEMES: Final = ("postgresql", "postgres")
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_PORT: Final = 5432
#: Values of ``target_session_attrs`` that a primary meets.
_PRIMARY: Final = ("any", "primary", "read-write")


class DatabaseServer(NamedTuple):
    """One server of an address. ``host``: a name, an IP address, or the directory of a socket."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """True for a Unix socket."""
        return self.host.startswith(("/", "@"))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class DatabaseUrl:
    """``postgresql://user:password@host:port/database?options``; its text and ``repr`` omit password and options.

    Several servers, ``host1:port1,host2:port2``, are a primary and its standbys: the one that takes writes is used.
    Raises :class:`StoreError` for any other URL, without showing it.
    """

    def __init__(self, url: str) -> None:
        self.secret: Final = url
        try:
            parts = urlsplit(url)
            port = None if "," in parts.netloc else parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in _SCHEMES or not parts.path.strip("/"):
            raise StoreError(f"The address of the database is malformed. Write it as {_FORM}.")
        user, _, hosts = parts.netloc.rpartition("@")
        self.database: Final = unquote(parts.path.strip("/"))
        self.user: Final = unquote(user.partition(":")[0])
        self.hosts: Final = hosts or "the local socket"
        self.port: Final = port
        shown = f"{quote(self.user)}@{hosts}" if self.user else hosts
        self._shown: Final = f"postgresql://{shown}/{quote(self.database)}"
        wanted = dict(parse_qsl(parts.query)).get("target_session_attrs", "any")
        if wanted not in _PRIMARY:
            raise StoreError(
                f"{self}: target_session_attrs={wanted} asks for a standby, and the server writes. Leave it out, or "
                "use read-write."
            )

    @property
    def servers(self) -> tuple[DatabaseServer, ...]:
        """The servers, in their order; none if the driver looks for the local one."""
        parts = urlsplit(self.secret)
        options = dict(parse_qsl(parts.query))
        hosts = parts.netloc.rpartition("@")[2] or options.get("host") or os.environ.get("PGHOST", "")
        ports = (options.get("port") or os.environ.get("PGPORT") or str(_PORT)).split(",")
        servers = []
        for place, text in enumerate(hosts.split(",") if hosts else ()):
            host, _, port = text.rpartition(":")
            if not port.isdigit() or not host or (":" in host and not host.startswith("[")):
                host, port = text, ports[place] if len(ports) > place else ports[-1]
            servers.append(DatabaseServer(unquote(host).strip("[]"), int(port) if port.isdigit() else _PORT))
        return tuple(servers)

    def with_password(self, password: str) -> DatabaseUrl:
        """Return the URL with a password, unless it has one."""
        parts = urlsplit(self.secret)
        options = parse_qsl(parts.query)
        if parts.password or any(name == "password" for name, _ in options):
            return self
        joined = "&".join(filter(None, [parts.query, f"password={quote(password, safe='')}"]))
        return DatabaseUrl(urlunsplit(parts._replace(query=joined)))

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"DatabaseUrl({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and self.secret == other.secret

    def __hash__(self) -> int:
        return hash(self.secret)
