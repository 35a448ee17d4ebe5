"""Routes of the pages: authentication, login and logout, and redirects.

``/`` redirects to the overview of the first project. ``/p/<project>/<spider>/<job>``, which clients of the hosted
platform print, redirects to the page of that job. The pages themselves are in ``views``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from scrapy_ext.api.compression import gzip
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.versions import MAX_ARCHIVE
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.auth.credentials import basic_credentials
from scrapy_ext.server.auth.rates import WrongKeys, note_wrong_key, too_many
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.deploying import Upload, received
from scrapy_ext.server.http import form_bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.cookies import cookie_of
from scrapy_ext.server.http.formats import is_gzip_among
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.http.origins import is_of_another_site
from scrapy_ext.server.http.request_context import context_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.ui.frame import HEADERS, HTML, Assets, Frame, MissingError, PageServices, UiPage, View, Visit
from scrapy_ext.server.ui.job_records import JOB_PARTS
from scrapy_ext.server.ui.provider_logins import BEGIN, CALLBACK, NO_ROLE, ProviderLogins
from scrapy_ext.server.ui.sessions import LIFETIME, PageSession, Sessions, local_path, set_cookie
from scrapy_ext.server.ui.views import LINKS, PAGES

#: Wrong keys per address in the login form: one every two seconds, with bursts of ten.
_TRIES: Final = (0.5, 10)
_UNAUTHORIZED: Final = "Send the platform's API key as user name, with an empty password.\n"
_WRONG_KEY: Final = "This key has no access here. Use the platform's key, or one created with scrapy platform keys."
#: Request header of the script that refreshes parts of pages (``static/refresh.js``).
_REFRESH: Final = "x-refresh"
_FOREIGN: Final = "The form was not sent by a valid page of this server. Go back, reload the page and try again."


class _Number(IntegerConvertor):
    """A number that the store can hold; other paths do not match."""

    regex = "[0-9]{1,18}|[1-8][0-9]{18}"


register_url_convertor("number", _Number())


#: Bytes below which a page is not compressed, and from which on it is compressed in a thread: 2 ms and more.
_SHORT: Final = 1024
_LONG: Final = 128 * 1024

#: Bytes of the query of a page's address.
MAX_QUERY: Final = 4096


class PageRoutes:
    """The pages of a store; ``routes`` belong at the root."""

    def __init__(self, store: Store, services: PageServices, ending: Callable[[], bool] = lambda: False) -> None:
        assets = Assets()
        self._frame = Frame(store, services, LINKS, assets, ending)
        self._sessions = Sessions(store, services.keys, services.users)
        self._logins = services.logins
        self._counts = services.login_counts
        self._tries = WrongKeys(*_TRIES)
        job = "/p/{project:number}/{spider:number}/{job:number}"
        self.routes: list[BaseRoute] = [
            Route("/", self._view(UiPage("/", "", _first))),
            Route("/login", self._log_in, methods=["GET", "POST"]),
            *self._of_provider(),
            Route("/logout", self._view(UiPage("/logout", "", None, self._log_out, None)), methods=["POST"]),
            Route(job, _moved),
            Route(job + "/{part}", _moved),
            Route("/ui/static/{name:path}", assets.serve),
            *(Route(page.path, self._view(page), methods=["GET", "POST"]) for page in PAGES),
            Route("/ui/{rest:path}", self._view(UiPage("/ui", "", _missing, _missing, None)), methods=["GET", "POST"]),
        ]

    def prepare(self) -> None:
        """Compile the templates in advance, which would slow down the first page."""
        self._frame.compile()

    def _view(self, page: UiPage) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit: Visit | None = None
            try:
                session = await self._session(request)
                if session is None:
                    return self._reload_from_here(request) or _too_many(request) or _to_login(request)
                visit = Visit(self._frame, request, session.grant, session.token, page)
                context_of(request.scope).who = session.grant.name
                _check_query(request)
                return await _light(request, await self._answer(visit, page))
            except Exception as error:
                return self._frame.failed(error, visit)

        return answer

    def _reload_from_here(self, request: Request) -> Response | None:
        """Reload a page once that another site links to: the first request lacks the same-site cookie by design."""
        wanted = ("cross-site", "navigate", "GET")
        headers = request.headers
        if (headers.get("sec-fetch-site"), headers.get("sec-fetch-mode"), request.method) != wanted:
            return None
        return self._frame.rendered("again.html", address=local_path(_address(request)))

    async def _session(self, request: Request) -> PageSession | None:
        credentials = basic_credentials(request.headers.get("authorization", ""))
        if credentials is not None:
            return await self._sessions.of_key(credentials[0]) if credentials[0] else None
        # Without credentials, the answer does not depend on the store.
        if "cookie" not in request.headers:
            return None
        cookie = cookie_of(request, await self._sessions.cookie_name())
        return await self._sessions.of_cookie(cookie) if cookie else None

    async def _answer(self, visit: Visit, page: UiPage) -> Response:
        visit.projects = [each for each in await visit.store.jobs.projects() if visit.grant.may_read(each)]
        names = await visit.store.projects.names()
        visit.names = {project: name for project, name in names.items() if visit.grant.may_read(project)}
        if page.action is not None and not visit.grant.may_read(visit.project):
            if visit.grant.user is not None and not visit.grant.may_somewhere(Action.READ):
                raise Refusal(403, NO_ROLE)
            raise MissingError
        view = page.act if visit.request.method == "POST" else page.show
        if view is None:
            raise Refusal(405, "This address does not support this method. Use the buttons of the page.")
        if visit.request.method == "POST":
            if page.takes_archive:
                return await _with_archive(visit, view)
            visit.form = Form(await form_bodies.form(visit.request))
            _check_token(visit)
            visit.require_write()
        return await view(visit)

    async def _log_in(self, request: Request) -> Response:
        onward = local_path(request.query_params.get("next", "/"))
        if request.method != "POST":
            return self._frame.rendered("login.html", onward=onward, error="")
        try:
            if is_of_another_site(request.headers):
                raise Refusal(403, _FOREIGN)
            form = Form(await form_bodies.form(request))
            onward = local_path(form.get("next") or "/")
            cookie = await self._sessions.begin((form.get("key") or "").strip())
        except Exception as error:
            return self._frame.failed(error, None)
        self._counts.count("key", "wrong-key" if cookie is None else "success")
        if cookie is None:
            if wait := self._tries.note(request.scope):
                answer = self._frame.rendered("login.html", 429, onward=onward, error=too_many(wait))
                answer.headers["Retry-After"] = str(wait)
                return answer
            return self._frame.rendered("login.html", 403, onward=onward, error=_WRONG_KEY)
        name = await self._sessions.cookie_name()
        await self._sessions.end(await self._sessions.id_of(cookie_of(request, name) or ""))
        answer = RedirectResponse(onward, 303, HEADERS)
        set_cookie(answer, request, name, cookie, LIFETIME)
        return answer

    def _of_provider(self) -> list[BaseRoute]:
        """Return the routes of logins at the provider, if there is one."""
        if self._logins is None:
            return []
        logins = ProviderLogins(self._logins, self._frame, self._sessions, self._counts)
        return [Route(BEGIN, logins.begin), Route(CALLBACK, logins.complete)]

    async def _log_out(self, visit: Visit) -> Response:
        name = await self._sessions.cookie_name()
        await self._sessions.end(await self._sessions.id_of(cookie_of(visit.request, name) or ""))
        answer = await self._logged_out(visit)
        set_cookie(answer, visit.request, name, "", 0)
        return answer

    async def _logged_out(self, visit: Visit) -> Response:
        """Continue to the provider's page for logging out, of a user whose provider has one.

        By a page: browsers apply ``form-action`` to redirects of forms, too.
        """
        url = await self._logins.logout_url() if self._logins is not None and visit.grant.user is not None else None
        if url is None:
            return RedirectResponse("/login", 303, HEADERS)
        return self._frame.rendered("again.html", address=url)


def _check_token(visit: Visit) -> None:
    """Refuse a form that a page of this session did not send."""
    brought = (visit.form.get("token") or "").encode()
    if is_of_another_site(visit.request.headers) or not hmac.compare_digest(brought, visit.token.encode()):
        raise Refusal(403, _FOREIGN)


async def _with_archive(visit: Visit, view: View) -> Response:
    """Answer a form with an archive. The visitor's permissions are checked before it is read."""
    visit.require_write()
    if visit.services.deploys is None:
        raise Refusal(403, "This server takes no code. Ask its operator about --deploy.")
    visit.services.deploys.check(visit.grant, visit.grant.name)
    texts: dict[str, str] = {}
    try:
        upload = await received(visit.request, {}, texts)
    except ContractError as error:
        visit.upload = error
    except Refusal as error:
        if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise
        rule = f"is over {MAX_ARCHIVE // 2**20} MiB"
        visit.upload = ContractError([Violation("archive", rule, "Leave out what is not code.", error.status)])
    else:
        visit.upload = upload
    visit.form = Form(list(texts.items()))
    if not isinstance(visit.upload, Upload):
        return await view(visit)
    with visit.upload.file:
        _check_token(visit)
        return await view(visit)


