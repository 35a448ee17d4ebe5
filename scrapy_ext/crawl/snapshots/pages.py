"""From an exception of a callback to a snapshot: the page, its screenshot, and the reasons for what is missing.

No header, cookie or field of a request or response is part of a snapshot: the page, the screenshot, the URL without its
secrets, and the exception. :func:`taken` runs where the exception is reported. It keeps the bytes that a snapshot can
have and nothing else: the rest of the response, and the memory that it counts, is free at once. :func:`content_of`
decodes the page, and runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, Final, NamedTuple

import msgspec
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from twisted.python.failure import Failure

from scrapy_ext.api.extraction import MADE_OF_PAGE
from scrapy_ext.api.masking import Secrets, without_secrets
from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.snapshots import Content, Missing, Part, Snapshot
from scrapy_ext.api.violations import encodable

#: Of a crawl that is not known.
_NO_SECRETS: Final = Secrets(())
#: Formats by class of the response; a class before those that it extends.
_FORMATS: Final = ((XmlResponse, "xml"), (JsonResponse, "json"), (HtmlResponse, "html"))
#: Members of a result that are data of the page.
_DATA: Final = (*MADE_OF_PAGE, "customAttributes")


class FailedPage(msgspec.Struct, frozen=True):
    """A page whose callback raised: the snapshot without its content, and what that is made of.

    ``page``: a response with the body alone, or JSON of the extracted data; ``is_cut`` to what a snapshot can have.
    """

    snapshot: Snapshot
    page: TextResponse | Missing
    screenshot: bytes | Missing
    is_cut: bool = False

    @property
    def size(self) -> int:
        """Bytes that it keeps in memory."""
        page = 0 if isinstance(self.page, Missing) else len(self.page.body)
        return page + (0 if isinstance(self.screenshot, Missing) else len(self.screenshot))


class PageContent(NamedTuple):
    """A snapshot with the content of its parts."""

    snapshot: Snapshot
    parts: dict[Part, bytes]


def taken(
    failure: Failure, response: Response | Failure, time: int, secrets: Secrets = _NO_SECRETS
) -> FailedPage | None:
    """Return the page for which a callback or errback raised, at a time (ms); None if there is no page, as for a failed
    download, or no exception."""
    page, error = _page_of(response), failure.value
    if page is None or error is None:
        return None
    request = getattr(response, "request", None) or page.request
    snapshot = Snapshot(
        time=time,
        url=_masked(page.url, secrets)[: snapshots.MAX_URL],
        status=page.status,
        error=type(error).__name__[: snapshots.MAX_NAME],
        message=_message(error, secrets),
        callback=_raised_in(error, request) if request is not None else "",
    )
    result = _result_of(page)
    whole = _whole_page(page, result)
    if isinstance(whole, Missing) or len(whole.body) <= snapshots.MAX_PAGE:
        return FailedPage(snapshot, whole, _screenshot_of(result))
    # Not all of a large page is decoded.
    kept = whole.replace(body=whole.body[: snapshots.MAX_PAGE])
    return FailedPage(snapshot, kept, _screenshot_of(result), is_cut=True)


def _page_of(response: Response | Failure) -> Response | None:
    """Return the response, or that of a failure which an errback got, such as HttpError."""
    page = response if isinstance(response, Response) else getattr(response.value, "response", None)
    return page if isinstance(page, Response) else None


def _result_of(page: Response) -> Mapping[str, Any] | None:
    result = getattr(page, "extract_result", None)
    return result if isinstance(result, Mapping) else None


def _whole_page(response: Response, result: Mapping[str, Any] | None) -> TextResponse | Missing:
    """Return a response of Scrapy's class with the content of another one, without its request and its result."""
    if not response.body:
        data = {name: result[name] for name in _DATA if result and result.get(name) is not None}
        if not data:
            return Missing.EMPTY
        return JsonResponse(response.url, body=msgspec.json.format(msgspec.json.encode(data)), encoding="utf-8")
    if not isinstance(response, TextResponse):
        return Missing.BINARY
    kind = next((kind for kind, _ in _FORMATS if isinstance(response, kind)), TextResponse)
    return kind(response.url, body=response.body, encoding=response.encoding)


def _screenshot_of(result: Mapping[str, Any] | None) -> bytes | Missing:
    screenshot = result.get("screenshot") if result else None
    if isinstance(screenshot, bytes) and screenshot:
        if len(screenshot) > snapshots.MAX_SCREENSHOT:
            return Missing.TOO_LARGE
        return screenshot if snapshots.image_type(screenshot) else Missing.NO_IMAGE
    if result is None:
        return Missing.DIRECT
    return Missing.HTTP if result.get("httpResponseBody") is not None else Missing.NOT_REQUESTED


def _masked(text: str, secrets: Secrets) -> str:
    return without_secrets(secrets.masked(text[: snapshots.MAX_URL]))


def _message(error: BaseException, secrets: Secrets) -> str:
    try:
        text = str(error)
    except Exception:  # an exception class of the project may fail to show itself
        return ""
    return encodable(_masked(text, secrets)[: snapshots.MAX_MESSAGE])


def _raised_in(error: BaseException, request: Request) -> str:
    """Return the name of the errback if the traceback has it, else that of the callback."""
    codes = set(_codes(error))
    errback = request.errback
    if errback is not None and getattr(errback, "__code__", None) in codes:
        return _name(errback)
    return "parse" if request.callback is None else _name(request.callback)


def _codes(error: BaseException) -> Iterator[CodeType]:
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame.f_code
        step = step.tb_next


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))[: snapshots.MAX_NAME]


# ── content ──


def content_of(page: FailedPage) -> PageContent:
    """Return the content of a page and its screenshot, with reasons for what is missing."""
    parts: dict[Part, bytes] = {}
    changes: dict[str, Any] = {}
    if isinstance(page.page, Missing):
        changes["no_page"] = page.page.value
    else:
        text = page.page.text
        whole = text.encode("utf-8", "replace")
        kept = _cut(whole)
        parts[Part.PAGE] = kept
        form = next((name for kind, name in _FORMATS if isinstance(page.page, kind)), "txt")
        changes |= {"format": form, "page": Content(len(kept), cut=page.is_cut or len(kept) < len(whole))}
    if isinstance(page.screenshot, Missing):
        changes["no_screenshot"] = page.screenshot.value
    else:
        parts[Part.SCREENSHOT] = page.screenshot
        changes["screenshot"] = Content(len(page.screenshot))
    return PageContent(msgspec.structs.replace(page.snapshot, **changes), parts)


def _cut(text: bytes) -> bytes:
    """Return the longest part of UTF-8 text within the limit that ends with a whole character."""
    return text if len(text) <= snapshots.MAX_PAGE else text[: snapshots.MAX_PAGE].decode("utf-8", "ignore").encode()
