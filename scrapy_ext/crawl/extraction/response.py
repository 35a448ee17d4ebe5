"""Reading of an answer: from Exchange and result to Response. Nothing is sent or changed here.

Base64 is decoded once, and its text is not kept. A large value of a result is kept once: the body of the response is
the same object. A result is never changed, since several requests may share it.
"""

from __future__ import annotations

import logging
import re
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urldefrag

import msgspec
import pybase64
from scrapy import Request
from scrapy.http import Headers, HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.responsetypes import responsetypes
from yarl import URL

from scrapy_ext.api.extraction import MADE_OF_PAGE, OUTPUTS, ExtractResult
from scrapy_ext.api.extraction.fields import LEFT_OUT
from scrapy_ext.api.extraction.forms import BASE64_FIELDS
from scrapy_ext.client.extraction.errors import TOO_LARGE, TooLargeError, UnexpectedAnswerError
from scrapy_ext.client.extraction.memory import hold_of
from scrapy_ext.crawl.extraction.cookies import as_text
from scrapy_ext.crawl.extraction.plan import Exchange
from scrapy_ext.crawl.extraction.response_classes import CLASSES, FLAG, ExtractHtmlResponse, ExtractResponse, WithResult

logger = logging.getLogger(__name__)

#: Headers of a result that Scrapy's responses do not have: those of the connection to the site. Content codings are
#: handled separately.
_NOT_MAPPED: Final = frozenset(
    {"connection", "keep-alive", "te", "trailers", "transfer-encoding", "upgrade", "proxy-connection"}
    | {"content-encoding"}
)
#: Content codings that services decode, as Scrapy does. Others remain, with those applied before them.
_DECODED: Final = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})
#: Bytes of a body that are examined for its type, and the control characters that no text has, both as in Scrapy.
_SNIFFED: Final = 5000
_NOT_IN_TEXT: Final = bytes(set(range(32)) - set(b"\0\t\n\r"))
_HTML: Final = re.compile(rb"<(?:!doctype\s+)?html[\s>]", re.IGNORECASE)
_HTML_PART: Final = re.compile(rb"<(?:head|body)[\s>]", re.IGNORECASE)
#: Prefixes of the URLs of pages; the last two are those of a browser's page without an address.
_SCHEMES: Final = ("http://", "https://", "about:", "data:")
#: Fields for which a result has values besides its outputs.
_BESIDE_OUTPUTS: Final = ("actions", "customAttributes", "fieldSources", "networkCapture", "responseCookies")
_WHITE: Final = " \t\r\n\f"
_BYTE_ORDER_MARK: Final = "\ufeff"


def read(exchange: Exchange, result: Mapping[str, Any]) -> Response:
    """Return the response to an exchange (:func:`to_response`).

    Raises :class:`TooLargeError` for a body of more than DOWNLOAD_MAXSIZE bytes, and warns of one of more than
    DOWNLOAD_WARNSIZE.
    """
    response = to_response(exchange.request, result)
    size = len(response.body)
    if 0 < exchange.bounds.max_size < size:
        raise TooLargeError(TOO_LARGE % (size, exchange.bounds.max_size), sent=exchange.fields)
    if 0 < exchange.warn_size < size:
        logger.warning(
            "%d bytes are more than DOWNLOAD_WARNSIZE (%d) in %s. If that is usual, raise it",
            size,
            exchange.warn_size,
            exchange.request,
        )
    return response


