"""One request to the platform: who asks, for which path, with which parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

from starlette.requests import Request
from starlette.types import Receive, Scope

from scrapy_ext.api.platform.formats import META_FIELDS, whole_number
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.keys import JobKey, is_number, number_of
from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import Refusal, refused
from scrapy_ext.server.http.request_context import Exchange, exchange_of
from scrapy_ext.server.store import Store

#: What a call may do before it is known whose it is.
_NOBODY: Final = Grant("", frozenset(), write=False)
#: Before a project's number in paths of the app host.
_PROJECTS: Final = "projects"


class Call:
    """What a handler is given. ``path`` are the parts after the resource's name, decoded."""

    def __init__(self, scope: Scope, receive: Receive, store: Store) -> None:
        self.path = _parts(scope["raw_path"])[1:]
        self.grant = _NOBODY
        #: Whether the answer is a file that a person opens, and not for a program.
        self.for_people = False
        #: ``GET`` also for HEAD, whose answer is the same without its body.
        self.method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        self._scope = scope
        self._receive = receive
        self._store = store
        self._asked = False
        query: bytes = scope["query_string"]
        self._parameters = parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else []
        #: The query parameters; of a repeated one the last.
        self.query = dict(self._parameters)

    @cached_property
    def request(self) -> Request:
        """The request with its body."""
        return Request(self._scope, self._receive)

    @property
    def exchange(self) -> Exchange:
        """The request as the server sees it from outside."""
        return exchange_of(self._scope)

    @property
    def is_head(self) -> bool:
        """Whether the answer is to have no body."""
        return bool(self._scope["method"] == "HEAD")

    def header(self, name: bytes) -> str | None:
        """A header of the request by its name in small letters; of a repeated one the first."""
        for each, value in self._scope["headers"]:
            if each == name:
                text: str = value.decode("latin-1")
                return text
        return None

    def moved(self, path: str, query: Sequence[tuple[str, str]]) -> Call:
        """The same call, of the same caller, as if it were for another address."""
        scope = {**self._scope, "raw_path": path.encode(), "query_string": urlencode(query).encode()}
        call = Call(scope, self._receive, self._store)
        call.grant, call._asked = self.grant, self._asked
        return call

    @property
    def store(self) -> Store:
        """Where the data is; raises :class:`Refusal` (403) for a limited key before its projects were asked for."""
        if not (self._asked or self.grant.all_projects or self.grant.job):
            raise self._forbidden("is limited to projects, and this is about all of them")
        if self.grant.attempt is not None and self.method != "GET":
            return self._store.fenced(self.grant.attempt)
        return self._store

    @property
    def who(self) -> str:
        """Who asks: the name of the key, or the job whose token it is."""
        return self.grant.name

    def wrote(self, records: int) -> None:
        """Count records that this call has stored."""
        self.exchange.records += records

    def may_read(self, project: int) -> bool:
        """Whether what is told of several projects may tell of this one."""
        self._asked = True
        return self.grant.may_read(project)

    def need(self, project: int) -> None:
        """Raises :class:`Refusal` (403) unless the key may do to this project what the call does."""
        self._asked = True
        if not self.grant.may_read(project):
            raise self._forbidden(f"does not open project {project}")
        if self.method != "GET":
            self.need_write(project)

    def need_write(self, project: int) -> None:
        """The same for a call that changes something although its method does not say so."""
        if not self.grant.may_write(project):
            raise self._forbidden("may read, and not write")

    def need_where_named(self, host: Host) -> None:
        """Ask for the projects that the address names: in the path, and for the app in ``project``."""
        named = self.path[:1]
        if host is Host.APP:
            places = [place for place, part in enumerate(self.path) if part == _PROJECTS]
            named = [part for place in places for part in self.path[place + 1 : place + 2]] + self.all("project")
        for text in named:
            if is_number(text):
                self.need(int(text))
        if self.method != "GET" and not self.grant.write:
            raise self._forbidden("may read, and not write")

    async def form(self) -> list[tuple[str, str]]:
        """The fields of a form body; the key must open the project that they name."""
        fields = await bodies.form(self.request)
        for name, value in fields:
            if name == "project" and is_number(value):
                self.need(int(value))
        return fields

    def _forbidden(self, why: str) -> Refusal:
        return Refusal(403, f"Forbidden. The key {self.who} {why}.")

    def all(self, name: str) -> list[str]:
        """Every value of a query parameter."""
        return [value for each, value in self._parameters if each == name] if name in self.query else []

    def number(self, name: str, default: int | None = None) -> int | None:
        """A query parameter that is a whole number; raises ``ContractError``."""
        return whole_number(self.query, name, default)

    def meta(self, *known: str) -> tuple[str, ...]:
        """The values of ``meta``, in the order given; raises ``ContractError`` for one that is not known."""
        asked = tuple(dict.fromkeys(self.all("meta")))
        for name in asked:
            if name not in (known or META_FIELDS):
                raise refused(
                    "meta", f"must be one of {', '.join(known or META_FIELDS)}, got {name[:60]!r}", "Correct it."
                )
        return asked

    @property
    def project(self) -> int:
        """The project, which is the first part of the path."""
        return path_number(self.path, 0, "project")

    def asked_project(self) -> int:
        """The project that the parameter ``project`` names; raises ``ContractError``."""
        text = self.query.get("project")
        if text is None:
            raise refused("project", "is required", "Add ?project=… to the address.")
        return number_of(text, "project")

    @property
    def job(self) -> JobKey:
        """The job that the first three parts of the path name."""
        return JobKey(self.project, path_number(self.path, 1, "spider"), path_number(self.path, 2, "job"))


def path_number(path: list[str], place: int, name: str) -> int:
    """A part of a path that is a number; raises ``ContractError``."""
    return number_of(path[place] if place < len(path) else "", name, "Check the path of the address.")


def _parts(raw_path: bytes) -> list[str]:
    pieces = raw_path.strip(b"/").split(b"/") if raw_path.endswith(b"/") else raw_path.lstrip(b"/").split(b"/")
    try:
        return [unquote_to_bytes(piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        raise refused("path", "must be UTF-8", "Encode the path's parts as UTF-8.") from None
