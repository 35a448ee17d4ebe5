"""``ExtractProvider``: dependencies of page objects and callbacks from the extraction service.

Dependencies are resolved before a request is sent (:mod:`scrapy_ext.poet.middleware`), so that its own response has
them. A second request is sent only for data that the response cannot have: of a page needed both over HTTP and from a
browser, or of a request that does not use the service.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy_poet.injection import Injector, get_callback, is_callback_requiring_scrapy_response
from scrapy_poet.page_input_providers import PageObjectInputProvider
from web_poet import AnyResponse, BrowserHtml, BrowserResponse, HttpResponse, HttpResponseHeaders
from web_poet.serialization import SerializedLeafData, register_serialization

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import EXTRACT_TYPES, OUTPUTS
from scrapy_ext.api.extraction.fields import OF_KIND, source_of
from scrapy_ext.api.extraction.rules import BODY_ONLY
from scrapy_ext.api.masking import without_user
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.compatibility.items import item_class
from scrapy_ext.crawl.extraction.content import needed_of
from scrapy_ext.crawl.extraction.doubtful import is_left_out
from scrapy_ext.crawl.extraction.response_classes import FLAG
from scrapy_ext.poet.middleware import set_lookup
from scrapy_ext.poet.zyte_api_annotations import ZyteApiAnnotations


class Screenshot(bytes):
    """Dependency: a screenshot of the page, a JPEG unless ``screenshotOptions`` differ."""

    __slots__ = ()


_ITEMS: Final[Mapping[Any, str]] = {item_class(kind): kind for kind in EXTRACT_TYPES}
#: The output for each dependency. That of ``AnyResponse`` depends on the others.
_OUTPUTS: Final[Mapping[Any, str]] = {
    BrowserHtml: "browserHtml",
    BrowserResponse: "browserHtml",
    Screenshot: "screenshot",
    **_ITEMS,
}
#: Meta keys that a second request copies from that of the page.
_KEPT_META: Final = (
    "cookiejar",
    "dont_cache",
    "dont_merge_cookies",
    "dont_obey_robotstxt",
    "dont_retry",
    "download_maxsize",
    "download_slot",
    "download_timeout",
    "extract_api_automap",
    "extract_api_retry_policy",
)


class LeftOutError(IgnoreRequest):
    """The item that a callback depends on is left out (``minProbability``). The callback is not called; the errback is,
    with this error, which Scrapy does not log as one."""


class ExtractProvider(PageObjectInputProvider):
    """A page object input provider of scrapy-poet, for SCRAPY_POET_PROVIDERS.

    Provides ``BrowserHtml``, ``BrowserResponse`` and ``AnyResponse`` of web-poet, the items of zyte-common-items that
    the service extracts, and :class:`Screenshot`. Other fields come from the request's ``meta["extract_api"]`` and from
    EXTRACT_API_PARAMS; rules that they break reach the errback of the request.
    """

    name = "extract_api"
    provided_classes = {AnyResponse, *_OUTPUTS}  # noqa: RUF012  # as its base declares it

    def __init__(self, injector: Injector) -> None:
        super().__init__(injector)  # type: ignore[no-untyped-call]
        self._params: dict[str, Any] = names.EXTRACT_API_PARAMS.read(injector.crawler.settings)
        self._annotations = ZyteApiAnnotations()
        set_lookup(injector.crawler, self.fields_for)

    async def __call__(
        self, to_provide: Set[Callable[..., Any]], request: Request, response: Response, crawler: Crawler
    ) -> list[Any]:
        """Called by scrapy-poet. Raises :class:`UnexpectedAnswerError` for an answer without a requested output, and
        :class:`LeftOutError` for an item that is left out."""
        provided = {dependency: _made(dependency, response) for dependency in to_provide}
        missing = {dependency for dependency, made in provided.items() if made is None}
        for dependency in missing:
            # A requested output that is missing would be missing again.
            if needed_of(request).get(_OUTPUTS.get(dependency, "")) or _is_left_out(dependency, response):
                raise _not_there(dependency, response)
        if missing:
            assert crawler.engine is not None  # noqa: S101  # a response was downloaded
            apart = await crawler.engine.download_async(self._request_for(missing, request))
            for dependency in missing:
                provided[dependency] = _made(dependency, apart)
                if provided[dependency] is None:
                    raise _not_there(dependency, apart)
        return list(provided.values())

    def fields_for(self, request: Request) -> dict[str, Any]:
        """Return the fields that a callback's dependencies need besides those of the request."""
        if request.meta.get("extract_api") is False:
            return {}
        needed = {dependency for dependency, _ in self.injector.build_plan(request).dependencies}
        callback = get_callback(request, self.injector.spider)
        self._annotations.check(callback, needed)
        if needed.isdisjoint(_OUTPUTS):
            return {}
        uses_response = is_callback_requiring_scrapy_response(callback, request.callback)
        wants_page = uses_response or AnyResponse in needed
        return _fields(needed, _asked(request), self._params, wants_page=wants_page)

    def _request_for(self, missing: Collection[Any], request: Request) -> Request:
        """Return a request for the outputs that the response lacks."""
        asked = {name: value for name, value in _asked(request).items() if name not in (*OUTPUTS, *BODY_ONLY)}
        fields = _fields(missing, asked, self._params, wants_page=AnyResponse in missing) or {"httpResponseBody": True}
        if fields.keys().isdisjoint(EXTRACT_TYPES):
            asked = {name: value for name, value in asked.items() if name not in OF_KIND}
        meta: dict[str, Any] = {name: request.meta[name] for name in _KEPT_META if name in request.meta}
        meta["extract_api"] = {**asked, **fields}
        return request.replace(
            callback=NO_CALLBACK,
            errback=None,
            cb_kwargs={},
            dont_filter=True,
            meta=meta,
        )


