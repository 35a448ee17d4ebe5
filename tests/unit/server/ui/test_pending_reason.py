"""Reason that a pending job does not run yet."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.ui.pending_reason import Capacity, waiting


def node(units: int, *tags: str, used: int = 0) -> StoredNode:
    return StoredNode("n", "h", units, frozenset(tags), None, 1, 1, False, used)


@pytest.mark.parametrize(
    ("metadata", "nodes", "message"),
    [
        ({}, [], "no node is running"),
        ({}, [node(0), node(0)], "all nodes have 0 units: start a worker"),
        ({"node_tags": ["gpu", "eu"]}, [node(4), node(4, "eu")], "no node has the tags eu, gpu"),
        ({"units": 3}, [node(2), node(1)], "no suitable node has 3 units"),
        ({"units": 3, "node_tags": ["eu"]}, [node(2, "eu"), node(4)], "no suitable node has 3 units"),
        ({"units": 2}, [node(2, used=1), node(4, used=3)], "its nodes have no free units"),
        ({"units": 2}, [node(2, used=1), node(4, used=2)], ""),
        ({"units": "odd", "node_tags": 7}, [node(1)], ""),
    ],
    ids=range(8),
)
def test_what_a_job_waits_for_is_reported(metadata: dict[str, Any], nodes: list[StoredNode], message: str) -> None:
    assert waiting(metadata, Capacity(nodes, True)) == message


def test_a_project_without_code_is_reported() -> None:
    assert waiting({}, Capacity([node(1)], False)) == "no version of the project is deployed"
