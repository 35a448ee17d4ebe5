"""What all pages have in common: how they are rendered and guarded, and what a view is given.

A view is a coroutine function from a :class:`Visit` to a response. It shows something (GET), or it changes something
(POST) and leads to a page that shows what has become of it. What it raises becomes a page as well: ``MissingError``,
``ContractError`` and ``Refusal`` as they say, and what is wrong with the store as the platform tells it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.keyring import Grant, Keyring
from scrapy_ext.server.http.answers import Refusal, refusal_of
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.http.routes import Router
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.assets import Assets
from scrapy_ext.server.ui.live import Streams

if TYPE_CHECKING:
    from scrapy_ext.server.extraction import ExtractionService

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Services(NamedTuple):
    """What pages use beside the store."""

    keys: Keyring
    extraction: ExtractionService
    #: Answers as the platform does, for downloads.
    router: Router


class MissingError(Exception):
    """There is no such page, or none for this key."""


class Link(NamedTuple):
    """An entry of the navigation bar; ``{project}`` in its path is the project that is being looked at.

    It is shown to those keys of which ``to`` says so.
    """

    section: str
    label: str
    path: str
    to: Callable[[Grant], bool] = lambda _: True


class UiPage(NamedTuple):
    """An address: what shows it, what its forms do, and which entry of the navigation bar it belongs to.

    A key that may only read is refused before ``act``, and so is one that has no business with the project, which the
    path names as ``{project:number}``.
    """

    path: str
    section: str
    show: View | None
    act: View | None = None


class Visit:
    """One request for a page, by somebody whose key has been checked.

    ``form`` has the fields of a POST, whose token has been checked.
    """

    def __init__(self, frame: Frame, request: Request, grant: Grant, token: str, section: str) -> None:
        self._frame = frame
        self.request = request
        self.grant = grant
        self.store: Store = frame.store
        self.services = frame.services
        self.ending = frame.ending
        self.streams = frame.streams
        self.section = section
        self.form = Form(())
        #: What the forms of the page have to bring.
        self.token = token
        #: The projects that the key opens and that have anything.
        self.projects: Sequence[int] = ()

    @cached_property
    def project(self) -> int:
        """The project of the path; where it names none, the one of ``?project=``, or the first."""
        if "project" in self.request.path_params:
            number: int = self.request.path_params["project"]
            return number
        asked = self.number("project", -1)
        return asked if asked >= 0 else self.projects[0] if self.projects else min(self.grant.projects or (1,))

    @property
    def key(self) -> JobKey:
        """The job of the path."""
        return JobKey(*(self.request.path_params[name] for name in ("project", "spider", "job")))

    @property
    def may_write(self) -> bool:
        """Whether the page offers to change anything."""
        return self.grant.may_write(self.project)

    def need_to_write(self) -> None:
        """Refuse who may only read: of pages that are nothing but a form."""
        if not self.may_write:
            raise Refusal(403, "The key may read, and not write.")

    def number(self, name: str, default: int = 0) -> int:
        """A query parameter that is a whole number; what is not one is as if it were not there."""
        text = self.text(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else default

    def text(self, name: str) -> str:
        """A query parameter, "" when it is not there; raises ``ContractError`` for what nothing can be called."""
        text = self.request.query_params.get(name, "").strip()
        if len(text) > 255 or "\0" in text:
            raise refused(name, "must be 255 characters at most, none of them NUL", "Correct the address.")
        return text

    def rendered(self, template: str, status: int = 200, /, **context: Any) -> Response:
        """A page."""
        return self._frame.rendered(template, status, visit=self, **context)

    def address(self, path: str = "", /, **changes: Any) -> str:
        """The address of this page (or of ``path``) with query parameters changed; None or "" leaves one out."""
        kept = {} if path else dict(self.request.query_params)
        query = {name: value for name, value in {**kept, **changes}.items() if value not in (None, "")}
        kept_done = {name: value for name, value in query.items() if name not in ("done", "n") or name in changes}
        return (path or self.request.url.path) + (f"?{urlencode(kept_done)}" if kept_done else "")

    @staticmethod
    def pairs(query: str) -> Sequence[tuple[str, str]]:
        """The parameters of an address that came with a form."""
        return parse_qsl(query)

    def onward(self, path: str, done: str = "", n: int | None = None, /, **query: Any) -> Response:
        """Lead on to a page after a form was dealt with; ``done`` names what it says of that (``shapes.DONE``)."""
        return RedirectResponse(self.address(path, done=done, n=n, **query), 303, HEADERS)


View = Callable[[Visit], Awaitable[Response]]


class Frame:
    """Renders. ``ending`` says whether the server is about to stop: nothing that lasts goes on then."""

    def __init__(
        self, store: Store, services: Services, links: Sequence[Link], assets: Assets, ending: Callable[[], bool]
    ) -> None:
        self.store = store
        self.services = services
        self.ending = ending
        self.streams = Streams()
        self._templates = Environment(
            loader=PackageLoader("scrapy_ext.server.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=shapes.as_text,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(shapes.FILTERS)
        self._templates.globals.update(links=links, assets=assets)
        self._compiling = False

    def rendered(self, template: str, status: int = 200, /, **context: Any) -> Response:
        """A page; ``visit`` is None where nobody has logged in."""
        visit: Visit | None = context.setdefault("visit", None)
        context["done"] = visit and shapes.done(visit.request.query_params)
        text = self._templates.get_template(template).render(context)
        # Who looks at one page will look at others. Not before it is done, which would take twice as long.
        self.compile()
        return Response(text, status, HEADERS, media_type="text/html; charset=UTF-8")

    def compile(self) -> None:
        """Have the templates compiled, beside whatever else is done, unless that has begun: together they take half a
        second, and those of a page a tenth."""
        if not self._compiling:
            self._compiling = True
            threading.Thread(target=self._compile, name="templates", daemon=True).start()

    def _compile(self) -> None:
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def failed(self, error: Exception, visit: Visit | None) -> Response:
        """The page that says what went wrong; as much of it as the platform tells its own clients."""
        missing = Refusal(404, "There is nothing at this address.") if isinstance(error, MissingError) else error
        refusal = refusal_of(missing, trusted=visit is not None and visit.grant.all_projects)
        match error:
            case ContractError():
                title = "This cannot be"
            case StoreAwayError():
                title = "The store is away"
            case StoreError():
                title = "The store failed"
            case _:
                title = {403: "Not allowed", 404: "Not found"}.get(refusal.status, "This did not work")
        answer = self.rendered("message.html", refusal.status, title=title, text=refusal.message, visit=visit)
        answer.headers.update(refusal.headers)
        return answer


def field_errors(error: ContractError) -> Mapping[str, str]:
    """What is wrong with a form, by its fields, to be told beside them."""
    told: dict[str, str] = {}
    for violation in error.violations:
        told.setdefault(violation.field, f"{violation.rule}. {violation.remedy}")
    return told
