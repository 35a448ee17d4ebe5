"""Content of a routed request: whether it goes to the extraction service, and the fields that name its content.

The fields of ``meta["extract_api"]`` and EXTRACT_API_PARAMS take precedence over those made from the attributes of a
request, and None there removes a field. Only values that JSON lacks are refused here:
:func:`scrapy_ext.api.extraction.check` does the rest, for every sender.
"""

from __future__ import annotations

import base64
import logging
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import msgspec
from scrapy import Request
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction import FIELDS, OUTPUTS
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import MIN_PROBABILITY, PAGE_OPTIONS, RequestKind, kind_of
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.crawl.extraction.doubtful import params_for

logger = logging.getLogger(__name__)
#: Logs a warning once for each list of its arguments.
warn_once = lru_cache(maxsize=1000)(logger.warning)

#: Fields that are made from the request, so that None for one of them always removes something.
AUTOMATIC: Final = frozenset(
    {"httpResponseBody", "httpResponseHeaders", "httpRequestMethod", "httpRequestBody"}
    | {"customHttpRequestHeaders", "omitHttpRequestHeaders", "requestHeaders", "requestCookies", "jobId"}
)
#: Fields for every request that do not count for one that needs bytes: outputs, and what belongs to them.
_OF_PAGES: Final = frozenset(
    {*OUTPUTS, *PAGE_OPTIONS.values(), "extractFrom", "customAttributes", "fieldSources", "requestHeaders"}
    | {EXTRACT_RULES, MIN_PROBABILITY}
    | {name for name, field in FIELDS.items() if field.kind is RequestKind.BROWSER}
)
_NO_EFFECT: Final = (
    "The meta key %s has no effect on requests through the extraction service, which connects to sites by itself. %s, "
    "or send such requests direct: meta extract_api False"
)
#: Nesting depth up to which fields are examined.
_DEEPEST: Final = 50

#: Fields that page objects need in addition to those of the meta (scrapy_ext.poet.middleware). They are not in the
#: meta, which spiders copy to other requests.
_needed: WeakKeyDictionary[Request, Mapping[str, Any]] = WeakKeyDictionary()
#: Requests of ``engine.download_async`` without a callback.
_without_callback: WeakSet[Request] = WeakSet()


class Body(msgspec.Struct, frozen=True):
    """Body of a request to the service, as far as any service accepts it. At first it has only the fields that define
    the content, without headers and cookies."""

    fields: dict[str, Any]
    #: ``"http"`` or ``"browser"``.
    kind: str
    #: Values of the user's, for this request and for every one; None removes a field.
    given: Mapping[str, Any]
    #: True if no field is added to those of the user: for a search, and with meta ``extract_api_automap`` False.
    is_whole: bool
    #: Names of headers that the site must not get.
    omitted_headers: tuple[str, ...] = ()
    #: True if its cookies are those of Scrapy: no field of the user sets them.
    has_scrapy_cookies: bool = False


def is_routed(request: Request, *, transparent: bool) -> bool:
    """Return true if a request goes through the extraction service: by its meta; else if every request does, or if page
    objects need it, and the service can answer it. Files robots.txt go direct unless their meta routes them.

    One with fields in ``extract_api_automap`` is routed so that they are refused, and not left out of a plain download.
    """
    asked = request.meta.get("extract_api")
    if asked is None and isinstance(request.meta.get("extract_api_automap"), Mapping):
        return True
    if asked is False or (asked is None and not (transparent or request in _needed)):
        return False
    if asked:
        return True
    return urlparse_cached(request).scheme in ("http", "https") and not is_for_robots_txt(request)


def is_for_robots_txt(request: Request) -> bool:
    """Return true for a request that RobotsTxtMiddleware makes."""
    return request.callback is NO_CALLBACK and urlparse_cached(request).path == "/robots.txt"


def need(request: Request, fields: Mapping[str, Any]) -> None:
    """Send these fields, too, with this request, over those of its meta. Its fingerprint stays the same."""
    _needed[request] = fields


def needed_of(request: Request) -> Mapping[str, Any]:
    return _needed.get(request, {})


def note_without_callback(request: Request) -> None:
    """Record that a request is not for the callback ``parse``, though it names no other."""
    if request.callback is None:
        _without_callback.add(request)


def hand_on_without_callback(request: Request, other: Request) -> None:
    """Record the same of a request that replaces another one, as a retry does."""
    if request in _without_callback:
        note_without_callback(other)


