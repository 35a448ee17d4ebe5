"""One request to the platform: who asks, for which path, with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

from starlette.requests import Request
from starlette.types import Receive, Scope

from scrapy_ext.api.platform.formats import META_FIELDS, whole_number
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.keys import JobKey, is_number, number_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import Exchange, exchange_of
from scrapy_ext.server.store import Store

if TYPE_CHECKING:
    from scrapy_ext.server.http.routes import Route

T = TypeVar("T")

#: What a call may do before it is known whose it is.
_NOBODY: Final = Grant("", frozenset(), write=False)


class Call:
    """What a handler is given: ``parts`` of the path, decoded, and ``path``, those after the first. ``services`` are
    what handlers use beside the store, by type."""

    def __init__(self, scope: Scope, receive: Receive, store: Store, services: Mapping[type, Any]) -> None:
        self.parts = _parts(scope["raw_path"])
        self.path = self.parts[1:]
        #: The route that answers it; None before it is found, and where there is none.
        self.route: Route | None = None
        self.grant = _NOBODY
        #: Whether the answer is a file that a person opens, and not for a program.
        self.for_people = False
        #: ``GET`` also for HEAD, whose answer is the same without its body.
        self.method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        self._scope = scope
        self._receive = receive
        self._store = store
        self.services = services
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
        call = Call(scope, self._receive, self._store, self.services)
        call.grant, call._asked = self.grant, self._asked
        return call

    def service(self, kind: type[T]) -> T:
        """A part of the server, by its type; raises :class:`Refusal` (403) where this server has none."""
        if (found := self.services.get(kind)) is None:
            raise Refusal(403, "Forbidden. This server does not offer this.")
        service: T = found
        return service

    @property
    def unfenced(self) -> Store:
        """The store, in which a process finishes a write that it began while its attempt was the job's: of records.

        Raises :class:`Refusal` (403) for a limited key before its projects were asked for.
        """
        if not (self._asked or self.grant.all_projects or self.grant.job):
            raise self._forbidden("is limited to projects, and this is about all of them")
        return self._store

    @property
    def store(self) -> Store:
        """The store, in which a process writes no more once its attempt is over; raises as :attr:`unfenced` does."""
        store = self.unfenced
        if self.grant.attempt is not None and self.method != "GET":
            return store.fenced(self.grant.attempt)
        return store

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

    def need_where_named(self) -> None:
        """Ask for the projects that the address names: in the path, and for the app in ``project``."""
        place = self._places.get("project")
        named = [] if place is None else [self.path[place]]
        if self.route is not None and self.route.host is Host.APP:
            named += self.all("project")
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
    def _places(self) -> Mapping[str, int]:
        return self.route.places if self.route is not None else {}

    def part(self, name: str) -> str:
        """A variable part of the path."""
        return self.path[self._places[name]]

    def has_part(self, name: str) -> bool:
        """Whether the path has a variable part."""
        return name in self._places

    def part_number(self, name: str) -> int:
        """A variable part of the path that is a number; raises ``ContractError``."""
        return path_number(self.part(name) if self.has_part(name) else "", name)

    @property
    def project(self) -> int:
        """The project of the path."""
        return self.part_number("project")

    def asked_project(self) -> int:
        """The project that the parameter ``project`` names; raises ``ContractError``."""
        text = self.query.get("project")
        if text is None:
            raise refused("project", "is required", "Add ?project=… to the address.")
        return number_of(text, "project")

    @property
    def job(self) -> JobKey:
        """The job of the path."""
        return JobKey(self.project, self.part_number("spider"), self.part_number("job"))


def path_number(part: str, name: str) -> int:
    """A part of a path that is a number; raises ``ContractError``."""
    return number_of(part, name, "Check the path of the address.")


def _parts(raw_path: bytes) -> list[str]:
    pieces = raw_path.strip(b"/").split(b"/") if raw_path.endswith(b"/") else raw_path.lstrip(b"/").split(b"/")
    try:
        return [unquote_to_bytes(piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        raise refused("path", "must be UTF-8", "Encode the path's parts as UTF-8.") from None
