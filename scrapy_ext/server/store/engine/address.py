"""URLs of PostgreSQL databases, whose passwords are never shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from scrapy_ext.server.store.engine.errors import StoreError

_SCHEMES: Final = ("postgresql", "postgres")
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


class DatabaseUrl:
    """``postgresql://user:password@host:port/database?options``; its text and ``repr`` omit password and options.

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
            raise StoreError(f"The address of the database must have the form {_FORM}.")
        user, _, hosts = parts.netloc.rpartition("@")
        self.database: Final = unquote(parts.path.strip("/"))
        self.user: Final = unquote(user.partition(":")[0])
        self.hosts: Final = hosts or "the local socket"
        self.port: Final = port
        shown = f"{quote(self.user)}@{hosts}" if self.user else hosts
        self._shown: Final = f"postgresql://{shown}/{quote(self.database)}"

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
