"""Responses with the result of an extraction: Scrapy's classes with one more attribute, which is not in Scrapy's list
``attributes``.

``response.extract_result`` is the whole decoded body of the 200 answer, with bytes for Base64 fields. The field that is
the body of the response is the same object there, kept and stored once. It survives ``copy()``, ``replace()`` and
Scrapy's HTTP cache: a replaced body does not change the result, which is the answer of the service.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, overload

from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from scrapy_ext.api.extraction import EXTRACT_TYPES
from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.extraction.forms import BASE64_FIELDS
from scrapy_ext.api.masking import without_user
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.client.extraction.memory import Hold
from scrapy_ext.compatibility.python import Self
from scrapy_ext.markdown import markdown_of

if TYPE_CHECKING:
    from zyte_common_items import Item

    _Base = Response
else:
    # Two bases with slots cannot be combined.
    _Base = object

R = TypeVar("R", bound=Response)

logger = logging.getLogger(__name__)

#: Flag of every response from the extraction service.
FLAG: Final = "extract-api"

_RAW_API_RESPONSE: Final = (
    "response.raw_api_response is of scrapy-zyte-api. Use response.extract_result instead; in it, httpResponseBody and "
    "screenshot are bytes, not Base64."
)
#: Options of Markdown with which the answer of the service is returned, whatever options the request had.
_DEFAULT_MARKDOWN: Final = {"content": "main", "links": True, "images": True}
#: Placeholder in a stored result for the body, which is stored separately.
_IS_BODY: Final = True


class WithResult(_Base):
    """Methods and attributes that the classes below add to Scrapy's."""

    if not TYPE_CHECKING:  # The slots are in each class.
        __slots__ = ()

    extract_result: dict[str, Any] | None
    _extract_item: Item | None
    #: Counts the memory of the answer during the life of this response and of those made from it.
    hold: Hold | None

    def __init__(self, *args: Any, extract_result: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extract_result = extract_result
        self._extract_item = None
        self.hold = None

    @property
    def screenshot(self) -> bytes | None:
        return self.extract_result.get("screenshot") if self.extract_result else None

    @property
    def extract_item(self) -> Item | None:
        """Automatic extraction as an item of zyte-common-items, such as a ``Product``; None if there is none.

        Needs the extra ``poet`` or ``server``. Raises :class:`UnexpectedAnswerError` for an answer that is no such
        item.
        """
        if self._extract_item is None and self.extract_result:
            kind = next((name for name in EXTRACT_TYPES if self.extract_result.get(name) is not None), None)
            if kind is not None:
                self._extract_item = _item(kind, self.extract_result[kind], self.url)
        return self._extract_item

    def markdown(self, *, content: str = "main", links: bool = True, images: bool = True) -> str:
        """Return the page as Markdown: ``markdown`` of the answer if it was requested, else made of the page here.

        Options as of :func:`scrapy_ext.markdown.markdown_of`; with others than the defaults it is made here in any
        case. Raises ValueError for an answer without HTML.
        """
        options = {"content": content, "links": links, "images": images}
        answered = self.extract_result.get(MARKDOWN) if self.extract_result else None
        if isinstance(answered, str) and options == _DEFAULT_MARKDOWN:
            return answered
        return _markdown_of_page(self, options)

    @property
    def raw_api_response(self) -> NoReturn:
        """Raise AttributeError, which names ``extract_result`` instead of this name of scrapy-zyte-api."""
        _warn_of_raw_api_response()
        raise AttributeError(_RAW_API_RESPONSE)

    @overload
    def replace(self, *args: Any, cls: type[R], **kwargs: Any) -> R: ...
    @overload
    def replace(self, *args: Any, cls: None = None, **kwargs: Any) -> Self: ...
    def replace(self, *args: Any, cls: type[Response] | None = None, **kwargs: Any) -> Response:
        """Return a response with some attributes replaced; with ``cls``, of that class, which may have fewer
        attributes."""
        if cls is not None and kwargs.get("body") is self.body:
            # HttpCompressionMiddleware chooses the class again for an unknown content coding.
            cls = CLASSES.get(cls, cls)
        made: type[Response] = cls or type(self)
        for name in self.attributes:
            if name in made.attributes:
                kwargs.setdefault(name, getattr(self, name))
        if issubclass(made, WithResult):
            kwargs.setdefault("extract_result", self.extract_result)
        response = made(*args, **kwargs)
        if isinstance(response, WithResult):
            response.hold = self.hold
        return response

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as the HTTP cache stores them, with the body once."""
        stored: dict[str, Any] = super().to_dict()
        result = self.extract_result
        same: dict[str, Any] = {
            name: _IS_BODY for name in BASE64_FIELDS if result and name in result and result[name] is self.body
        }
        is_page = issubclass(type(self), HtmlResponse)
        html = result.get("browserHtml") if result and not is_page else None
        if html is not None and html.encode() == self.body:
            same["browserHtml"] = _IS_BODY
        stored["extract_result"] = {**result, **same} if result else result
        return stored

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> Self:
        result = d.get("extract_result")
        if result:
            same: dict[str, Any] = {name: d["body"] for name in BASE64_FIELDS if result.get(name) is _IS_BODY}
            if result.get("browserHtml") is _IS_BODY:
                same["browserHtml"] = d["body"].decode()
            d = {**d, "extract_result": {**result, **same}}
        restored: Self = super().from_dict(d)
        return restored


class ExtractResponse(WithResult, Response):
    """Binary content, such as an image or a screenshot."""

    __slots__ = ("_extract_item", "extract_result", "hold")


class ExtractTextResponse(WithResult, TextResponse):
    __slots__ = ("_extract_item", "extract_result", "hold")


class ExtractHtmlResponse(WithResult, HtmlResponse):
    """HTML, or a response without content of its own: automatic extraction alone.

    ``body_text`` is the text of the body if it is available, as for a rendered page, and saves decoding it.
    """

    __slots__ = ("_body_text", "_extract_item", "extract_result", "hold")

    def __init__(self, *args: Any, body_text: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._body_text = body_text

    @property
    def text(self) -> str:
        return super().text if self._body_text is None else self._body_text

    def replace(  # type: ignore[override]  # Scrapy's has overloads
        self, *args: Any, cls: type[Response] | None = None, **kwargs: Any
    ) -> Response:
        """As Scrapy's; the text is kept while the body is the same."""
        is_text_kept = not {"body", "encoding"} & kwargs.keys()
        if is_text_kept and issubclass(cls or type(self), ExtractHtmlResponse):
            kwargs.setdefault("body_text", self._body_text)
        return super().replace(*args, cls=cls, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """As above, with the text of the page only as the body."""
        stored = super().to_dict()
        text = self._body_text
        if text is not None and self.extract_result and self.extract_result.get("browserHtml") is text:
            stored["extract_result"]["browserHtml"] = _IS_BODY
        return stored

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> Self:
        result = d.get("extract_result")
        if result and result.get("browserHtml") is _IS_BODY:
            text = d["body"].decode()
            d = {**d, "body_text": text, "extract_result": {**result, "browserHtml": text}}
        return super().from_dict(d)


class ExtractXmlResponse(WithResult, XmlResponse):
    __slots__ = ("_extract_item", "extract_result", "hold")


class ExtractJsonResponse(WithResult, JsonResponse):
    __slots__ = ("_extract_item", "extract_result", "hold")


#: Class of this package for each of Scrapy's.
CLASSES: Final[dict[type[Response], type[WithResult]]] = {
    Response: ExtractResponse,
    TextResponse: ExtractTextResponse,
    HtmlResponse: ExtractHtmlResponse,
    XmlResponse: ExtractXmlResponse,
    JsonResponse: ExtractJsonResponse,
}


def _markdown_of_page(response: Any, options: dict[str, Any]) -> str:
    if not isinstance(response, TextResponse) or not response.body:
        raise ValueError(
            f"{without_user(response.url)} has no HTML to make Markdown of. Request markdown, browserHtml or a page."
        )
    return markdown_of(response.text, response.url, **options)


@lru_cache(maxsize=1)
def _warn_of_raw_api_response() -> None:
    """Log a warning, once by the cache, also where the error is caught."""
    logger.warning(_RAW_API_RESPONSE)


def _item(kind: str, fields: Any, url: str) -> Item:
    """Return the item of a data type. An item needs a URL: that of the page if the service does not name one."""
    try:
        from scrapy_ext.compatibility.items import item_class  # an extra
    except ImportError:
        raise ImportError(
            'response.extract_item needs zyte-common-items: pip install "scrapy-ext[poet]". '
            "The same fields are in response.extract_result."
        ) from None
    chosen: type[Item] = item_class(kind)
    try:
        return chosen.from_dict({**fields, "url": fields.get("url") or url})  # type: ignore[no-any-return]
    except (TypeError, ValueError, AttributeError) as error:
        fault = f"{kind} of the answer is no {chosen.__name__}: {error}"
        raise UnexpectedAnswerError(fault, status=200, sent={"url": url}) from None
