"""Rendering, access checks and errors shared by all pages.

A view is a coroutine function from a :class:`Visit` to a response. It shows something (GET), or it changes something
(POST) and redirects to a page with the result. Its exceptions become pages: ``MissingError``, ``ContractError``,
``Refusal``, and failures of the store with the same text as in the platform API.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from scrapy_ext.api.platform.changes import change_event
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.projects import labelled
from scrapy_ext.api.platform.users import LEAST, Action
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.api_keys import Grant, Keyring
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.auth.users import LoginCounts, UserRules
from scrapy_ext.server.delivery.targets import ArchiveTargets
from scrapy_ext.server.http.answers import Refusal, refusal_of
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.http.routes import Router
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.activity import SERVER
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.images import ItemImages
from scrapy_ext.server.ui.live import Streams

if TYPE_CHECKING:
    from scrapy_ext.server.delivery.restoring import Restores
    from scrapy_ext.server.deploying import Deploys, Upload
    from scrapy_ext.server.extraction import ExtractionService
    from scrapy_ext.server.jobs.versions.environments import Environments
    from scrapy_ext.server.oidc.logins import Logins

logger = logging.getLogger(__name__)

#: Searches of URLs by one visitor: per second, and at once.
_SEARCHES: Final = (1.0, 20)
#: Maximum number of projects in the menu.
_IN_MENU: Final = 200

HTML: Final = "text/html; charset=UTF-8"
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


# ── static files: style sheet and scripts ──
# A URL contains a hash of the contents, so that browsers may cache the file.

_TYPES: Final = {".css": "text/css; charset=UTF-8", ".js": "text/javascript; charset=UTF-8"}
#: Cache-Control for a URL with the current version, and for any other.
_CACHED: Final = "max-age=31536000, immutable"
_BRIEFLY: Final = "max-age=300"


class Assets:
    """Files of the folder ``static``."""

    def __init__(self) -> None:
        folder = files("scrapy_ext.server.ui").joinpath("static")
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}
        self._versions = {name: sha256(data).hexdigest()[:12] for name, data in self._files.items()}

    def address(self, name: str) -> str:
        """Return the versioned URL of an existing file."""
        return f"/ui/static/{name}?v={self._versions[name]}"

    async def serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("Not Found\n", 404, {"X-Content-Type-Options": "nosniff"})
        kept = request.query_params.get("v") == self._versions[name]
        headers = {"Cache-Control": _CACHED if kept else _BRIEFLY, "X-Content-Type-Options": "nosniff"}
        return Response(self._files[name], media_type=_TYPES[name[name.rindex(".") :]], headers=headers)


class PageServices(NamedTuple):
    """Services that pages use besides the store."""

    keys: Keyring
    extraction: ExtractionService
    #: Answers as the platform does, for downloads.
    router: Router
    users: UserRules
    #: Login by OpenID Connect; None without a provider.
    logins: Logins | None
    login_counts: LoginCounts
    schemas: ItemSchemas
    restores: Restores
    #: Fetches images of items; None unless the operator allows it.
    images: ItemImages | None = None
    #: Texts of alerts.
    messages: Messages = Messages(None)
    #: Places that delivery rules may name.
    archive: ArchiveTargets = ArchiveTargets()
    #: Acceptance of code; None if the pages know no code.
    deploys: Deploys | None = None

    @property
    def environments(self) -> Environments | None:
        """Environments of deployed versions and of the server's own project."""
        return None if self.deploys is None else self.deploys.deployments.environments


class MissingError(Exception):
    """The page does not exist or is not visible to this key."""


class Link(NamedTuple):
    """An entry of the navigation bar; ``{project}`` in its path is the current project.

    Only keys for which ``shown_to`` returns true see it. With ``under``, the section of another entry, it is not in the
    bar, but among the tabs of the pages of that entry.
    """

    section: str
    label: str
    path: str
    shown_to: Callable[[Grant], bool] = lambda _: True
    under: str = ""

    @property
    def of_project(self) -> bool:
        """True for a page of the current project, false for one of the server."""
        return self.path.startswith("/ui/{project}")


