"""The faulty service, and plans of crawls through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import faulty_service
from tests.support.faulty_service import FaultyService
from tests.support.planned_crawls import Plan


@pytest.fixture
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture
def plan(tmp_path, service):
    def make(**settings: Any) -> Plan:
        return Plan(tmp_path, service, settings)

    return make
