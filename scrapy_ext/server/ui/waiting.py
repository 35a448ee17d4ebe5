"""Why a pending job does not run yet, as far as the nodes tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scrapy_ext.server.store.job_rows import needs_of
from scrapy_ext.server.store.nodes import Node


def waiting(metadata: Mapping[str, Any], nodes: Sequence[Node], *, has_code: bool = True) -> str:
    """A few words; "" when the job is about to run, or for another reason. ``has_code``: whether a version of its
    project is deployed, or a node has one."""
    units, text = needs_of(metadata)
    tags = frozenset(msgspec.json.decode(text, type=list[str]))
    if not nodes:
        return "no node is there to run it"
    if not has_code:
        return "no version of the project is deployed"
    tagged = [node for node in nodes if node.tags >= tags]
    if not tagged:
        return f"no node has the tags {', '.join(sorted(tags))}"
    large = [node for node in tagged if node.units >= units]
    if not large:
        return f"no node for it has {units} units"
    return "" if any(node.free >= units for node in large) else "its nodes are busy"