async def _first(visit: Visit) -> Response:
    asked = visit.request.query_params.get("project")
    if asked is not None and visit.number("project", -1) < 0:
        raise refused("project", f"must be a number, got {asked[:60]!r}", "Write ?project=1 in the address.")
    query = {name: value for name, value in visit.request.query_params.items() if name != "project"}
    return visit.redirect(f"/ui/{visit.project}", **query)


async def _missing(_: Visit) -> Response:
    raise MissingError


def _too_many(request: Request) -> Response | None:
    if "authorization" in request.headers and (wait := note_wrong_key(request.scope)):
        return PlainTextResponse(f"{too_many(wait)}\n", 429, {"Retry-After": str(wait), **HEADERS})
    return None


def _to_login(request: Request) -> Response:
    """Redirect a person to the login page; send a challenge to a program."""
    # The script shows a link to the login page in the page that is open.
    if _REFRESH in request.headers:
        return PlainTextResponse("The session has ended.\n", 401, HEADERS)
    if "authorization" in request.headers or "text/html" not in request.headers.get("accept", ""):
        challenge = {"WWW-Authenticate": 'Basic realm="platform API key as user name"', **HEADERS}
        return PlainTextResponse(_UNAUTHORIZED, 401, challenge)
    onward = _address(request) if request.method == "GET" else "/"
    login = f"/login?next={quote(onward, safe='')}" if onward != "/" else "/login"
    return RedirectResponse(login, 303, HEADERS)


