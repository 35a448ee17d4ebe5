"""Navigation among articles: where a page of a section, a blog or a home page leads."""

from __future__ import annotations

from zyte_common_items import ArticleNavigation, ArticleNavigationMetadata

from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.lists import items as list_items
from scrapy_ext.server.extraction.auto.lists.articles import articles_on
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.page import Page


def extract(page: Page) -> ArticleNavigation:
    """The links to articles, to parts of the section, and to the next page. Only ``url`` and ``metadata`` are sure."""
    listed, pagination = articles_on(page), Pagination(page)
    return ArticleNavigation(
        url=page.url,
        categoryName=list_items.category_of(page, breadcrumbs_of(page)),
        subCategories=list_items.sub_categories(page, listed),
        items=list_items.requests(listed),
        nextPage=pagination.next,
        pageNumber=pagination.number,
        metadata=list_items.metadata().cast(ArticleNavigationMetadata),
    )
