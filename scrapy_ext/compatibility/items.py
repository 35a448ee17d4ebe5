"""Item classes of zyte-common-items by data type. On Python 3.10 its last version is 0.29, which lacks ``PageContent``:
an equal class stands in. Needs the extra ``poet`` or ``server``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional  # noqa: UP035  (zyte-common-items 0.29 reads these annotations when it runs)

import zyte_common_items
from zyte_common_items import Breadcrumb, DetailsMetadata, Item, NamedLink, Request

__all__ = ("PageContent", "PageContentMetadata", "item_class")

if TYPE_CHECKING or hasattr(zyte_common_items, "PageContent"):
    from zyte_common_items import PageContent, PageContentMetadata
else:
    import attrs  # of zyte-common-items

    @attrs.define(kw_only=True)
    class PageContentMetadata(DetailsMetadata):
        """Time and probability of the content of a page."""

    @attrs.define(kw_only=True)
    class PageContent(Item):
        """Content of a page of any kind, with the links around it."""

        url: str
        canonicalUrl: Optional[str] = None  # noqa: UP045, N815
        headline: Optional[str] = None  # noqa: UP045
        title: Optional[str] = None  # noqa: UP045
        itemMain: Optional[str] = None  # noqa: UP045, N815
        itemMainXPath: Optional[str] = None  # noqa: UP045, N815
        breadcrumbs: Optional[List[Breadcrumb]] = None  # noqa: UP006, UP045
        navigationHeader: Optional[List[NamedLink]] = None  # noqa: UP006, UP045, N815
        navigationFooter: Optional[List[NamedLink]] = None  # noqa: UP006, UP045, N815
        navigationSidebar: Optional[List[NamedLink]] = None  # noqa: UP006, UP045, N815
        pagination: Optional[List[NamedLink]] = None  # noqa: UP006, UP045
        nextPage: Optional[Request] = None  # noqa: UP045, N815
        metadata: Optional[PageContentMetadata] = None  # noqa: UP045


def item_class(kind: str) -> Any:
    """Return the class of a data type, such as ``Product`` for ``product``."""
    name = kind[0].upper() + kind[1:]
    return PageContent if name == "PageContent" else getattr(zyte_common_items, name)
