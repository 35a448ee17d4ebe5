"""The pages, one module each, registered in :data:`VIEWS`.

A module has ``PAGES``, its routes, and optionally ``LINKS``, its entries of the navigation bar, which keep this order.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.ui.frame import Link, UiPage
from scrapy_ext.server.ui.views import (
    activity,
    archived_jobs,
    collections,
    compare,
    extraction,
    frontiers,
    items,
    job,
    jobs,
    log,
    monitors,
    overview,
    periodic,
    requests,
    rules,
    run,
    search,
    server,
    settings,
    snapshots,
    spiders,
    users,
    versions,
    webhooks,
)

VIEWS: Final = (
    overview,
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
    extraction,
    server,
    users,
    search,
    settings,
    versions,
    webhooks,
    rules,
    archived_jobs,
)
PAGES: Final[tuple[UiPage, ...]] = tuple(page for view in VIEWS for page in view.PAGES)
LINKS: Final[tuple[Link, ...]] = tuple(link for view in VIEWS for link in getattr(view, "LINKS", ()))
