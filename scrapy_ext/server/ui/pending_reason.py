"""The reason why a pending job does not run yet, derived from the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.rows import needs_of


class Capacity(NamedTuple):
    """Means to run the jobs of a project: nodes, and code, which is a deployed version or that of a node."""

    nodes: Sequence[StoredNode]
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
    if not any(node.units for node in nodes):
        return "all nodes have 0 units: start a worker"
    if not capacity.has_code:
        return "no version of the project is deployed"
    tagged = [node for node in nodes if node.tags >= tags]
    if not tagged:
        return f"no node has the tags {', '.join(sorted(tags))}"
    large = [node for node in tagged if node.units >= units]
    if not large:
        return f"no suitable node has {units} units"
    return "" if any(node.free >= units for node in large) else "its nodes have no free units"
