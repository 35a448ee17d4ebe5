"""HTTP requests to targets (``httpResponseBody``, ``httpResponseHeaders``, automatic extraction by HTTP).

Behaviour that the contract leaves open:

* Redirects are followed, at most ``limits.redirects``, as browsers follow them: 301, 302 and 303 turn a POST into a
  GET, 307 and 308 repeat it. With ``followRedirect`` false they are results. The guard checks each hop; cookies of
  earlier hops are sent; credentials, and headers whose names indicate keys, tokens and the like, are sent to their
  origin only.
* A target's own 4xx and 5xx answers are results with their ``statusCode``, like every other answer;
  :mod:`~scrapy_ext.server.extraction.bans` recognises those that are bans.
* The body is that of the target with content codings undone (:mod:`.bodies`): text is decoded by the client, which has
  the headers.
* Response headers are a list in the order of the wire with repeated names. They are those of the last hop. A
  ``Content-Encoding`` that the body does not have is left out.
* Connections are kept for the next request to the same origin; nothing else outlives a request.
* A request through a proxy of the operator's goes there through a local proxy of its own, as a browser page does.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable
from http.cookies import Morsel
from typing import Any, Final

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from scrapy_ext.api.extraction import Cause, Header, Redirect
from scrapy_ext.api.extraction.forms import REDIRECTS
from scrapy_ext.api.extraction.problems import ExtractionError, connection_failed, permanent, temporary, unreachable
from scrapy_ext.api.masking import is_private_header
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.http.bodies import read_body
from scrapy_ext.server.extraction.http.cookie_jar import FetchCookies
from scrapy_ext.server.extraction.http.lenient_answers import use_lenient_handler
from scrapy_ext.server.extraction.http.refused_cookies import cookies_of, use_own_warnings
from scrapy_ext.server.extraction.outgoing import headers_to_send, without_secure_ones
from scrapy_ext.server.extraction.plan import HttpPlan
from scrapy_ext.server.extraction.request_limits import Hold, no_count
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net.guard import Guard, address_of, target_of
from scrapy_ext.server.net.proxy import PageProxy
from scrapy_ext.server.net.resolver import GuardedResolver
from scrapy_ext.server.net.upstream import ProxyFailedError
from scrapy_ext.telemetry.spans import Span, client_span

#: Real sites send policies of tens of kilobytes in one header.
_HEADER_BYTES: Final = 64 * 1024
_HEADERS: Final = 1000
#: Headers that aiohttp would add by itself.
_NOT_ADDED: Final = ("Content-Type", "User-Agent", "Accept", "Accept-Encoding")

#: Checks a URL before it is requested; raises :class:`ExtractionError`.
Check = Callable[[str], Awaitable[None]]


class HttpResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the last hop; ``url`` is its URL, ``redirects`` are the hops before it, ``state`` is
    that of the session of the request."""

    url: str
    status: int
    headers: list[Header]
    body: bytes
    cookies: list[dict[str, Any]] | None = None
    redirects: list[Redirect] = []
    state: SessionState | None = None

    @property
    def content_type(self) -> str | None:
        return self._header("content-type")

    @property
    def retry_after(self) -> str:
        return self._header("retry-after") or ""

    def _header(self, name: str) -> str | None:
        return next((header.value for header in self.headers if header.name.lower() == name), None)


