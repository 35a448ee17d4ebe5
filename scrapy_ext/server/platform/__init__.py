"""The crawling platform over HTTP: one module with routes per resource."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.http.routes import Route
from scrapy_ext.server.platform import (
    activity,
    collections,
    comments,
    deliveries,
    feeding,
    frontier,
    frontier_slots,
    imports,
    jobq,
    jobs,
    legacy,
    metadata,
    monitors,
    periodic,
    projects,
    receivers,
    records,
    rules,
    spiders,
    system,
    usage,
    users,
    versions,
    workers,
)

_RESOURCES: Final = (
    *(
        records,
        collections,
        frontier,
        frontier_slots,
        feeding,
        jobs,
        legacy,
        metadata,
        jobq,
        workers,
        projects,
        spiders,
        versions,
        periodic,
    ),
    *(comments, activity, deliveries, imports, monitors, receivers, rules, usage, users, system),
)
ROUTES: Final[tuple[Route, ...]] = tuple(route for resource in _RESOURCES for route in resource.ROUTES)
