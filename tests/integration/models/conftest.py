"""Worlds for machines: one of each kind for the whole run, on either engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.models.worlds import HttpWorld, StoreWorld
from tests.support.postgresql import Cluster
from tests.support.stores import ENGINES

#: How often a server is killed; in full, for each store.
KILLS, KILLS_IN_FULL = 1, 8


def _cluster(request: pytest.FixtureRequest) -> Cluster | None:
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else None


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreWorld]:
    """Two stores on one database."""
    cluster = _cluster(request)
    where = tmp_path_factory.mktemp("models") / "data" if cluster is None else cluster.database()
    world = StoreWorld(where, cluster)
    yield world
    print(f"\n{request.node.name} {request.param}: {world.counts}; {world.deadlocks()} deadlocks")
    world.close()


@pytest.fixture(scope="session", params=ENGINES)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    """A server behind a proxy."""
    cluster = _cluster(request)
    data = tmp_path_factory.mktemp("models") / "data"
    full = request.config.getoption("--full")
    database = None if cluster is None else cluster.database()
    world = HttpWorld(data, database, kills=KILLS_IN_FULL if full else KILLS, of_each=full)
    yield world
    print(f"\nover HTTP, {request.param}: {world.counts}")
    world.close()
