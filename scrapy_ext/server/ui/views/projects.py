"""``/ui/projects``: the projects, their jobs by state, and the size of their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES
from scrapy_ext.server.store.projects import Holding
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

_PER_PAGE: Final = 50
#: Kinds of records with a column.
_KINDS: Final = ("items", "requests", "logs")


class _Row(NamedTuple):
    project: int
    jobs: Mapping[str, int]
    holdings: Mapping[str, Holding]
    bytes: int


async def _list(visit: Visit) -> Response:
    offset = visit.number("offset")
    counts = await visit.store.jobs.states_of_all()
    rows = []
    for project in visit.projects[offset : offset + _PER_PAGE]:
        holdings = await visit.store.projects.holdings(project)
        states = {state.value: counts.get(project, {}).get(state, 0) for state in SHOWN_STATES}
        size = sum(holding.bytes for holding in holdings.values())
        rows.append(_Row(project, states, {kind: holdings.get(kind, Holding(0, 0)) for kind in _KINDS}, size))
    return visit.rendered("projects.html", rows=rows, offset=offset, total=len(visit.projects), size=_PER_PAGE)


PAGES: Final = (UiPage("/ui/projects", "projects", _list),)
LINKS: Final = (Link("projects", "Projects", "/ui/projects?project={project}"),)
