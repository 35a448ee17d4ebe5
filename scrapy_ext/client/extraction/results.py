"""From the extraction service to Scrapy: the result of an extraction becomes a Response."""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.http import Headers, HtmlResponse, Response, TextResponse
from scrapy.responsetypes import responsetypes

from scrapy_ext.api.extraction import EXTRACT_TYPES, ExtractResult
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.client.extraction.responses import CLASSES, FLAG, ExtractHtmlResponse, ExtractResponse

#: Headers of a result that no longer hold for its decoded body.
_NOT_MAPPED: Final = frozenset({"content-encoding", "transfer-encoding"})
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_SNIFFED: Final = 5000


def to_response(request: Request, result: Mapping[str, Any] | ExtractResult) -> Response:
    """The response that a result stands for, with the result as ``extract_result`` and the flag ``extract-api``.

    ``browserHtml`` is its body before ``httpResponseBody``, and that before a screenshot; automatic extraction
    alone has an empty one. Raises :class:`UnexpectedAnswerError` for a result that does not hold what it says.
    """
    decoded = msgspec.to_builtins(result) if isinstance(result, ExtractResult) else dict(result)
    headers = _result_headers(decoded)
    url = decoded.get("url")
    response_url = url if isinstance(url, str) and url else request.url
    common: dict[str, Any] = {
        "url": response_url,
        "status": _status(decoded),
        "headers": headers,
        "flags": [FLAG],
        "request": request,
        "extract_result": decoded,
    }
    html = decoded.get("browserHtml")
    if isinstance(html, str):
        return ExtractHtmlResponse(**common, body=html.encode("utf-8", "replace"), encoding="utf-8")
    if decoded.get("httpResponseBody") is not None:
        body = _bytes(decoded, "httpResponseBody", request)
        return CLASSES[_class_of(headers, response_url, body)](**common, body=body)
    if any(decoded.get(name) is not None for name in EXTRACT_TYPES):
        return ExtractHtmlResponse(**common, body=b"", encoding="utf-8")
    if decoded.get("screenshot") is not None:
        return ExtractResponse(**common, body=_bytes(decoded, "screenshot", request))
    return CLASSES[_class_of(headers, response_url, b"")](**common, body=b"")


def _result_headers(decoded: Mapping[str, Any]) -> Headers:
    """Every value of every header, in order."""
    listed = decoded.get("httpResponseHeaders")
    headers = Headers()
    if not isinstance(listed, list):
        return headers
    pairs = (
        (header["name"], header["value"])
        for header in listed
        if isinstance(header, dict) and isinstance(header.get("name"), str) and isinstance(header.get("value"), str)
    )
    headers.update((name, value) for name, value in pairs if name.lower() not in _NOT_MAPPED)
    return headers


def _status(decoded: Mapping[str, Any]) -> int:
    status = decoded.get("statusCode")
    return status if isinstance(status, int) and 100 <= status <= 599 else 200


def _bytes(decoded: Mapping[str, Any], name: str, request: Request) -> bytes:
    value = decoded[name]
    try:
        return a2b_base64(value, strict_mode=True)
    except (Base64Error, TypeError, ValueError):
        told = f"{name} of the answer is not Base64"
        raise UnexpectedAnswerError(told, status=200, sent={"url": request.url}) from None


def _class_of(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Scrapy's choice by headers, name and content; its look at the content is taken further for HTML, since a
    result may have no headers at all."""
    chosen: type[Response] = responsetypes.from_args(headers=headers, url=url, body=body)
    is_guess = chosen is TextResponse and b"Content-Type" not in headers
    if is_guess and (not body or _HTML.search(body[:_SNIFFED])):
        return HtmlResponse
    return chosen
