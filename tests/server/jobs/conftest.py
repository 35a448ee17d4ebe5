"""What tests of jobs have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresql import Cluster, cluster


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Cluster]:
    """A PostgreSQL that may be harmed."""
    with cluster() as own:
        yield own