def to_response(request: Request, result: Mapping[str, Any] | ExtractResult) -> Response:
    """Return the response for a result, with the result as ``extract_result`` and the flag ``extract-api``.

    The body is ``browserHtml``, else ``httpResponseBody``, else the screenshot; automatic extraction alone has an empty
    body. Raises :class:`UnexpectedAnswerError` for a result with fields of wrong types.
    """
    decoded = _decoded(result, request)
    url, headers = _url(decoded, request), _headers(decoded, request)
    common: dict[str, Any] = {
        "url": url,
        "status": _status(decoded),
        "flags": [FLAG],
        "request": request,
        "extract_result": decoded,
    }
    html, body = decoded.get("browserHtml"), decoded.get("httpResponseBody")
    response: WithResult
    if html is not None:
        response = _rendered(html, headers, common)
    elif body is not None:
        response = CLASSES[_class_of(headers, url, body)](**common, body=body)
    elif any(decoded.get(name) is not None for name in (*MADE_OF_PAGE, LEFT_OUT)):
        response = ExtractHtmlResponse(**common, encoding="utf-8")
    elif decoded.get("screenshot") is not None:
        response = ExtractResponse(**common, body=decoded["screenshot"])
    else:
        response = CLASSES[_class_of(headers, url, b"")](**common)
    # Set here, because the constructor would build them a second time.
    response.headers = headers
    response.hold = hold_of(result)
    return response


def restored(response: Response, fields: Mapping[str, Any]) -> Response | None:
    """Return a page of an HTTP cache that has not kept the result of its extraction, with that result, or None where
    the page is not all of it; ``fields`` are those of the request."""
    result: dict[str, Any] = {"url": response.url, "statusCode": response.status}
    match [name for name in (*OUTPUTS, *_BESIDE_OUTPUTS) if fields.get(name)]:
        case ["browserHtml"] if isinstance(response, TextResponse):
            result["browserHtml"] = response.text
        case ["httpResponseBody"] | ["httpResponseBody", "httpResponseHeaders"]:
            result["httpResponseBody"] = response.body
            result["httpResponseHeaders"] = [
                {"name": as_text(name), "value": as_text(value)}
                for name, values in response.headers.items()
                for value in values
            ]
        case _:
            return None
    return response.replace(cls=CLASSES.get(type(response), ExtractResponse), extract_result=result)


def _decoded(result: Mapping[str, Any] | ExtractResult, request: Request) -> dict[str, Any]:
    """Return a copy of a result, with bytes for Base64."""
    decoded = msgspec.to_builtins(result) if isinstance(result, ExtractResult) else dict(result)
    for name in BASE64_FIELDS:
        value = decoded.get(name)
        if value is not None:
            decoded[name] = _bytes(name, value, request)
    html = decoded.get("browserHtml")
    if html is not None and not isinstance(html, str):
        raise _unexpected("browserHtml of the answer is not text", request)
    return decoded


def _bytes(name: str, value: object, request: Request) -> bytes:
    if isinstance(value, str):
        try:
            return pybase64.b64decode(value, validate=True)
        except (Base64Error, ValueError):
            pass
    raise _unexpected(f"{name} of the answer is not Base64", request)


def _unexpected(fault: str, request: Request) -> UnexpectedAnswerError:
    return UnexpectedAnswerError(fault, status=200, sent={"url": request.url})


def _url(decoded: Mapping[str, Any], request: Request) -> str:
    """Return the final URL without its fragment, as Scrapy does. A result may lack it."""
    url = decoded.get("url")
    if not isinstance(url, str) or not url or _is_same_page(url, request.url):
        url = request.url
    if not url.lower().startswith(_SCHEMES):
        raise _unexpected(f"url of the answer must be an http or https URL, got {url[:100]!r}", request)
    try:
        return urldefrag(url).url
    except ValueError:
        raise _unexpected(f"url of the answer must be a URL, got {url[:100]!r}", request) from None


def _is_same_page(url: str, other: str) -> bool:
    """Return whether two URLs are equal without their fragments and once normalized."""
    if url == other:
        return True
    try:
        return _normal(url) == _normal(other)
    except ValueError:
        return False


def _normal(url: str) -> URL:
    parsed = URL(url).with_fragment(None)
    if parsed.raw_user is not None or parsed.raw_password is not None:
        parsed = parsed.with_user(None)
    return parsed.with_port(None) if parsed.is_default_port() else parsed


