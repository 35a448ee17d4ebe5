"""From Scrapy to the extraction service: a Request becomes the fields of a body.

:func:`to_body` maps the attributes of a request to fields, by the kind of output:

================  ==========================================  ================================================
of the request    with ``httpResponseBody``                   else
================  ==========================================  ================================================
method, body      ``httpRequestMethod``, ``httpRequestBody``  the same, which the rules refuse (rule 9)
headers           ``customHttpRequestHeaders``                ``requestHeaders``: ``referer``, ``userAgent`` and
                                                              ``acceptLanguage``; others are left out, with a
                                                              warning
headers of None   ``omitHttpRequestHeaders``                  left out, with a warning
cookies           ``requestCookies``                          ``requestCookies``
================  ==========================================  ================================================

``requestCookies`` are ``{name, value, domain}`` objects; the Cookie header is never sent. The document defines
neither their form nor the names of ``requestHeaders``: these are choices made here.

The fields of ``meta["extract_api"]`` and EXTRACT_API_PARAMS take precedence over that mapping, and None there removes a
field. Only values that JSON lacks are refused here: :func:`scrapy_ext.api.extraction.check` does the rest, for every
sender.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request
from scrapy.http import Headers
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction import OUTPUTS
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.budget import kind_of
from scrapy_ext.crawl.extraction.cookies import Place, as_text, cookies_of, for_browser
from scrapy_ext.crawl.frontier.marks import DefaultHeaders, own_names

logger = logging.getLogger(__name__)
#: Logs a warning once for each list of its arguments.
warn_once = lru_cache(maxsize=1000)(logger.warning)

#: Headers that describe one connection or one encoding of the body; the service sends its own. ``Cookie`` cannot
#: be set (rule 11).
NOT_SENT: Final = frozenset(
    {b"Cookie", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Keep-Alive", b"Te", b"Proxy-Authorization"}
)
#: Names of ``requestHeaders``. The document does not define them; these are the headers that make sense for a
#: browser, in the style of its other names.
BROWSER_HEADERS: Final[Mapping[bytes, str]] = {
    b"Referer": "referer",
    b"User-Agent": "userAgent",
    b"Accept-Language": "acceptLanguage",
}
#: Fields that are made from the request, so that None for one of them always removes something.
AUTOMATIC: Final = frozenset(
    {"httpResponseBody", "httpResponseHeaders", "httpRequestMethod", "httpRequestBody"}
    | {"customHttpRequestHeaders", "omitHttpRequestHeaders", "requestHeaders", "requestCookies", "jobId"}
)
_NO_EFFECT: Final = (
    "The meta key %s has no effect on requests through the extraction service, which connects to sites by itself. %s, "
    "or send such requests direct: meta extract_api False"
)
_NOT_OMITTED: Final = (
    "The header %s is None, but browsers and services without the field omitHttpRequestHeaders send their own"
)
#: Nesting depth up to which fields are examined.
_DEEPEST: Final = 50

#: Fields that page objects need in addition to those of the meta (scrapy_ext.poet.middleware). They are not in the
#: meta, which spiders copy to other requests.
_needed: WeakKeyDictionary[Request, Mapping[str, Any]] = WeakKeyDictionary()


class BodyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of every request of a crawl.

    ``params``: fields of EXTRACT_API_PARAMS.
    ``default_headers``: headers that are left out if a request has them with exactly these values
    (:func:`scrapy_default_headers`).
    ``job_id``: the running job.
    ``cookies``: whether cookies are sent (COOKIES_ENABLED).
    ``own_cookies``: whether those of a request without a Cookie header are, as without CookiesMiddleware.
    ``omitted_headers``: headers that are not sent with a request that does not set them (:func:`omitted_headers`).
    ``extensions``: fields that the service accepts besides those of the contract.
    ``cookie_places``: returns the domains and paths of a request's cookies, by name and value.
    """

    params: Mapping[str, Any] = {}
    default_headers: DefaultHeaders = frozenset()
    job_id: str | None = None
    cookies: bool = True
    own_cookies: bool = True
    omitted_headers: Collection[str] = ()
    extensions: Collection[str] = ()
    cookie_places: Callable[[Request], Mapping[tuple[str, str], Sequence[Place]]] | None = None


def omitted_headers(settings: BaseSettings) -> list[str]:
    """Return the names of headers that the user's settings suppress by the value None."""
    names = [name for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items() if value is None]
    if not _is_default(settings, "USER_AGENT") and settings["USER_AGENT"] is None:
        names.append("User-Agent")
    return names


