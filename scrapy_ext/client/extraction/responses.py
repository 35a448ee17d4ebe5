"""Responses that carry an extraction's result: Scrapy's classes with one attribute more.

``response.extract_result`` is the whole decoded body of the 200 answer, as the service sent it; Base64 stays
Base64 there, so that a body is held twice for as long as its response is. It survives ``copy()``, ``replace()``
and Scrapy's HTTP cache.
"""

from __future__ import annotations

from binascii import a2b_base64
from typing import Any, Final

from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

#: On every response that came through the extraction service.
FLAG: Final = "extract-api"


class _WithResult:
    """What the classes below add to Scrapy's."""

    __slots__ = ()

    attributes: tuple[str, ...]
    extract_result: dict[str, Any] | None

    def __init__(self, *args: Any, extract_result: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extract_result = extract_result  # type: ignore[misc]  # the slot is in each class

    @property
    def screenshot(self) -> bytes | None:
        """The screenshot's bytes, decoded each time; None if none was taken."""
        encoded = self.extract_result.get("screenshot") if self.extract_result else None
        return a2b_base64(encoded) if isinstance(encoded, str) else None

    def replace(self, *args: Any, cls: type[Response] | None = None, **kwargs: Any) -> Response:
        """A response with some attributes replaced; with ``cls``, of that class, which may know fewer."""
        made = cls or type(self)
        for name in self.attributes:
            if name in made.attributes:
                kwargs.setdefault(name, getattr(self, name))
        response: Response = made(*args, **kwargs)  # type: ignore[assignment]
        return response


class ExtractResponse(_WithResult, Response):  # type: ignore[misc]
    """Binary content, such as an image or a screenshot."""

    __slots__ = ("extract_result",)
    attributes = (*Response.attributes, "extract_result")


class ExtractTextResponse(_WithResult, TextResponse):  # type: ignore[misc]
    """Text."""

    __slots__ = ("extract_result",)
    attributes = (*TextResponse.attributes, "extract_result")


class ExtractHtmlResponse(_WithResult, HtmlResponse):  # type: ignore[misc]
    """HTML, and what has no content of its own: automatic extraction alone."""

    __slots__ = ("extract_result",)
    attributes = (*HtmlResponse.attributes, "extract_result")


class ExtractXmlResponse(_WithResult, XmlResponse):  # type: ignore[misc]
    """XML."""

    __slots__ = ("extract_result",)
    attributes = (*XmlResponse.attributes, "extract_result")


class ExtractJsonResponse(_WithResult, JsonResponse):  # type: ignore[misc]
    """JSON."""

    __slots__ = ("extract_result",)
    attributes = (*JsonResponse.attributes, "extract_result")


#: Ours for each of Scrapy's.
CLASSES: Final[dict[type[Response], type[Response]]] = {
    Response: ExtractResponse,
    TextResponse: ExtractTextResponse,
    HtmlResponse: ExtractHtmlResponse,
    XmlResponse: ExtractXmlResponse,
    JsonResponse: ExtractJsonResponse,
}