async def _light(request: Request, answer: Response) -> Response:
    """Compress a page, and send a part that is refreshed only when it has changed.

    A session's cookie is sent by these pages alone, so that no other site can have a page compressed together with a
    text of its choice and measure the length.
    """
    if answer.status_code != HTTPStatus.OK or answer.media_type != HTML or len(answer.body) < _SHORT:
        return answer
    if _REFRESH in request.headers:
        answer.headers["ETag"] = tag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={**HEADERS, "ETag": tag})
    answer.headers["Vary"] = "Accept-Encoding, X-Refresh"
    if is_gzip_among(request.headers.get("accept-encoding", "")):
        body = bytes(answer.body)
        answer.body = gzip(body) if len(body) < _LONG else await in_data_thread(gzip, body)
        answer.headers["Content-Encoding"] = "gzip"
        answer.headers["Content-Length"] = str(len(answer.body))
    return answer


def _check_query(request: Request) -> None:
    """Refuse a long query: the links of a page repeat it, some hundreds of times."""
    given = request.query_params.multi_items()
    # The page of items keeps chosen columns in a cookie, and redirects.
    is_items = request.url.path.endswith("/items")
    repeated = [(name, text) for name, text in given if not (is_items and name == "columns")]
    if len(urlencode(repeated)) > MAX_QUERY:
        rule = f"of this page is over {MAX_QUERY} bytes"
        raise refused("query", rule, "Search for a shorter text, or use fewer conditions.")


def _address(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


async def _moved(request: Request) -> Response:
    """Redirect from a URL that the hosted platform's tools print to the page of the job."""
    part = request.path_params.get("part")
    key = "/".join(str(request.path_params[name]) for name in ("project", "spider", "job"))
    return RedirectResponse(f"/ui/{key}" + (f"/{part}" if part in JOB_PARTS else ""), 307, HEADERS)