def scrapy_default_headers(settings: BaseSettings) -> DefaultHeaders:
    """Return the headers that Scrapy adds to every request, without those that the user's settings changed."""
    headers = Headers()
    if _is_default(settings, "DEFAULT_REQUEST_HEADERS"):
        headers.update(settings.getdict("DEFAULT_REQUEST_HEADERS"))
    if _is_default(settings, "USER_AGENT"):
        headers["User-Agent"] = settings["USER_AGENT"]
    from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS  # heavy, and only for this

    headers["Accept-Encoding"] = b", ".join(ACCEPTED_ENCODINGS)
    return frozenset((name, value) for name, values in headers.items() for value in values)


def is_routed(request: Request, *, transparent: bool) -> bool:
    """Return true if a request goes through the extraction service: by its meta, else if every request does, or if page
    objects need it."""
    asked = request.meta.get("extract_api")
    return transparent or request in _needed if asked is None else asked is not False


def goes_to_service(request: Request, *, transparent: bool) -> bool:
    """Return true if a request is routed and of a kind that the service can answer. Files robots.txt go direct unless
    their meta routes them."""
    if not is_routed(request, transparent=transparent):
        return False
    if request.meta.get("extract_api"):
        return True
    parts = urlparse_cached(request)
    is_robots_txt = request.callback is NO_CALLBACK and parts.path == "/robots.txt"
    return parts.scheme in ("http", "https") and not is_robots_txt


def need(request: Request, fields: Mapping[str, Any]) -> None:
    """Send these fields, too, with this request, over those of its meta. Its fingerprint stays the same."""
    _needed[request] = fields


def needed_of(request: Request) -> Mapping[str, Any]:
    return _needed.get(request, {})


def to_body(request: Request, options: BodyOptions | None = None) -> dict[str, Any]:
    """Return the fields to send for a request; raises :class:`ContractError` for unreadable meta.

    Headers marked as the user's own (:mod:`scrapy_ext.crawl.frontier.marks`) are sent even if they have the default
    values.
    """
    options = options or BodyOptions()
    asked = {**_asked(request), **needed_of(request)}
    fields = _content_fields(request, options.params, asked)
    _warn_of_meta(request)
    if request.meta.get("extract_api_automap") is False or fields.get("serp"):
        return fields
    for name, value in asked.items():
        if value is None and name not in options.params and name not in AUTOMATIC:
            warn_once('%s is None in meta["extract_api"], but EXTRACT_API_PARAMS has no such field to leave out', name)
    headers = _headers(request, options.default_headers)
    by_http = bool(fields.get("httpResponseBody"))
    automatic = _custom_headers(headers) if by_http else _browser_headers(headers)
    automatic.update(_omitted(request, options, by_http=by_http))
    automatic.update(_cookies(request, options, by_http=kind_of(fields) == "http"))
    if options.job_id is not None:
        automatic["jobId"] = options.job_id
    given = {**options.params, **asked}
    fields.update((name, value) for name, value in automatic.items() if name not in given)
    if request.body and given.get("httpRequestBody") not in (None, _base64(request.body)):
        logger.warning("%s has a body of its own; the httpRequestBody of its meta is sent instead", request)
    return fields


def _warn_of_meta(request: Request) -> None:
    """Warn of meta keys about the connection to the site, which the service makes."""
    # A proxy of the environment is for the connection to the service as well.
    if request.meta.get("proxy") and "_scheme_proxy" not in request.meta:
        warn_once(_NO_EFFECT, "proxy", "Ask for a geolocation or an ipType (of your own service: SERVER_PROXIES)")
    if request.meta.get("bindaddress"):
        warn_once(_NO_EFFECT, "bindaddress", "Ask for a geolocation or an ipType")


