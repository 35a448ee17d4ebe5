"""Existing spiders with ``CRAWL_WORKERS = 2``: what the workers do together is what one process of plain Scrapy does.

What differs all the same is in ``two_workers.toml``, with the reason. Some of it shows only if the second worker gets
one of the requests, which depends on the port of the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.compatibility.toml import tomllib
from tests.acceptance.parity.spiders import SPIDERS
from tests.acceptance.parity.two_workers import TwoWorkers

pytestmark = pytest.mark.timeout(2400)

#: Spiders of different kinds; the others run with ``--full``.
USUAL = frozenset({"cookie-jars", "crawl-spider", "errback-retries", "feeds", "item-classes", "login-first"})

DEVIATIONS = tomllib.loads(Path(__file__).with_name("two_workers.toml").read_text("utf-8"))["deviation"]


@pytest.fixture(scope="module")
def two_workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoWorkers]:
    """The outcomes of the spiders that this session's tests of this file name."""
    items = [item for item in request.session.items if "two_workers" in getattr(item, "fixturenames", ())]
    return TwoWorkers(sorted({item.callspec.params["spider"] for item in items}), tmp_path_factory.mktemp("workers"))


def cases() -> Iterator[Any]:
    for spider in SPIDERS:
        yield pytest.param(spider, marks=[pytest.mark.long, *([] if spider in USUAL else [pytest.mark.full])])


@pytest.mark.parametrize("spider", list(cases()))
def test_two_workers_do_together_what_one_process_does(spider: str, two_workers: TwoWorkers) -> None:
    found = two_workers.differences(spider)
    explained = [field for each in DEVIATIONS if spider in each["spiders"] for field in each["fields"]]
    new = {
        name: pair
        for name, pair in found.items()
        if not any(re.fullmatch(rf"(run \d+: )?({field})", name) for field in explained)
    }
    assert not new


def test_deviations_name_spiders_that_there_are() -> None:
    assert {spider for each in DEVIATIONS for spider in each["spiders"]} <= set(SPIDERS)