def _status(decoded: Mapping[str, Any]) -> int:
    status = decoded.get("statusCode")
    return status if isinstance(status, int) and 100 <= status <= 999 else 200


def _headers(decoded: Mapping[str, Any], request: Request) -> Headers:
    """Return every value of every header, in order, without malformed ones."""
    listed = decoded.get("httpResponseHeaders")
    if not isinstance(listed, list):
        return Headers()
    pairs = [
        (header["name"], header["value"])
        for header in listed
        if isinstance(header, dict) and isinstance(header.get("name"), str) and isinstance(header.get("value"), str)
    ]
    headers = Headers(
        (name.encode("utf-8", "replace"), value.encode("utf-8", "replace"))
        for name, value in pairs
        if name.lower() not in _NOT_MAPPED
    )
    if decoded.get("browserHtml") is None:
        codings = [value for name, value in pairs if name.lower() == "content-encoding"]
        kept = codings if request.method == "HEAD" else _codings_left(codings)
        if kept:
            headers["Content-Encoding"] = kept
    return headers


def _codings_left(values: list[str]) -> list[str]:
    """Return the content codings of a body that no service decodes, with those applied before them, as Scrapy does."""
    codings = [coding.strip().lower() for value in values for coding in value.split(",")]
    while codings and codings[-1] in _DECODED:
        codings.pop()
    return codings


def _rendered(html: str, headers: Headers, common: dict[str, Any]) -> WithResult:
    """Return a rendered page, or the text of a file that the browser showed in a viewer. The text of a page is kept
    beside its body, which would otherwise be decoded again."""
    try:
        body = html.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and no encoding can
        body = html.encode("utf-8", "replace")
        html = common["extract_result"]["browserHtml"] = body.decode()
    viewed = _class_of_viewed(html, headers)
    if viewed is not None:
        return CLASSES[viewed](**common, body=body, encoding="utf-8")
    # For Scrapy, a byte order mark is no part of the text.
    text = None if html.startswith(_BYTE_ORDER_MARK) else html
    return ExtractHtmlResponse(**common, body=body, body_text=text, encoding="utf-8")


def _class_of_viewed(text: str, headers: Headers) -> type[TextResponse] | None:
    """Return the class of the text of a file in a viewer; None for a page, which begins with a tag or is empty."""
    start = text[:_SNIFFED].lstrip(_BYTE_ORDER_MARK + _WHITE)
    declared: type[Response] = responsetypes.from_headers(headers)
    if issubclass(declared, XmlResponse) and start.startswith("<"):
        return None if _HTML.match(start.encode("utf-8", "replace")) else declared
    if not start or (start.startswith("<") and not start.startswith("<?xml")):
        return None
    if start.startswith("<?xml"):
        return XmlResponse
    return JsonResponse if start[0] in "{[" and _is_json(text) else TextResponse


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.lstrip(_BYTE_ORDER_MARK))
    except msgspec.DecodeError:
        return False
    return True


def _class_of(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Return the class that Scrapy would choose: by headers, then by file name, then by content."""
    chosen: type[Response] = responsetypes.from_headers(headers)
    if chosen is Response:
        chosen = responsetypes.from_filename(url)
    if chosen is Response:
        chosen = _class_of_content(body[:_SNIFFED], declared=bool(headers))
    return chosen


def _class_of_content(start: bytes, *, declared: bool) -> type[Response]:
    """As Scrapy, but much faster, and with a longer search for HTML, since a result may have no headers at all: a page
    that begins differently, and an empty one, are HTML unless headers ``declared`` something else."""
    if len(start.translate(None, _NOT_IN_TEXT)) != len(start):
        return Response
    if _HTML.search(start) or not (start or declared):
        return HtmlResponse
    if b"<?xml" in start.lower():
        return XmlResponse
    return HtmlResponse if _HTML_PART.search(start) else TextResponse
