"""Content of a page of any kind: its main text, and the links around it."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.content.main_content import main_content
from scrapy_ext.server.extraction.auto.fields.headings import breadcrumbs_of, headline_of
from scrapy_ext.server.extraction.auto.items import DetailsMetadata, PageContent
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.navigation.site_links import footer_links, header_links, sidebar_links
from scrapy_ext.server.extraction.auto.page import Focus, Page, now

#: Length of text, in characters, from which it is certainly the content of a page.
ENOUGH: Final = 250
_PLAIN_ID = re.compile(r"[\w-]{1,80}")


def extract(page: Page) -> PageContent:
    """Return the content of a page. Only ``url`` and ``metadata`` are always present."""
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    content, pagination = main_content(page, focus), Pagination(page)
    # Every page with a text has content, and little text may be the wrong one.
    sure = round(min(1.0, 0.1 + 0.9 * len(content.text) / ENOUGH), 2) if content.text else 0.0
    return PageContent(
        url=page.url,
        canonicalUrl=page.canonical_url,
        headline=headline_of(page, None, focus),
        title=page.title,
        itemMain=content.text or None,
        itemMainXPath=_xpath(page, content.node) if content.node is not None else None,
        breadcrumbs=breadcrumbs_of(page),
        navigationHeader=header_links(page),
        navigationFooter=footer_links(page),
        navigationSidebar=sidebar_links(page),
        pagination=pagination.links,
        nextPage=pagination.next,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=sure),
    )


def _xpath(page: Page, node: HtmlElement) -> str:
    """Return an XPath by the id of the node where that is unique, as it outlives changes; else by its position."""
    own = node.get("id") or ""
    if _PLAIN_ID.fullmatch(own) and len(page.tree.xpath("//*[@id=$own]", own=own)) == 1:
        return f'//*[@id="{own}"]'
    return str(page.tree.getroottree().getpath(node))