class UiPage(NamedTuple):
    """A route: the view for GET, the view for POST, and its section of the navigation bar.

    A visitor whose role does not allow ``action`` is refused before ``act``, and so is one without access to the
    project, which the path names as ``{project:number}``. None: ``act`` changes no project, and anybody may do it.

    ``takes_archive``: the form has a file, which ``act`` finds in ``visit.upload``.
    """

    path: str
    section: str
    show: View | None
    act: View | None = None
    action: Action | None = Action.MANAGE
    takes_archive: bool = False


class Visit:
    """One authenticated request for a page.

    ``form`` has the fields of a POST whose token has been checked; ``upload``: its archive, or the error of one that
    could not be read, whose token has not been checked: it may only be shown.
    """

    def __init__(self, frame: Frame, request: Request, grant: Grant, token: str, page: UiPage) -> None:
        self._frame = frame
        self._page = page
        self.request = request
        self.grant = grant
        self.store: Store = frame.store
        self.services = frame.services
        self.ending = frame.ending
        self.streams = frame.streams
        #: Searches of URLs by visitor.
        self.searches = frame.searches
        self.section = page.section
        self.form = Form(())
        self.upload: Upload | ContractError | None = None
        #: CSRF token of the page's forms.
        self.token = token
        #: Projects with data that the key may read.
        self.projects: Sequence[int] = ()
        #: Names of the projects that the key may read.
        self.names: Mapping[int, str] = {}

    @cached_property
    def project(self) -> int:
        """The project of the path; without one, that of ``?project=``, or the first."""
        if "project" in self.request.path_params:
            number: int = self.request.path_params["project"]
            return number
        asked = self.number("project", -1)
        return asked if asked >= 0 else self.projects[0] if self.projects else min(self.grant.projects or (1,))

    def label(self, project: int | None = None) -> str:
        """Return the number of a project (of the page's without one), with its name if it has one."""
        number = self.project if project is None else project
        return labelled(number, self.names.get(number))

    @property
    def listed_projects(self) -> Sequence[int]:
        """Projects in the menu: the first ones, and that of the page."""
        shown = self.projects[:_IN_MENU]
        return shown if self.project in shown else sorted({*shown[: _IN_MENU - 1], self.project})

    @property
    def key(self) -> JobKey:
        return JobKey(*(self.request.path_params[name] for name in ("project", "spider", "job")))

    @property
    def may_write(self) -> bool:
        """True when the visitor may do in the project what the page's forms do."""
        return self._page.action is None or self.grant.may(self._page.action, self.project)

    @property
    def looked_up(self) -> str:
        """The text of the search in the head of the pages, on the page of its answers."""
        return self.request.query_params.get("q", "")[:2000] if self.request.url.path.endswith("/search") else ""

    @property
    def role_note(self) -> str:
        """The limit of the visitor's role in the project, in words; "" for one who manages it."""
        grant, project = self.grant, self.project
        # Where the visitor does not see the project of the page, the roles in others count.
        is_seen = grant.may_read(project)

        def may(action: Action) -> bool:
            return grant.may(action, project) if is_seen else grant.may_somewhere(action)

        if may(Action.MANAGE):
            return ""
        if may(Action.RUN):
            return "may run"
        return "read only" if may(Action.READ) else "no role yet"

    @property
    def may_manage(self) -> bool:
        return self.grant.may(Action.MANAGE, self.project)

    def manages(self, project: int) -> bool:
        """Return true when the visitor manages a project, not only that of the page."""
        return self.grant.may(Action.MANAGE, project)

    def require_write(self) -> None:
        """Refuse a visitor who may not do what the page's forms do, also for pages that only consist of a form."""
        if self._page.action is not None:
            self.require(self._page.action)

    def require(self, action: Action) -> None:
        """Refuse a visitor whose role in the project does not allow an action."""
        if not self.grant.may(action, self.project):
            raise Refusal(403, self._too_little(action))

    def _too_little(self, action: Action) -> str:
        whose = "Your role" if self.grant.user is not None else "The key"
        least = LEAST[action].value
        reads = not self.grant.may(Action.RUN, self.project)
        may = "may only read" if reads else "may only run, stop and tag jobs"
        return f"{whose} {may} in project {self.project}. This needs the role {least}."

    async def note(self, event: str, /, **fields: object) -> None:
        """Write a message about a change to the activity of the project."""
        await self._note(self.project, change_event(event, self.grant.name, fields))

    async def note_server(self, event: str, /, **fields: object) -> None:
        """Write a message about a change of the server to its activity."""
        await self._note(SERVER, change_event(event, self.grant.name, fields))

    async def _note(self, project: int, message: bytes) -> None:
        try:
            await self.store.activity.add(project, [message])
        # The change itself is stored, and the page must not say otherwise.
        except StoreError as error:
            logger.warning("The activity has no message about a change by %s: %s", self.grant.name, error)

    def number(self, name: str, default: int = 0) -> int:
        """Return a query parameter as an integer, or ``default`` when it is missing or not a number."""
        text = self.text(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else default

    def text(self, name: str) -> str:
        """Return a query parameter, "" without one; raises ``ContractError`` when it is too long or contains NUL."""
        text = self.request.query_params.get(name, "").strip()
        if len(text) > 255 or "\0" in text:
            raise refused(name, "must be 255 characters at most, none of them NUL", "Write a shorter text.")
        return text

    def rendered(self, template: str, status: int = 200, /, **context: object) -> Response:
        return self._frame.rendered(template, status, visit=self, **context)

    def address(self, path: str = "", /, **changes: object) -> str:
        """Return the URL of this page (or of ``path``) with changed query parameters; None or "" removes one."""
        kept = {} if path else dict(self.request.query_params)
        query = {name: value for name, value in {**kept, **changes}.items() if value not in (None, "")}
        kept_done = {name: value for name, value in query.items() if name not in ("done", "n") or name in changes}
        return (path or self.request.url.path) + (f"?{urlencode(kept_done)}" if kept_done else "")

    def redirect(self, path: str, done: str = "", n: int | None = None, /, **query: object) -> Response:
        """Redirect after a form; ``done`` names the confirmation that the page shows (``shapes.DONE``)."""
        return RedirectResponse(self.address(path, done=done, n=n, **query), 303, HEADERS)

    def removed(self, path: str) -> Response:
        """Redirect after a deletion whose data is purged afterwards."""
        self.store.deleted.set()
        return self.redirect(path, "removed")


View = Callable[[Visit], Awaitable[Response]]


class Frame:
    """Renderer of the templates. ``ending`` returns true when the server stops, which ends live streams."""

    def __init__(
        self, store: Store, services: PageServices, links: Sequence[Link], assets: Assets, ending: Callable[[], bool]
    ) -> None:
        self.store = store
        self.services = services
        self.ending = ending
        self.streams = Streams()
        self.searches = RateLimits(*_SEARCHES)
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
        provider = services.logins and services.logins.provider.settings.name
        heads = {link.section: link.under or link.section for link in links}
        self._templates.globals.update(links=links, heads=heads, assets=assets, provider=provider)
        self._compiling = False

    def rendered(self, template: str, status: int = 200, /, **context: Any) -> Response:
        visit: Visit | None = context.setdefault("visit", None)
        context["done"] = visit and shapes.done(visit.request.query_params)
        text = self._templates.get_template(template).render(context)
        # Compiling during the first page would make it twice as slow; later pages need the other templates.
        self.compile()
        return Response(text, status, HEADERS, media_type=HTML)

    def compile(self) -> None:
        """Compile all templates once, in a thread: half a second in all, a tenth for those of one page."""
        if not self._compiling:
            self._compiling = True
            threading.Thread(target=self._compile, name="templates", daemon=True).start()

    def _compile(self) -> None:
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def failed(self, error: Exception, visit: Visit | None) -> Response:
        """Render the error page, with as much detail as the platform API reports."""
        missing = (
            Refusal(404, "There is no page at this address. Use a link of the menu.")
            if isinstance(error, MissingError)
            else error
        )
        refusal = refusal_of(missing, trusted=visit is not None and visit.grant.all_projects)
        match error:
            case ContractError():
                title = "Invalid request"
            case StoreAwayError():
                title = "The database is unavailable"
            case StoreError():
                title = "The database failed"
            case _:
                title = {403: "Not allowed", 404: "Not found"}.get(refusal.status, "The request failed")
        answer = self.rendered("message.html", refusal.status, title=title, text=refusal.message, visit=visit)
        answer.headers.update(refusal.headers)
        return answer


def field_errors(error: ContractError) -> Mapping[str, str]:
    """Return the first violation of each field, as shown beside the fields."""
    errors: dict[str, str] = {}
    for violation in error.violations:
        errors.setdefault(violation.field, f"{violation.rule}. {violation.remedy}")
    return errors
