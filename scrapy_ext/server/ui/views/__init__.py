"""The pages, one module each, registered in :data:`VIEWS`.

A module has ``PAGES``, its routes, and optionally ``LINKS``, its entries of the navigation bar, which keep this order.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.ui.frame import Link, UiPage
from scrapy_ext.server.ui.views import (
    activity,
    collections,
    extraction,
    frontiers,
    job,
    jobs,
    log,
    monitors,
    periodic,
    records,
    rules,
    run,
    server,
    snapshots,
)

VIEWS: Final = (
    jobs,
    run,
    job,
    records,
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
)
PAGES: Final[tuple[UiPage, ...]] = tuple(page for view in VIEWS for page in view.PAGES)
LINKS: Final[tuple[Link, ...]] = tuple(link for view in VIEWS for link in getattr(view, "LINKS", ()))