def content_of(request: Request, params: Mapping[str, Any]) -> Body:
    """Return the content of a request, with the fields that page objects need, and those of ``params``, which are for
    every request. Raises :class:`ContractError` for unreadable meta."""
    asked = {**_asked(request), **needed_of(request)}
    of_all = _params_for(request, params, asked)
    fields, given = _content_fields(request, of_all, asked), {**of_all, **asked}
    is_whole = request.meta.get("extract_api_automap") is False or bool(fields.get("serp"))
    _warn_of_meta(request)
    if given.get("url") not in (None, request.url):
        warn_once("The field url of an extraction request has no effect: each request is for its own URL. Remove it")
    if not is_whole:
        _warn_of_values(request, asked, given, params)
    return Body(fields, kind_of(fields), given, is_whole)


def content_fields(request: Request, params: Mapping[str, Any], *, needed: bool = False) -> dict[str, Any]:
    """Return the fields that define the content, without headers and cookies; ``needed``: also those that page objects
    need."""
    asked = {**_asked(request), **needed_of(request)} if needed else _asked(request)
    return _content_fields(request, _params_for(request, params, asked), asked)


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
    if isinstance(request.meta.get("extract_api_automap"), Mapping):
        remedy = 'Write the fields into meta["extract_api"].'
        raise ContractError([Violation('meta["extract_api_automap"]', "must be True or False, got a dict", remedy)])
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
    faults = [fault for name, value in given.items() for fault in _beyond_json(value, name, echoed=name == "echoData")]
    if faults:
        raise ContractError(faults)
    return given


def _beyond_json(value: object, place: str, *, echoed: bool, depth: int = 0) -> Iterator[Violation]:
    """Yield a violation for each value inside a field that JSON would hold as another: bytes as Base64, NaN as null.

    The rules check the types of the other fields; ``echoed`` is any value, which must come back as it was.
    """
    if depth > _DEEPEST:  # Refused when the JSON is written.
        return
    if isinstance(value, Mapping):
        for name, member in value.items():
            if echoed and not isinstance(name, str):
                yield Violation(place, f"must have text as names, got {type(name).__name__}", "Convert them.")
            yield from _beyond_json(member, f"{place}.{name}", echoed=echoed, depth=depth + 1)
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _beyond_json(member, f"{place}[{index}]", echoed=echoed, depth=depth + 1)
    elif fault := _single_beyond_json(value, echoed=echoed, is_field=not (depth or echoed)):
        yield Violation(place, *fault)


def _single_beyond_json(value: object, *, echoed: bool, is_field: bool) -> tuple[str, str] | None:
    """Return the rule that a single value breaks, and the remedy."""
    if isinstance(value, bytes | bytearray | memoryview):
        # The rules refuse bytes as the value of a field.
        return None if is_field else ("must not be bytes, which JSON cannot hold", "Decode them.")
    if isinstance(value, str):
        return None if _is_unicode(value) else ("must not have half of a surrogate pair", "Use text that UTF-8 holds.")
    if isinstance(value, float):
        return None if math.isfinite(value) else (f"must be a finite number, got {value!r}", "Send None or text.")
    if echoed and not (value is None or isinstance(value, int)):
        return f"must be a value of JSON, got {type(value).__name__}", "Convert it, with str() for example."
    return None


def _is_unicode(text: str) -> bool:
    """Return true unless a text has half of a surrogate pair, which no UTF-8 holds."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def _params_for(request: Request, params: Mapping[str, Any], asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields for every request that count for this one.

    A request without a callback, such as for a file, an image or robots.txt, is for the bytes of the site: only fields
    about how to fetch them count, unless it names an output itself.
    """
    params = params_for(params, asked)
    is_for_bytes = request.callback is NO_CALLBACK or request in _without_callback
    if not params or not is_for_bytes or any(asked.get(name) for name in OUTPUTS):
        return params
    return {name: value for name, value in params.items() if name in FIELDS and name not in _OF_PAGES}


def _warn_of_values(
    request: Request, asked: Mapping[str, Any], given: Mapping[str, Any], params: Mapping[str, Any]
) -> None:
    """Warn of values of the user's that have no effect, or hide the body of the request."""
    for name, value in asked.items():
        # None for the rules leaves out those of the site, which are in files.
        if value is None and name not in params and name not in AUTOMATIC and name != EXTRACT_RULES:
            warn_once('%s is None in meta["extract_api"], but EXTRACT_API_PARAMS has no such field to leave out', name)
    if request.body and given.get("httpRequestBody") not in (None, _base64(request.body)):
        logger.warning("%s has a body of its own; the httpRequestBody of its meta is sent instead", request)


def _warn_of_meta(request: Request) -> None:
    """Warn of meta keys about the connection to the site, which the service makes."""
    # A proxy of the environment is for the connection to the service as well.
    if request.meta.get("proxy") and "_scheme_proxy" not in request.meta:
        warn_once(_NO_EFFECT, "proxy", "Ask for a geolocation or an ipType (of your own service: SERVER_PROXIES)")
    if request.meta.get("bindaddress"):
        warn_once(_NO_EFFECT, "bindaddress", "Ask for a geolocation or an ipType")
