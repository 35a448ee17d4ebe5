"""The targets, by the part of the package that they belong to."""

from tests.fuzz.targets import (
    agents,
    archives,
    browser,
    client,
    crawl,
    markdown,
    monitors,
    pages,
    platform,
    pushes,
    queries,
    sites,
    snapshots,
    users,
)

__all__ = [
    "agents",
    "archives",
    "browser",
    "client",
    "crawl",
    "markdown",
    "monitors",
    "pages",
    "platform",
    "pushes",
    "queries",
    "sites",
    "snapshots",
    "users",
]