class Fetcher:
    """HTTP requests through the guard. Use it between :meth:`start` and :meth:`stop`."""

    def __init__(self, guard: Guard, limits: ServiceLimits, *, verify_tls: bool = True) -> None:
        self._guard = guard
        self._limits = limits
        #: True: as aiohttp verifies by itself. It has read the system's certificates, which takes 40 ms.
        self._tls = verify_tls
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the pool of connections."""
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard), use_dns_cache=False, ssl=self._tls, limit=0, keepalive_timeout=15
        )
        use_lenient_handler(connector)
        use_own_warnings()
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=self._limits.connect, sock_read=None),
            auto_decompress=False,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
            max_headers=_HEADERS,
        )

    async def stop(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def fetch(self, plan: HttpPlan, check: Check | None = None, hold: Hold = no_count) -> HttpResult:
        """Make a request and follow its redirects; raises :class:`ExtractionError` (421, 451, 520, 521).

        ``check`` is called with each URL before it is requested, and raises to refuse it; ``hold`` counts bytes.
        """
        if self._session is None:
            raise RuntimeError("the fetcher is not started")
        try:
            async with timeout_after(self._limits.fetch):
                exchange = _Exchange(self._session, self._guard, self._limits, plan, check=check, hold=hold)
                if plan.upstream is None:
                    return await exchange.run()
                async with PageProxy(self._guard, self._limits, plan.upstream) as exchange.proxy:
                    return await exchange.run()
        except TIMEOUT_ERRORS:
            detail = f"{URL(plan.url, encoded=True).raw_host} did not answer in {self._limits.fetch:g} seconds."
            raise temporary(detail, Cause.TIMEOUT) from None


class _Exchange:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        guard: Guard,
        limits: ServiceLimits,
        plan: HttpPlan,
        *,
        check: Check | None,
        hold: Hold,
    ) -> None:
        self._session = session
        #: The local proxy to the operator's proxy, where the request goes through one.
        self.proxy: PageProxy | None = None
        self._check = check
        self._hold = hold
        self._guard = guard
        self._limits = limits
        self._plan = plan
        self._method = plan.method
        self._body = plan.body
        self._redirects: list[Redirect] = []
        headers = headers_to_send(plan.headers, plan.language, plan.omitted_headers, plan.device)
        self._headers = CIMultiDict((header.name, header.value) for header in headers)
        self._url = self._take_credentials(address_of(plan.url))
        # Made for the first cookie; each request has its own.
        self._jar: FetchCookies | None = None
        if plan.cookies or plan.state is not None:
            self._jar = FetchCookies(plan.cookies, plan.state.cookies if plan.state else (), self._url)

    async def run(self) -> HttpResult:
        for _ in range(self._limits.redirects + 1):
            await self._check_address()
            if self._check is not None:
                await self._check(str(self._url))
            try:
                with (
                    client_span(self._method, str(self._url), resend=len(self._redirects)) as span,
                    cookies_of(self._url.raw_host or ""),
                ):
                    answer = await self._hop(span)
            except ExtractionError:
                raise
            except (aiohttp.ClientError, ValueError, OSError, *TIMEOUT_ERRORS) as error:
                raise self._proxy_failure() or _problem(self._url, error) from error
            if answer is not None:
                return answer
        raise permanent(
            f"{self._url.raw_host} redirected more than {self._limits.redirects} times.",
            remedy="Send the URL of the page itself, or the cookies that the site needs.",
        )

    async def _check_address(self) -> None:
        """Check the host: aiohttp calls its resolver for names only, and not for open connections."""
        host, port = self._url.raw_host or "", self._url.port or 0
        if ":" in host or host.replace(".", "").isdigit():
            await self._guard.endpoints(host, port)
        else:
            await self._guard.check_domain(host)

    async def _hop(self, span: Span) -> HttpResult | None:
        """Make one request; return None when it was redirected."""
        async with self._session.request(
            self._method,
            self._url,
            headers=self._headers_with_cookies(),
            data=self._body,
            allow_redirects=False,
            skip_auto_headers=_NOT_ADDED,
            proxy=self.proxy.url if self.proxy else None,
        ) as response:
            if self.proxy and self.proxy.is_own_answer(response.headers):
                raise self._proxy_failure() or temporary(f"{self._url.raw_host} could not be reached.")
            span.answered(response.status)
            if response.status < 200:
                raise permanent(f"{self._url.raw_host} changed to another protocol without a request for it.")
            if response.cookies:
                self._keep(response.cookies.items())
            location = response.headers.get("Location")
            if self._plan.follows_redirects and response.status in REDIRECTS and location is not None:
                self._redirects.append(Redirect(str(self._url), response.status))
                self._redirect(response.status, location)
                return None
            body, is_false = b"", False
            if not self._plan.wants_body:
                response.close()
            elif self._method != "HEAD":
                body, is_false = await read_body(response, self._url, self._limits.body_bytes, self._hold)
            return HttpResult(
                url=str(self._url),
                status=response.status,
                headers=[
                    Header(_text(name), _text(value))
                    for name, value in response.raw_headers
                    # Connection is a header between the local proxy and this client.
                    if (self.proxy is None or name.lower() != b"connection")
                    and not (is_false and name.lower() == b"content-encoding")
                ],
                body=body,
                cookies=self._cookies() if self._plan.response_cookies else None,
                state=self._state(),
                redirects=self._redirects,
            )

    def _proxy_failure(self) -> ExtractionError | None:
        failure = self.proxy.failure(str(self._url)) if self.proxy else None
        if isinstance(failure, ProxyFailedError):
            failure.is_unsent = not self._redirects
        return failure

    def _headers_with_cookies(self) -> CIMultiDict[str]:
        headers: CIMultiDict[str] = self._headers.copy()
        if not _is_trustworthy(self._url):
            listed = without_secure_ones(Header(name, value) for name, value in headers.items())
            headers = CIMultiDict((header.name, header.value) for header in listed)
        if self._jar is None:
            return headers
        if header := self._jar.header(self._url, first=not self._redirects):
            headers["Cookie"] = header
        return headers

    def _keep(self, cookies: Iterable[tuple[str, Morsel[str]]]) -> None:
        if self._jar is None:
            self._jar = FetchCookies((), (), self._url)
        self._jar.keep(cookies, self._url)

    def _cookies(self) -> list[dict[str, Any]]:
        hosts = {self._url.raw_host or "", *(URL(hop.url, encoded=True).raw_host or "" for hop in self._redirects)}
        return self._jar.of_hosts(hosts) if self._jar is not None else []

    def _state(self) -> SessionState | None:
        if self._plan.state is None:
            return None
        return SessionState(self._jar.stored() if self._jar is not None else [], self._plan.state.origins)

    def _redirect(self, status: int, location: str) -> None:
        # In aiohttp's reading of a header, bytes that are not UTF-8 are surrogates.
        before, after = self._url, target_of(self._url, _text(location.encode("utf-8", "surrogateescape")))
        if after.origin() != before.origin():
            for name in filter(is_private_header, list(self._headers)):
                self._headers.popall(name, None)
        self._url = self._take_credentials(after)
        if status == 303 or (status in (301, 302) and self._method == "POST"):
            self._method = "HEAD" if self._method == "HEAD" else "GET"
            self._body = None
            for name in ("Content-Type", "Content-Encoding", "Content-Language"):
                self._headers.popall(name, None)

    def _take_credentials(self, url: URL) -> URL:
        """Move ``user:password@`` of a URL into the ``Authorization`` header."""
        if url.raw_user is None and url.raw_password is None:
            return url
        if "Authorization" not in self._headers:
            pair = f"{url.user or ''}:{url.password or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return url.with_user(None)


def _is_trustworthy(url: URL) -> bool:
    """Return whether browsers treat an origin as secure."""
    host = url.raw_host or ""
    is_local = host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")
    return url.scheme == "https" or is_local


def _problem(url: URL, error: Exception) -> ExtractionError:
    """Return the problem of a failed hop. The order is that of aiohttp's classes, narrow before wide."""
    host, port = url.raw_host or "", url.port or 0
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        return permanent(
            f"{host}:{port} has no valid certificate, or does not speak TLS as it should.",
            remedy="Write http:// for a site without TLS.",
        )
    if isinstance(error, (aiohttp.ServerTimeoutError, *TIMEOUT_ERRORS)):
        return temporary(f"{host}:{port} did not answer in time.", Cause.TIMEOUT)
    if isinstance(error, OSError):
        return connection_failed(host, port, error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return temporary(f"{host}:{port} closed the connection without an answer.")
    if isinstance(error, aiohttp.ClientPayloadError):
        if "decode" in str(error).lower():  # of the chunks
            return permanent(f"{host}:{port} answered with something that is not HTTP.")
        return temporary(f"{host}:{port} broke off in the middle of its answer.", Cause.CUT_SHORT)
    if isinstance(error, (aiohttp.InvalidURL, ValueError)):
        return unreachable(f"{host}:{port} is not an address that can be requested.")
    return permanent(f"{host}:{port} answered with something that is not HTTP.")


def _text(data: bytes) -> str:
    """Decode a header: as UTF-8 where it is valid, else byte by byte, so that nothing is lost."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
