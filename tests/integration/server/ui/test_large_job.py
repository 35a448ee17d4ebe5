"""The pages of a job with a million items: they cost what those of a job with some thousands do."""

from __future__ import annotations

import time

import pytest

from scrapy_ext.server.ui.response_charts import COUNTED
from tests.integration.server.ui.test_pages import job, page
from tests.support.http import Http

_PER_POST = 20_000
#: Of the smaller job: twice as many as any page reads (the charts of responses).
_FEW = 2 * COUNTED
#: How much longer the large job's page may take than the small one's: for its longer numbers, and for luck.
_FACTOR = 5


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_pages_take_as_long_for_a_million_items_as_for_some_thousands(http: Http, project: int) -> None:
    small, large = await job(http, project), await job(http, project)
    request = b'{"time":%d,"method":"GET","url":"http://a.example/%d","status":200,"duration":3,"rs":4}\n'
    line = b'{"time":%d,"level":20,"message":"Crawled (200) <GET http://a.example/%d>"}\n'
    for key, number in ((small, _FEW), (large, 1_000_000)):
        for first in range(0, number, _PER_POST):
            numbers = range(first, min(first + _PER_POST, number))
            await http.post(f"/items/{key}", b"".join(b'{"name":"item %d","price":%d}\n' % (n, n) for n in numbers))
            await http.post(f"/requests/{key}", b"".join(request % (n, n) for n in numbers))
            await http.post(f"/logs/{key}", b"".join(line % (n, n) for n in numbers))

    async def fastest(path: str) -> float:
        times = []
        for _ in range(10):
            began = time.perf_counter()
            assert (await http.get(path)).status == 200
            times.append(time.perf_counter() - began)
        return min(times)

    for part in ("", "/items", "/items/77", "/requests", "/log", "/stats"):
        assert await fastest(f"/ui/{large}{part}") < _FACTOR * await fastest(f"/ui/{small}{part}"), part
    last = page(await http.get(f"/ui/{large}/items?start=999950"))
    assert last.xpath("//tbody/tr[last()]/td[1]")[0].text_content() == "999999"
