"""A server of these tests alone, which give numbers to projects, and which runs no job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers import ForkedServer, RunningServer
from tests.support.stores import ENGINES


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    options = ("--units", "0")
    with ForkedServer(tmp_path_factory.mktemp("scrapyd") / "data", database=database, options=options) as server:
        yield server
