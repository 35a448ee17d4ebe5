"""Routes of logins at the provider: ``/login/oidc`` leads there, and ``/login/oidc/callback`` back to the page."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.auth.rates import WrongKeys
from scrapy_ext.server.auth.users import LoginCounts
from scrapy_ext.server.http.cookies import cookie_of
from scrapy_ext.server.http.request_context import context_of
from scrapy_ext.server.oidc.settings import LoginError
from scrapy_ext.server.ui.frame import HEADERS, Frame
from scrapy_ext.server.ui.sessions import LIFETIME, Sessions, local_path, set_cookie

if TYPE_CHECKING:
    from scrapy_ext.server.oidc.logins import Logins

logger = logging.getLogger(__name__)

BEGIN: Final = "/login/oidc"
CALLBACK: Final = "/login/oidc/callback"
NO_ROLE: Final = (
    "You are logged in, but you have no role in any project yet. Ask the operator of this server for one, and reload "
    "this page."
)
#: Failed logins per address: one every two seconds, with bursts of ten.
_TRIES: Final = (0.5, 10)
#: Seconds of the cookie of a login under way, which ends earlier by itself.
_LASTS: Final = 900
_MOVED: Final = "moved"


class ProviderLogins:
    """Views of logins at the provider, for people without a session."""

    def __init__(self, logins: Logins, frame: Frame, sessions: Sessions, counts: LoginCounts) -> None:
        self._logins = logins
        self._frame = frame
        self._sessions = sessions
        self._counts = counts
        self._failures = WrongKeys(*_TRIES)

    @property
    def _is_public_https(self) -> bool:
        return self._logins.provider.settings.public_url.startswith("https://")

    async def _cookie_name(self) -> str:
        return f"{await self._sessions.cookie_name()}_login"

    async def begin(self, request: Request) -> Response:
        """Redirect to the provider, from the public address of the server: its cookies are not sent elsewhere."""
        onward = local_path(request.query_params.get("next", "/"))
        public = self._logins.provider.settings.public_url
        # Once, since a proxy may hide the name by which the browser knows the server.
        if request.headers.get("host") != urlsplit(public).netloc and _MOVED not in request.query_params:
            query = urlencode({"next": onward, _MOVED: 1})
            return RedirectResponse(f"{public}{BEGIN}?{query}", 303, HEADERS)
        try:
            # Here, since browsers do not send the session's strict cookie to the address to which the provider leads.
            cookie = cookie_of(request, await self._sessions.cookie_name()) or ""
            begun = await self._logins.begin(onward, await self._sessions.id_of(cookie))
        except Exception as error:
            return self._failed(request, error, onward)
        answer = RedirectResponse(begun.url, 303, HEADERS)
        await self._set_cookie(answer, request, begun.cookie, _LASTS)
        return answer

    async def complete(self, request: Request) -> Response:
        """Begin the session of a person whom the provider sends back."""
        cookie = cookie_of(request, await self._cookie_name()) or ""
        try:
            completed = await self._logins.complete(request.query_params, cookie)
            session = await self._sessions.begin_of_user(completed.user)
            await self._sessions.end(completed.session)
        except Exception as error:
            answer = self._failed(request, error, "/")
            if isinstance(error, LoginError) and error.outcome == "state":
                return answer  # the cookie is that of a login in another tab
        else:
            context_of(request.scope).who = completed.user.handle
            self._counts.count("oidc", "success")
            # A page, not a redirect: browsers send no strict cookie to where another site led, also by a redirect.
            answer = self._frame.rendered("again.html", address=completed.onward)
            name, secure = await self._sessions.cookie_name(), self._is_public_https
            set_cookie(answer, request, name, session, LIFETIME, secure=secure)
        await self._set_cookie(answer, request, "", 0)
        return answer

    async def _set_cookie(self, answer: Response, request: Request, value: str, seconds: int) -> None:
        name, secure = await self._cookie_name(), self._is_public_https
        set_cookie(answer, request, name, value, seconds, secure=secure, lax=True)

    def _failed(self, request: Request, error: Exception, onward: str) -> Response:
        if isinstance(error, ContractError):  # no room for another user
            error = LoginError("full", 503, str(error))
        if not isinstance(error, LoginError):
            return self._frame.failed(error, None)
        self._counts.count("oidc", error.outcome)
        logger.warning(
            "A login by OpenID Connect has failed: %s. %s",
            error.detail.rstrip("."),
            error.remedy,
        )
        status, text, wait = error.status, str(error), self._failures.note(request.scope)
        if wait:
            status, text = 429, f"Too many failed logins from this address. Try again in {wait} s."
        answer = self._frame.rendered("login.html", status, onward=onward, error=text)
        if wait:
            answer.headers["Retry-After"] = str(wait)
        return answer
