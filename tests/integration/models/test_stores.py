"""Each store against its model: two servers' stores on one database, several calls at once, and its faults."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store.records import streams as stream_rows
from tests.support.models import collections, frontier, groups, jobs, keys, nodes, periodic, records, streams
from tests.support.models.machine import Machine, check
from tests.support.models.worlds import PROJECTS, StoreWorld

MODELS: dict[str, tuple[Any, Any]] = {
    "records": (records.Records, records.OnStores),
    "streams": (streams.Streams, streams.OnStores),
    "collections": (collections.Collections, collections.OnStores),
    "frontier": (frontier.Frontier, frontier.OnStores),
    "jobs": (jobs.Jobs, jobs.OnStores),
    "nodes": (nodes.Nodes, nodes.OnStores),
    "groups": (groups.Groups, groups.OnStores),
    "periodic": (periodic.Periodic, periodic.OnStores),
    "keys": (keys.Keys, keys.OnStores),
}


#: Histories of one call after the other that few drawn ones come upon.
_VCS, _CS, _VS = (
    CollectionType.VERSIONED_CACHED_STORE,
    CollectionType.CACHED_STORE,
    CollectionType.VERSIONED_STORE,
)
_HALF = collections.EXPIRY_MS // 2
WRITTEN: dict[str, tuple[str, list[Any]]] = {
    "a record that is written again lives a month from then on": (
        "collections",
        [
            *(collections.Write(_CS, "a", (("k", 1),)), collections.Wait(_HALF)),
            *(collections.Write(_CS, "a", (("k", 1),)), collections.Wait(_HALF)),
            *(collections.Get(_CS, "a", "k"), collections.Wait(_HALF), collections.Get(_CS, "a", "k")),
        ],
    ),
    "a write that changes nothing makes no copy, and three are kept": (
        "collections",
        [
            step
            for value in (1, 1, 0, 2, 2, 3)
            for step in (collections.Write(_VS, "a", (("k", value),)), collections.Copies(_VS, "a", "k"))
        ],
    ),
    "copies expire one by one, and a record that was away makes none": (
        "collections",
        [
            *(collections.Write(_VCS, "a", (("k", 1),)), collections.Wait(_HALF)),
            *(collections.Write(_VCS, "a", (("k", 2),)), collections.Wait(_HALF), collections.Copies(_VCS, "a", "k")),
            *(collections.Wait(_HALF), collections.Write(_VCS, "a", (("k", 3),)), collections.Copies(_VCS, "a", "k")),
        ],
    ),
    "a minute that was run for is not run for again when the clock goes back": (
        "periodic",
        [
            *(periodic.Add("0 * * * *", False), periodic.Wait(90 * 60_000), periodic.Look(), periodic.Run(0)),
            *(periodic.Run(0), periodic.Finish(), periodic.Wait(-2 * 3_600_000), periodic.Edit(1, "1 * * * *", None)),
            *(periodic.Edit(1, "0 * * * *", None), periodic.See(1), periodic.Wait(3_600_000), periodic.Look()),
            *(periodic.Run(0), periodic.Wait(2 * 3_600_000), periodic.Look(), periodic.Run(0), periodic.Jobs()),
        ],
    ),
    "a run that is claimed twice is made once, and one that is long missed is not made up for": (
        "periodic",
        [
            *(periodic.Add("30 4 * * *", False), periodic.Wait(40 * 86_400_000), periodic.Look(), periodic.Run(0)),
            *(periodic.Run(0), periodic.Jobs(), periodic.See(1), periodic.Wait(-3 * 86_400_000), periodic.Plan()),
            *(periodic.See(1), periodic.Wait(86_400_000), periodic.Look(), periodic.Run(0), periodic.Jobs()),
        ],
    ),
    "jobs of a priority start in the order in which they were pushed, whatever spider they are of": (
        "jobs",
        [
            *(jobs.Push("books", 1, None, JobState.PENDING), jobs.Push("shoes", 1, None, JobState.PENDING)),
            *(jobs.Push("books", 1, None, JobState.PENDING), jobs.Push("books", 2, None, JobState.PENDING)),
            *[jobs.Start()] * 5,
        ],
    ),
}


@pytest.fixture(autouse=True)
def few_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of request records are packed after a few writes, not after hundreds."""
    monkeypatch.setattr(stream_rows, "_PLAIN", 1)
    monkeypatch.setattr(stream_rows, "_PACKED", 2)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.long(keep=6)
def test_a_written_history_is_one_of_the_model(stores: StoreWorld, written: str) -> None:
    name, operations = WRITTEN[written]
    model, driver = MODELS[name]
    machine = Machine(stores, model(), driver(stores, next(PROJECTS)))
    for operation in operations:
        machine.play([(operation, 0)])
    machine.teardown()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long(keep=1)
# In full, thousands of calls that lose their connections: minutes, and more on a busy machine.
@pytest.mark.timeout(3600)
def test_every_history_of_a_store_is_one_of_its_model(
    stores: StoreWorld, name: str, pytestconfig: pytest.Config
) -> None:
    model, driver = MODELS[name]
    check(stores, model(), driver, pytestconfig)
