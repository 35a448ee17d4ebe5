"""Why a pending job does not run yet, as far as the nodes tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.nodes import Node
from scrapy_ext.server.store.jobs.rows import needs_of


class Ground(NamedTuple):
    """What there is to run the jobs of a project: nodes, and code, which is a deployed version or that of a node."""

    nodes: Sequence[Node]
    has_code: bool


async def ground_of(store: Store, project: int) -> Ground:
    """Look what there is."""
    nodes = await store.nodes.listed()
    own = any(node.project == project for node in nodes)
    return Ground(nodes, own or await store.versions.current(project) is not None)


def waiting(metadata: Mapping[str, Any], ground: Ground) -> str:
    """A few words; "" when the job is about to run, or for another reason."""
    nodes = ground.nodes
    units, text = needs_of(metadata)
    tags = frozenset(msgspec.json.decode(text, type=list[str]))
    if not nodes:
        return "no node is there to run it"
    if not ground.has_code:
        return "no version of the project is deployed"
    tagged = [node for node in nodes if node.tags >= tags]
    if not tagged:
        return f"no node has the tags {', '.join(sorted(tags))}"
    large = [node for node in tagged if node.units >= units]
    if not large:
        return f"no node for it has {units} units"
    return "" if any(node.free >= units for node in large) else "its nodes are busy"
