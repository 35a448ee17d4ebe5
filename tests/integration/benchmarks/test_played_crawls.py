"""Crawls that the simulation plays make the calls of a real crawl with the package."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.contenders import scrapy_ext
from rig.crawls import crawl
from rig.played import Plan, Tally, play
from rig.recording import Exchange, recording
from rig.services import Platform
from rig.site import site
from rig.wire import Measured

from tests.support.servers import RunningServer

_PAGES, _RATE = 40, 8.0
#: Calls that depend on how long a crawl lasts, or that a short crawl may make or not.
_SOMETIMES = {"POST frontier q deleted", "DELETE collection", "POST logs", "POST jobs"}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with RunningServer(tmp_path_factory.mktemp("played") / "data") as server:
        port = int(server.url.rpartition(":")[2])
        yield Platform(port, server.platform_key, server.process.pid, server.data)


def sizes(exchanges: list[Exchange]) -> float:
    return sum(len(each.body) for each in exchanges) / _PAGES


@pytest.mark.long
async def test_a_played_crawl_makes_the_calls_of_a_real_one_with_bodies_of_their_sizes(platform: Platform) -> None:
    measured, tally = Measured(), Tally()
    with site(_PAGES, 3) as address, recording(platform.port) as real, recording(platform.port) as played:
        settings: dict[str, Any] = {
            **scrapy_ext(real.port, platform.key),
            "DOWNLOAD_DELAY": 1 / _RATE,
            "RANDOMIZE_DOWNLOAD_DELAY": False,
        }
        crawling = asyncio.to_thread(crawl, "ShopPages", settings, site=address, items=_PAGES)
        relayed = Platform(played.port, platform.key, platform.pid, Path())
        playing = play(relayed, Plan(_PAGES, lambda: _RATE, requests=_PAGES, compress=False), measured, tally, 1)
        await asyncio.gather(crawling, playing)
    assert measured.errors == []
    assert (tally.pages, list(tally.finished.values())) == (_PAGES, [_PAGES])
    assert {each.status for each in played.exchanges} == {each.status for each in real.exchanges} == {200}
    of_real, of_played = real.kinds(), played.kinds()
    assert set(of_real) - _SOMETIMES == set(of_played) - _SOMETIMES
    for kind in set(of_real) & set(of_played):
        numbers = len(of_real[kind]), len(of_played[kind])
        assert max(numbers) <= 2 * min(numbers) + 4, (kind, numbers)
    for kind in ("POST items", "POST requests", "POST frontier", "POST journal", "POST collection"):
        ratio = sizes(of_played[kind]) / sizes(of_real[kind])
        assert 0.5 < ratio < 2, (kind, ratio)
