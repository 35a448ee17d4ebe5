"""Routes: each path of the server is declared once, beside the function that answers it.

The look-up (:class:`Router`), the check of the caller (``access``), the OpenAPI document (``openapi``), the labels of
the metrics, and the reference page of paths are made from the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.http.answers import not_found
from scrapy_ext.server.http.schemas import AnswerShape, Body, Parameter

if TYPE_CHECKING:
    from scrapy_ext.server.http.call import Call

Handler = Callable[["Call"], Awaitable[Response]]

#: A variable part of a path: any text; with ``int`` digits only; with ``name`` a text that is not digits only; with
#: ``path`` this part and all that follow, with the slashes between them and at the end.
_VARIABLE: Final = re.compile(r"{(\w+)(?::(int|name|path))?}")


class Access(Enum):
    """Callers with access to a route, in words for the reference. A key needs access to the project of the call."""

    ANYONE = "anyone"
    KEY = "an API key"
    JOB = "an API key, the token of the job"
    PROCESS = "an API key, the process of a job of the project"
    SERVER = "an API key of all projects"
    EXTRACTION = "an extraction key, the process of a job"
    #: The OpenAPI document leaves it out, since its messages are those of another protocol.
    AGENT = "an API key, an extraction key"


@dataclass(eq=False)
class Route:
    method: str
    path: str
    summary: str
    answer: AnswerShape
    #: None: the service that declares the route answers it.
    handler: Handler | None = None
    status: int = 200
    parameters: Sequence[Parameter] = ()
    body: Body | None = None
    #: Statuses of refusals beside those that every call of its host can get.
    errors: Sequence[int] = ()
    #: A job's process may also read every route for API keys, in its project.
    access: Access = Access.KEY
    tag: str = ""
    #: The action that the role of a key must allow: READ for GET, else MANAGE unless declared.
    action: Action = Action.MANAGE
    #: The event of the activity about a change by a person or a program; "" for none.
    event: str = ""
    #: The path in documents.
    shown: str = field(init=False)
    host: Host = field(init=False)
    #: The indexes of the variable parts by name, counted from the part after the first.
    places: Mapping[str, int] = field(init=False)
    #: The name of the variable part of kind ``path``; "" without one.
    rest: str = field(init=False)

    def __post_init__(self) -> None:
        self.shown = _VARIABLE.sub(r"{\1}", self.path)
        self.host = host_of(self.first)
        variables = [_VARIABLE.fullmatch(part) for part in self.parts[1:]]
        self.places = {found[1]: place for place, found in enumerate(variables) if found}
        self.rest = next((found[1] for found in variables if found and found[2] == "path"), "")

    @property
    def parts(self) -> list[str]:
        return self.path.split("/")[1:]

    @property
    def first(self) -> str:
        """The first part of the path: the resource, by which requests are counted."""
        return self.parts[0]

    @property
    def beginning(self) -> str:
        """The first part of the path, with the slash that follows it, if any."""
        return self.first + "/" * (len(self.parts) > 1)


_HOSTS: Final = {"api": Host.APP, "comments": Host.APP, "jobq": Host.JOBQ}


def host_of(first: str) -> Host:
    """Return the host of the API that has a path, by its first part."""
    return Host.APP if first.endswith(".json") else _HOSTS.get(first, Host.STORAGE)


class Routes(list[Route]):
    """The routes of a module, in the order of their declaration; ``access`` and ``tag`` are their defaults."""

    def __init__(self, access: Access = Access.KEY, tag: str = "") -> None:
        super().__init__()
        self._access = access
        self._tag = tag

    def add(
        self,
        call: str,
        summary: str,
        answer: AnswerShape,
        *,
        status: int = 200,
        parameters: Sequence[Parameter] = (),
        body: Body | None = None,
        errors: Sequence[int] = (),
        access: Access | None = None,
        action: Action | None = None,
        event: str = "",
    ) -> Callable[[Handler], Handler]:
        """Declare the decorated function as handler of a ``call``: method and path, which may end in ``[optional]``."""
        method, path = call.split(" ")
        base, _, optional = path.rstrip("]").partition("[")
        who, tag = access or self._access, self._tag
        does = action or (Action.READ if method == "GET" else Action.MANAGE)

        def declare(handler: Handler) -> Handler:
            for each in [base, base + optional] if optional else [base]:
                more = (summary, answer, handler, status, parameters, body, errors, who, tag, does, event)
                self.append(Route(method, each, *more))
            return handler

        return declare


class _Node:
    __slots__ = ("name", "named", "number", "rest", "routes", "text")

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.named: dict[str, _Node] = {}
        self.number: _Node | None = None
        self.name: _Node | None = None
        self.text: _Node | None = None
        self.rest: _Node | None = None


#: The node of a path that the fast look-up does not know.
_NOWHERE: Final = _Node()


class Router:
    """Look-up of routes. A literal part precedes a variable one if its route has the method:
    ``GET /collections/1/s/c/count`` counts, and ``POST`` there writes the record with the key ``count``."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        self._resources: dict[str, Route] = {}
        for route in routes:
            self._resources.setdefault(route.first, route)
            node = self._root
            for part in route.parts:
                node = _branch(node, part)
            node.routes[route.method] = route

    def find(self, parts: Sequence[str], method: str) -> Route | None:
        """Return the route of a path, in parts, and a method."""
        node = self._root
        for part in parts:
            found = node.named.get(part)
            if found is None:
                found = (node.number if part.isdigit() else node.name) or node.text
                if found is None:
                    # As in :func:`_ends`, a part of kind ``path`` comes last.
                    rest = node.rest
                    node = rest if rest is not None and parts[-1] not in rest.named else _NOWHERE
                    break
            node = found
        if (route := node.routes.get(method)) is not None:
            return route
        return next((end.routes[method] for end in _ends(self._root, parts) if method in end.routes), None)

    def at(self, parts: Sequence[str]) -> list[Route]:
        """Return the routes of a path, one of each method."""
        found: dict[str, Route] = {}
        for end in _ends(self._root, parts):
            found = {**end.routes, **found}
        return list(found.values())

    def resource(self, first: str) -> Route | None:
        """Return the first route of a resource, whose access rule holds for its unknown paths."""
        return self._resources.get(first)

    async def answer(self, call: Call) -> Response:
        """Return the answer to a call whose caller was checked; raises :class:`Refusal` (404) without a route."""
        route = call.route = call.route or self.find(call.parts, call.method)
        if route is None or route.handler is None:
            raise not_found()
        return await route.handler(call)


def _branch(node: _Node, part: str) -> _Node:
    found = _VARIABLE.fullmatch(part)
    if found is None:
        return node.named.setdefault(part, _Node())
    kind = {"int": "number", "name": "name", "path": "rest"}.get(found[2], "text")
    if getattr(node, kind) is None:
        setattr(node, kind, _Node())
    branch: _Node = getattr(node, kind)
    return branch


def _ends(node: _Node, parts: Sequence[str]) -> Iterator[_Node]:
    """Yield every node that a path leads to, the most specific first."""
    if not parts:
        yield node
        return
    part, rest = parts[0], parts[1:]
    for child in (node.named.get(part), node.number if part.isdigit() else node.name, node.text):
        if child is not None:
            yield from _ends(child, rest)
    if node.rest is not None:
        # A literal part may follow one of kind ``path``: the last part of an address.
        if rest and (end := node.rest.named.get(parts[-1])) is not None:
            yield end
        yield node.rest
