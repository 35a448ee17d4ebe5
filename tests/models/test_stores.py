"""Each store against its model: two servers' stores on one database, several calls at once, and its faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models import collections, frontier, jobs, keys, nodes, periodic, records
from tests.models.machine import check
from tests.models.worlds import StoreWorld

MODELS: dict[str, tuple[Any, Any]] = {
    "records": (records.Records, records.OnStores),
    "collections": (collections.Collections, collections.OnStores),
    "frontier": (frontier.Frontier, frontier.OnStores),
    "jobs": (jobs.Jobs, jobs.OnStores),
    "nodes": (nodes.Nodes, nodes.OnStores),
    "periodic": (periodic.Periodic, periodic.OnStores),
    "keys": (keys.Keys, keys.OnStores),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_history_of_a_store_is_one_of_its_model(
    stores: StoreWorld, name: str, pytestconfig: pytest.Config
) -> None:
    model, driver = MODELS[name]
    check(stores, model(), driver, pytestconfig)
