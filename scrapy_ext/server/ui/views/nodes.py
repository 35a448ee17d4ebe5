"""``/ui/nodes``: the nodes, their jobs, and the pending jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.attempts import HeldJob
from scrapy_ext.server.store.jobs.nodes import Node
from scrapy_ext.server.store.jobs.placing import Waiting
from scrapy_ext.server.store.jobs.rows import needs_of
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

# ── the reason why a pending job does not run yet, derived from the nodes ──


class Capacity(NamedTuple):
    """Means to run the jobs of a project: nodes, and code, which is a deployed version or that of a node."""

    nodes: Sequence[Node]
    has_code: bool


async def capacity_of(store: Store, project: int) -> Capacity:
    """Return the nodes and whether there is code for a project."""
    nodes = await store.nodes.listed()
    own = any(node.project == project for node in nodes)
    return Capacity(nodes, own or await store.versions.current(project) is not None)


def waiting(metadata: Mapping[str, Any], capacity: Capacity) -> str:
    """Return the reason in a few words; "" when the job is about to run, or for another reason."""
    nodes = capacity.nodes
    units, text = needs_of(metadata)
    tags = frozenset(msgspec.json.decode(text, type=list[str]))
    if not nodes:
        return "no node is running"
    if not capacity.has_code:
        return "no version of the project is deployed"
    tagged = [node for node in nodes if node.tags >= tags]
    if not tagged:
        return f"no node has the tags {', '.join(sorted(tags))}"
    large = [node for node in tagged if node.units >= units]
    if not large:
        return f"no suitable node has {units} units"
    return "" if any(node.free >= units for node in large) else "its nodes have no free units"


#: Maximum number of nodes shown, and of jobs of each.
_NODES: Final = 200
_JOBS: Final = 50
_FORBIDDEN: Final = "Nodes run the jobs of all projects. This key is limited to some projects."


class _Row(NamedTuple):
    node: Node
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
