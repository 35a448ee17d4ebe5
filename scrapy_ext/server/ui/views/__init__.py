"""The pages, one module each, registered in :data:`VIEWS`.

A module has ``PAGES``, its routes, and optionally ``LINKS``, its entries of the navigation bar, which keep this order.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.ui.frame import Link, UiPage
from scrapy_ext.server.ui.views import (
    activity,
    collections,
    compare,
    extraction,
    frontiers,
    items,
    job,
    jobs,
    log,
    monitors,
    periodic,
    requests,
    rules,
    run,
    server,
    snapshots,
    spiders,
    users,
)

VIEWS: Final = (
    jobs,
    spiders,
    compare,
    run,
    job,
    items,
    requests,
    log,
    snapshots,
    periodic,
    monitors,
    collections,
    frontiers,
    activity,
    rules,
    extraction,
    server,
    users,
)
PAGES: Final[tuple[UiPage, ...]] = tuple(page for view in VIEWS for page in view.PAGES)
LINKS: Final[tuple[Link, ...]] = tuple(link for view in VIEWS for link in getattr(view, "LINKS", ()))
