"""The same models against a real server over HTTP: lost requests, lost answers, and the server killed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.models import collections, frontier, jobs, keys, periodic, records
from tests.support.models.machine import check
from tests.support.models.worlds import HttpWorld

pytestmark = pytest.mark.long

MODELS: dict[str, tuple[Any, Any]] = {
    "records": (records.Records, records.OverHttp),
    "collections": (collections.Collections, collections.OverHttp),
    "frontier": (frontier.Frontier, frontier.OverHttp),
    "jobs": (jobs.Jobs, jobs.OverHttp),
    "periodic": (periodic.Schedules, periodic.OverHttp),
    "keys": (keys.Keys, keys.OverHttp),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_history_of_a_server_is_one_of_its_model(
    servers: HttpWorld, name: str, pytestconfig: pytest.Config
) -> None:
    model, driver = MODELS[name]
    check(servers, model(), driver, pytestconfig, part=0.1 if name == "keys" else 0.4)  # which wait until they settle
