"""One request to the platform: its caller, path and parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

from starlette.requests import Request
from starlette.types import Receive, Scope

from scrapy_ext.api.platform.formats import META_FIELDS, whole_number
from scrapy_ext.api.platform.keys import Host, JobKey, is_number, number_of
from scrapy_ext.api.platform.users import Action, Role
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Schema
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.http import form_bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import RequestContext, context_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt

if TYPE_CHECKING:
    from scrapy_ext.server.http.routes import Route

T = TypeVar("T")

#: The rights of a call whose caller was not checked yet.
_NOBODY: Final = Grant("", frozenset(), Role.VIEW)


class Call:
    """The argument of a handler: a request with the rights of its caller."""

    def __init__(self, scope: Scope, receive: Receive, store: Store, services: Mapping[type, Any]) -> None:
        #: The decoded parts of the path, and those after the first.
        self.parts = _parts(scope["raw_path"])
        self.path = self.parts[1:]
        #: None before the look-up, and for an unknown path.
        self.route: Route | None = None
        self.grant = _NOBODY
        #: True for a file that a person opens, such as a spreadsheet.
        self.for_people = False
        #: Columns of a table, in place of the parameter ``fields``.
        self.columns: Schema | None = None
        #: ``GET`` also for HEAD, whose answer differs in its body only.
        self.method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        self._scope = scope
        self._headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self._receive = receive
        self._store = store
        #: Parts of the server beside the store, by type.
        self.services = services
        #: The last project that this call was allowed to change, and fields of the activity message about the change.
        self.changed: int | None = None
        self.noted: dict[str, Any] = {}
        #: True for an answer that reports a failure with status 200, as Scrapyd's do: nothing was changed.
        self.has_failed = False
        self._has_checked_project = False
        self._request: Request | None = None
        self._project: int | None = None
        self._job: JobKey | None = None
        self._parameters = _parameters(scope["query_string"])
        #: The query parameters; the last value of a repeated one.
        self.query = dict(self._parameters)

    @property
    def request(self) -> Request:
        if self._request is None:
            self._request = Request(self._scope, self._receive)
        return self._request

    @property
    def context(self) -> RequestContext:
        return context_of(self._scope)

    @property
    def is_head(self) -> bool:
        return bool(self._scope["method"] == "HEAD")

    def header(self, name: bytes) -> str | None:
        """Return the first header with a name, which is in lower case."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    def moved(self, path: str, query: Sequence[tuple[str, str]]) -> Call:
        """Return a call of the same caller for another address."""
        scope = {**self._scope, "raw_path": path.encode(), "query_string": urlencode(query).encode()}
        call = Call(scope, self._receive, self._store, self.services)
        call.grant, call._has_checked_project = self.grant, self._has_checked_project
        return call

    def service(self, kind: type[T]) -> T:
        """Return a part of the server by its type; raises :class:`Refusal` (403) if this server has none."""
        if (found := self.services.get(kind)) is None:
            raise Refusal(403, "Forbidden. This server does not offer this: ask the operator.")
        service: T = found
        return service

    @property
    def store(self) -> Store:
        """The store.

        Raises :class:`Refusal` (403) for a limited key before the check of a project.
        """
        if not (self._has_checked_project or self.grant.all_projects or self.grant.job):
            raise self._forbidden("is limited to projects, and this is about all of them")
        return self._store

    @property
    def attempt(self) -> Attempt | None:
        """The attempt of the job's process that calls, for its writes (:mod:`.store.fencing`); None for others."""
        return self.grant.attempt

    @property
    def who(self) -> str:
        """The caller: the name of a key, or the key of a job."""
        return self.grant.name

    def wrote(self, records: int) -> None:
        self.context.records += records

    def may_read(self, project: int) -> bool:
        """Return true when an answer about several projects may include this one."""
        self._has_checked_project = True
        return self.grant.may_read(project)

    def need(self, project: int) -> None:
        """Raise :class:`Refusal` (403) unless the key may read the project or, with a writing method, change it."""
        self._has_checked_project = True
        if not self.grant.may_read(project):
            raise self._forbidden(f"does not open project {project}")
        if self.method != "GET":
            self.need_write(project)

    def need_write(self, project: int) -> None:
        """Raise :class:`Refusal` (403) unless the key may do the route's action in the project, whatever the method of
        the call."""
        if not self.grant.may(self._write, project):
            raise self._forbidden(self._too_little())
        self.changed = project

    @property
    def _write(self) -> Action:
        """The action of the route; of a route that reads, that of one which writes."""
        action = self.route.action if self.route is not None else Action.MANAGE
        return Action.MANAGE if action is Action.READ else action

    def _too_little(self) -> str:
        runs = self.grant.may_somewhere(Action.RUN)
        return "may run and stop jobs, and write nothing else" if runs else "may read, and not write"

    def need_where_named(self) -> None:
        """Check the projects that the address names: in the path, and on the app host in ``project``."""
        place = self._places.get("project")
        named = [] if place is None else self.path[place : place + 1]
        if self.route is not None and self.route.host is Host.APP:
            named += self.all("project")
        for text in named:
            if is_number(text):
                self.need(int(text))
        if self.method != "GET" and not self.grant.job and not self.grant.may_somewhere(self._write):
            raise self._forbidden(self._too_little())

    async def form(self) -> list[tuple[str, str]]:
        """Return the fields of a form body, after a check of the project that they name."""
        fields = await form_bodies.form(self.request)
        for name, value in fields:
            if name == "project" and is_number(value):
                self.need(int(value))
        return fields

    def _forbidden(self, why: str) -> Refusal:
        return Refusal(403, f"Forbidden. The key {self.who} {why}. Use another key.")

    def all(self, name: str) -> list[str]:
        """Return every value of a query parameter."""
        return [value for each, value in self._parameters if each == name] if name in self.query else []

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a query parameter that is a whole number; raises ``ContractError``."""
        return whole_number(self.query, name, default)

    def page_size(self, default: int, most: int, remedy: str) -> int:
        """Return ``count``, from 1 to ``most``; raises ``ContractError``."""
        count = self.number("count", default) or 0
        if not 1 <= count <= most:
            raise refused("count", f"must be 1 to {most}, got {count}", remedy)
        return count

    def meta(self, *known: str) -> tuple[str, ...]:
        """Return the values of ``meta`` in their order; raises ``ContractError`` for an unknown one."""
        asked = tuple(dict.fromkeys(self.all("meta")))
        for name in asked:
            if name not in (known or META_FIELDS):
                raise refused(
                    "meta",
                    f"must be one of {', '.join(known or META_FIELDS)}, got {name[:60]!r}",
                    "Leave out the others.",
                )
        return asked

    @property
    def _places(self) -> Mapping[str, int]:
        return self.route.places if self.route is not None else {}

    def part(self, name: str) -> str:
        """Return a variable part of the path, decoded."""
        if self.route is not None and self.route.rest == name:
            return unquote_to_bytes(self.rest_as_sent()).decode()
        return self.path[self._places[name]]

    def rest_as_sent(self) -> bytes:
        """Return the variable part of kind ``path`` as it was sent: encoded or not, with all of its slashes."""
        assert self.route is not None  # noqa: S101 - its handler calls this
        raw: bytes = self._scope["raw_path"]
        return raw.lstrip(b"/").split(b"/", self._places[self.route.rest] + 1)[-1]

    def take_unknown_query(self, known: Collection[str]) -> bytes:
        """Remove the parameters up to the last one whose name is unknown, and return them as they were sent."""
        pieces = self._scope["query_string"].split(b"&") if self._parameters else []
        names = [unquote_to_bytes(piece.partition(b"=")[0].replace(b"+", b" ")).decode("latin-1") for piece in pieces]
        end = max((place for place, name in enumerate(names, 1) if name not in known), default=0)
        if end:
            self._parameters = _parameters(b"&".join(pieces[end:]))
            self.query = dict(self._parameters)
        return b"&".join(pieces[:end])

    def has_part(self, name: str) -> bool:
        """Return true when the path has a variable part of this name."""
        return name in self._places

    def part_number(self, name: str) -> int:
        """Return a variable part of the path that is a number; raises ``ContractError``."""
        place = self._places.get(name)
        text = "" if place is None else self.path[place]
        # Most are, and a request has up to four.
        return int(text) if is_number(text) else path_number(text, name)

    # Not ``cached_property``: its lock takes longer than a look-up of a record's chunk until Python 3.12.
    @property
    def project(self) -> int:
        if self._project is None:
            self._project = self.part_number("project")
        return self._project

    def asked_project(self) -> int:
        """Return the project of the parameter ``project``; raises ``ContractError``."""
        text = self.query.get("project")
        if text is None:
            raise refused("project", "is required", "Add ?project=… to the address.")
        return number_of(text, "project")

    @property
    def job(self) -> JobKey:
        if self._job is None:
            self._job = JobKey(self.project, self.part_number("spider"), self.part_number("job"))
        return self._job


def path_number(part: str, name: str) -> int:
    """Return a part of a path as a number; raises ``ContractError``."""
    return number_of(part, name, "Check the path of the address.")


def _parameters(query: bytes) -> list[tuple[str, str]]:
    """Return the query parameters, also those without a value, in their order."""
    if not query:
        return []
    text = query.decode("latin-1")
    if "%" in text or "+" in text:
        return parse_qsl(text, keep_blank_values=True)
    # Most queries have nothing to decode.
    return [(name, value) for piece in text.split("&") if piece for name, _, value in (piece.partition("="),)]


def _parts(raw_path: bytes) -> list[str]:
    if raw_path.isascii() and b"%" not in raw_path and not raw_path.startswith(b"//") and not raw_path.endswith(b"/"):
        return raw_path[1:].decode("ascii").split("/")
    # One slash at the end has no meaning; several belong to a part that may have slashes.
    pieces = raw_path.removesuffix(b"/").lstrip(b"/").split(b"/")
    try:
        return [unquote_to_bytes(piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        raise refused("path", "must be UTF-8", "Encode the path's parts as UTF-8.") from None
