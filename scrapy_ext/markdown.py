"""Markdown of HTML that is at hand, made as the included extraction service makes it.

For answers of services without the field ``markdown``, and for pages that Scrapy fetched itself. Nothing is sent or
loaded. It needs the libraries of the extra ``server``, but neither its browser nor a running server.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.extraction.extension_forms import EXTENSION_FORMS
from scrapy_ext.api.extraction.fields import MARKDOWN_OPTIONS
from scrapy_ext.api.violations import ContractError

__all__ = ["markdown_of"]

_NEEDED: Final = 'Markdown is made with libraries of the extra server: pip install "scrapy-ext[server]".'


def markdown_of(html: str, url: str, *, content: str = "main", links: bool = True, images: bool = True) -> str:
    """Return a page as Markdown; "" for one without content.

    ``url`` is the final URL of the page, by which its links are completed. ``content`` is ``"main"`` (the text that
    ``pageContent`` has) or ``"all"`` (all that the page shows, menus as well); ``links`` and ``images``: whether these
    are kept. Takes some hundredths of a second of processor time, and up to seconds for the largest pages. Raises
    :class:`~scrapy_ext.api.violations.ContractError` for other options, and ImportError without the extra ``server``.
    """
    options = {"content": content, "links": links, "images": images}
    faults = list(EXTENSION_FORMS[MARKDOWN_OPTIONS](options))
    if faults:
        raise ContractError(faults)
    try:
        from scrapy_ext.server.extraction import extract_more

        return extract_more(None, html, url, markdown=options).markdown or ""
    except ImportError as error:
        raise ImportError(f"{error}. {_NEEDED}") from None