def _asked(request: Request) -> Mapping[str, Any]:
    asked = request.meta.get("extract_api")
    return asked if isinstance(asked, Mapping) else {}


def _fields(
    needed: Collection[Any], asked: Mapping[str, Any], params: Mapping[str, Any], *, wants_page: bool
) -> dict[str, Any]:
    """Return the fields for dependencies; ``wants_page`` adds the page itself."""
    outputs = {_OUTPUTS[dependency] for dependency in needed if dependency in _OUTPUTS}
    kinds = outputs.intersection(EXTRACT_TYPES)
    if HttpResponse in needed or asked.get("httpResponseBody"):
        return _fields_by_http(kinds, {**params, **asked})
    fields: dict[str, Any] = dict.fromkeys(sorted(outputs), True)
    if not fields or "serp" in fields:
        return fields
    source = source_of({**params, **asked, **dict.fromkeys(kinds, True)})
    by_http = outputs == kinds and source == "httpResponseBody"
    if wants_page:
        fields["httpResponseBody" if by_http else "browserHtml"] = True
    if params.get("httpResponseBody") and not by_http:
        fields["httpResponseBody"] = None
    return fields


def _fields_by_http(kinds: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a page over HTTP, and of the automatic extraction from it."""
    if not kinds:
        return {}
    fields: dict[str, Any] = dict.fromkeys((*sorted(kinds), "httpResponseBody"), True)
    if source_of({**given, **fields}) is None:
        fields["extractFrom"] = "httpResponseBody"
    return fields


def _made(dependency: object, response: Response) -> Any:
    """Create a dependency from a response; None if the response lacks it."""
    result: Mapping[str, Any] = getattr(response, "extract_result", None) or {}
    html = result.get("browserHtml")
    if dependency is AnyResponse:
        if html is None and (not result or result.get("httpResponseBody") is not None):
            return AnyResponse(_http_response(response))
        return None if html is None else AnyResponse(_browser_response(html, response))
    content = result.get(_OUTPUTS[dependency])
    if content is None:
        return None
    if dependency is BrowserResponse:
        return _browser_response(content, response)
    if dependency in (BrowserHtml, Screenshot):
        return dependency(content)
    item = response.extract_item  # type: ignore[attr-defined]  # what has a result has this
    return item if type(item) is dependency else None


def _browser_response(html: str, response: Response) -> BrowserResponse:
    return BrowserResponse(url=response.url, html=html, status=response.status)


def _http_response(response: Response) -> HttpResponse:
    headers = HttpResponseHeaders.from_bytes_dict(response.headers)
    return HttpResponse(url=response.url, body=response.body, status=response.status, headers=headers)


def _is_left_out(dependency: object, response: Response) -> bool:
    result: Mapping[str, Any] = getattr(response, "extract_result", None) or {}
    return dependency in _ITEMS and is_left_out(result, _ITEMS[dependency])


def _not_there(dependency: Callable[..., Any], response: Response) -> Exception:
    name, url = dependency.__name__, without_user(response.url)
    if _is_left_out(dependency, response):
        return LeftOutError(f"{name} of {url} is left out: its probability is below minProbability")
    if FLAG not in response.flags:
        return RuntimeError(
            f"{name} of {url} cannot be provided: the request did not go through the extraction service. "
            "Enable scrapy_ext.downloadermiddlewares.ExtractMiddleware, or the add-on with EXTRACT_API_ENABLED."
        )
    output = _OUTPUTS.get(dependency, "page")
    return UnexpectedAnswerError(f"no {output} in the answer, for {name}", status=200, sent={"url": response.url})


def _write_screenshot(screenshot: Screenshot) -> SerializedLeafData:
    return {"screenshot": bytes(screenshot)}


def _read_screenshot(cls: type[Screenshot], data: SerializedLeafData) -> Screenshot:
    return cls(data["screenshot"])


register_serialization(_write_screenshot, _read_screenshot)
