"""``/ui/nodes``: the nodes, their jobs, and the pending jobs."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.store.jobs.attempts import HeldJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.placing import Waiting
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

#: Maximum number of nodes shown, and of jobs of each.
_NODES: Final = 200
_JOBS: Final = 50
_FORBIDDEN: Final = "Nodes run the jobs of all projects. This key is limited to some projects."


class _Row(NamedTuple):
    node: StoredNode
    jobs: list[HeldJob]
    more: int


class _Queue(NamedTuple):
    waiting: Waiting
    fitting: int
    free: bool


def _may(grant: Grant) -> bool:
    return grant.all_projects


async def _show(visit: Visit) -> Response:
    if not _may(visit.grant):
        raise Refusal(403, _FORBIDDEN)
    nodes = await visit.store.nodes.listed()
    rows = []
    for node in nodes[:_NODES]:
        jobs = await visit.store.attempts.of_node(node.name)
        rows.append(_Row(node, jobs[:_JOBS], max(len(jobs) - _JOBS, 0)))
    queues = []
    for waiting in await visit.store.waiting.groups():
        fitting = [node for node in nodes if waiting.fits(node)]
        queues.append(_Queue(waiting, len(fitting), any(node.free >= waiting.units for node in fitting)))
    return visit.rendered(
        "nodes.html",
        rows=rows,
        total=len(nodes),
        units=sum(node.units for node in nodes),
        used=sum(node.used for node in nodes),
        queues=queues,
        now=visit.store.clock(),
    )


PAGES: Final = (UiPage("/ui/nodes", "nodes", _show),)
LINKS: Final = (Link("nodes", "Nodes", "/ui/nodes?project={project}", _may),)