def content_fields(request: Request, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that define the content, without headers and cookies."""
    return _content_fields(request, params, _asked(request))


def _content_fields(request: Request, params: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    if request.meta.get("extract_api_automap") is False:
        return {"url": request.url, **_given(asked)}
    given = {**params, **asked}
    if given.get("serp"):
        return _serp_fields(request, params, asked)
    automatic = {**_default_outputs(given), **_method_and_body(request, given)}
    kept = {name: value for name, value in automatic.items() if name not in given}
    return {"url": request.url, **kept, **_given(given)}


def _asked(request: Request) -> Mapping[str, Any]:
    asked = request.meta.get("extract_api")
    if asked is None or isinstance(asked, bool):
        return {}
    if not isinstance(asked, Mapping):
        raise _unreadable(f"must be True, False or a dict of fields, got {type(asked).__name__}")
    for name in asked:
        if not isinstance(name, str):
            raise _unreadable(f"must have text as names of fields, got {type(name).__name__}")
    return asked


def _unreadable(rule: str) -> ContractError:
    return ContractError([Violation('meta["extract_api"]', rule, 'Write {"browserHtml": True}, for example.')])


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to send unchanged. The URL is always the request's."""
    given = {name: value for name, value in fields.items() if value is not None and name != "url"}
    faults = [
        Violation(place, "must not be bytes, which JSON cannot hold", "Decode them.")
        for name, value in given.items()
        for place in _bytes_in(value, name)
    ]
    if faults:
        raise ContractError(faults)
    return given


def _bytes_in(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """Yield the places of bytes inside a value, which would be sent as unexpected Base64. The rules refuse bytes as the
    value of a field."""
    if depth > _DEEPEST:  # Refused when the JSON is written.
        return
    if isinstance(value, bytes | bytearray | memoryview):
        if depth or place == "echoData":
            yield place
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _bytes_in(member, f"{place}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _bytes_in(member, f"{place}[{index}]", depth + 1)


def _serp_fields(request: Request, params: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a search: ``serp`` goes with ``serpOptions`` alone (rule 5), so fields for every request are
    left out. Those of this request remain, for the rules to refuse."""
    serp = {name: params[name] for name in ("serp", "serpOptions") if name in params}
    return {"url": request.url, **_method_and_body(request, {}), **_given({**serp, **asked})}


def _default_outputs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page over HTTP, with headers, if the request names no output."""
    outputs: dict[str, Any] = {}
    if not any(given.get(name) for name in OUTPUTS) and "httpResponseBody" not in given:
        outputs["httpResponseBody"] = True
    if outputs or given.get("httpResponseBody"):
        outputs["httpResponseHeaders"] = True
    return outputs


def _method_and_body(request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if request.method != "GET":
        fields["httpRequestMethod"] = request.method
    text = given.get("httpRequestText")
    if request.body and not (isinstance(text, str) and text.encode() == request.body):
        fields["httpRequestBody"] = _base64(request.body)
    return fields


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ── headers and cookies ──


def _headers(request: Request, defaults: DefaultHeaders) -> Iterable[tuple[bytes, list[bytes]]]:
    own = own_names(request)
    for name, values in request.headers.items():
        if not values or name in NOT_SENT:
            continue
        if name not in own and all((name, value) in defaults for value in values):
            continue
        yield name, values


def _line(value: bytes) -> str:
    """Return a header's value, with spaces for line breaks, as Scrapy sends it."""
    return as_text(b" ".join(value.splitlines()))


def _custom_headers(headers: Iterable[tuple[bytes, list[bytes]]]) -> dict[str, Any]:
    """Join several values of a header, since only the last of a name is sent (rule 11)."""
    listed = [{"name": as_text(name), "value": ",".join(map(_line, values))} for name, values in headers]
    return {"customHttpRequestHeaders": listed} if listed else {}


def has_omitted(request: Request, options: BodyOptions) -> bool:
    """Return true if a request may have headers that are None."""
    return bool(options.omitted_headers) or not all(request.headers.values())


def _omitted(request: Request, options: BodyOptions, *, by_http: bool) -> dict[str, Any]:
    """Return the field for headers that are None: Scrapy does not send them, and the service should not add its own."""
    if not has_omitted(request, options):
        return {}
    names = [as_text(name) for name, values in request.headers.items() if not values]
    names += [name for name in options.omitted_headers if name not in request.headers]
    if not names:
        return {}
    if by_http and "omitHttpRequestHeaders" in options.extensions:
        return {"omitHttpRequestHeaders": names}
    for name in names:
        warn_once(_NOT_OMITTED, name)
    return {}


def _browser_headers(headers: Iterable[tuple[bytes, list[bytes]]]) -> dict[str, Any]:
    named: dict[str, str] = {}
    for name, values in headers:
        if name in BROWSER_HEADERS:
            named[BROWSER_HEADERS[name]] = ",".join(map(_line, values))
        else:
            known = ", ".join(map(as_text, BROWSER_HEADERS))
            left_out = "The header %s is not sent with requests for anything but httpResponseBody; %s can be"
            warn_once(left_out, as_text(name), known)
    return {"requestHeaders": named} if named else {}


def _cookies(request: Request, options: BodyOptions, *, by_http: bool) -> dict[str, Any]:
    if not request.cookies and b"Cookie" not in request.headers:
        return {}
    # Only the service of this package, which its own fields show, accepts cookies without a name.
    nameless = "followRedirect" in options.extensions
    places = options.cookie_places(request) if options.cookie_places is not None else {}
    cookies = cookies_of(request, own=options.cookies, own_alone=options.own_cookies, nameless=nameless, places=places)
    cookies = cookies if by_http else for_browser(cookies)
    return {"requestCookies": cookies} if cookies else {}


def _is_default(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) == 0
