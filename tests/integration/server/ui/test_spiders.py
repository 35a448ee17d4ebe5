"""The pages of spiders, the comparison of jobs, and the change of a job against earlier ones, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.integration.server.ui.test_jobs_page import send
from tests.integration.server.ui.test_pages import job
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, rows, texts


async def run(http: Http, project: int, items: list[dict[str, Any]], reason: str = "finished", **fields: Any) -> str:
    """A finished job with these items."""
    key = await job(http, project, **fields)
    if items:
        await http.post(f"/items/{key}", items)
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": reason}])
    return key


def books(number: int, price: int = 1) -> list[dict[str, Any]]:
    return [{"url": f"http://a.example/{n}", "price": price, "title": f"Book {n}"} for n in range(number)]


async def test_spiders_are_listed_with_their_last_runs(http: Http, project: int) -> None:
    assert "No spiders yet." in page(await http.get(f"/ui/{project}/spiders")).text_content()
    for reason, number in (("finished", 10), ("failed", 0), ("closespider_timeout", 3), ("cancelled", 1)):
        await run(http, project, books(number), reason)
    await job(http, project, spider="news", state="pending")
    document = page(await http.get(f"/ui/{project}/spiders"))
    cells = document.xpath("//ol[@class='strip']//a/@class")
    assert cells == ["cell ok", "cell failed", "cell limit", "cell cancelled"]
    by_name = {row[0]: row for row in rows(document)}
    assert (by_name["books"][3], by_name["books"][7]) == ("10", "4"), (
        "the median is that of the runs that finished well"
    )
    assert by_name["news"][6] == "1"
    assert [row[0] for row in rows(page(await http.get(f"/ui/{project}/spiders?q=NEW")))] == ["news"]


async def test_the_page_of_a_spider_has_its_runs_medians_and_charts(http: Http, project: int) -> None:
    keys = [await run(http, project, books(number)) for number in (10, 20, 60)]
    document = page(await http.get(f"/ui/{project}/spiders/{keys[0].split('/')[1]}"))
    assert texts(document, "//dl[@class='figures']//dd")[0] == "20"
    assert texts(document, "//figure//title[parent::svg]") == [
        f"{name} of the last 3 runs" for name in ("Items", "Errors", "Duration")
    ]
    assert [row[0] for row in rows(document)] == keys[::-1]
    assert document.xpath("//ol[@class='strip']//a/@href") == [f"/ui/{key}" for key in keys]
    page(await http.get(f"/ui/{project}/spiders/99"), 404)
    page(await http.get(f"/ui/{project}/spiders/{await _number(http, project, 'quiet')}"))


async def _number(http: Http, project: int, spider: str) -> str:
    return (await job(http, project, spider=spider, state="pending")).split("/")[1]


async def test_a_job_shows_its_change_against_the_median_of_earlier_ones(http: Http, project: int) -> None:
    for number in (10, 10, 20):
        await run(http, project, books(number), spider_args={"a": "1"})
    await run(http, project, books(1000), spider_args={"a": "2"})
    await run(http, project, books(500), "failed", spider_args={"a": "1"})
    key = await run(http, project, books(5), spider_args={"a": "1"})
    document = page(await http.get(f"/ui/{key}"))
    assert texts(document, "//dd[starts-with(@class, 'change')]")[0] == "\N{MINUS SIGN}50 %, median 10"
    assert "3 runs before it that finished well, with the same arguments" in document.text_content()
    first = page(await http.get(f"/ui/{key.rpartition('/')[0]}/1"))
    assert texts(first, "//dd[starts-with(@class, 'change')]") == []


async def test_a_pending_job_has_nothing_that_means_nothing(http: Http, project: int) -> None:
    key = await job(http, project, state="pending")
    document = page(await http.get(f"/ui/{key}"))
    assert document.xpath("//dl[@class='figures'] | //figure") == []
    assert "This job has not started" in document.text_content()


async def test_the_last_errors_of_a_job_are_on_its_overview(http: Http, project: int) -> None:
    key = await job(http, project)
    lines = [{"time": n, "level": 40 if n % 100 == 0 else 20, "message": f"line {n} {HOSTILE}"} for n in range(1000)]
    await http.post(f"/logs/{key}", lines)
    shown = texts(page(await http.get(f"/ui/{key}")), "//ul[@class='last-errors']/li")
    assert [text.split(" ")[3] for text in shown] == ["500", "600", "700", "800", "900"]


async def test_two_jobs_are_compared_by_a_field_of_their_items(http: Http, project: int) -> None:
    before = await run(http, project, [*books(10), {"title": "no address"}])
    after = await run(http, project, [*books(8), *books(1), {**books(9, price=2)[8], "more": HOSTILE}, *books(12)[11:]])
    await http.post(f"/jobs/{before}", b'{"frameworkstats": {"item_scraped_count": 11, "same": 1}}')
    await http.post(f"/jobs/{after}", b'{"frameworkstats": {"item_scraped_count": 11, "same": 1, "new/stat": 4}}')
    document = page(await http.get(f"/ui/{project}/compare?a={before}&b={after}"))
    figures = dict(zip(texts(document, "//dt[parent::div]"), texts(document, "//dd[parent::div]"), strict=True))
    assert figures == {"New": "1", "Gone": "1", "Changed": "1", "Same": "8"}
    text = document.text_content()
    assert "By the field url" in " ".join(text.split())
    assert "Without the field: 1 and 0" in " ".join(text.split())
    assert "With a value that an earlier item has: 0 and 1" in " ".join(text.split())
    (changed,) = document.xpath("//h3[text()='Changed']/following-sibling::ul[1]/li")
    assert [" ".join(each.text_content().split()) for each in changed.xpath(".//dt")] == ["more", "price"]
    assert "http://a.example/11" in texts(document, "//h3[text()='New']/following-sibling::ul[1]/li")[0]
    assert "http://a.example/9" in texts(document, "//h3[text()='Gone']/following-sibling::ul[1]/li")[0]
    assert ["new/stat", "–", "4", "+4"] in [
        [" ".join(cell.text_content().split()) for cell in row] for row in document.xpath("//table//tr")
    ]
    without = page(await http.get(f"/ui/{project}/compare?a={before}&b={after}&without=price,more"))
    assert texts(without, "//dd[parent::div]")[2] == "0"
    by_title = page(await http.get(f"/ui/{project}/compare?a={before}&b={after}&by=title"))
    assert texts(by_title, "//dd[parent::div]")[:2] == ["1", "2"]


async def test_a_comparison_begins_with_the_run_before(http: Http, project: int) -> None:
    first, second = await run(http, project, books(3)), await run(http, project, books(3))
    document = page(await http.get(f"/ui/{project}/compare?b={second}"))
    assert document.xpath("//input[@name='a']/@value") == [first]
    alone = page(await http.get(f"/ui/{project}/compare?b={first}"))
    assert "There is no earlier finished run" in alone.text_content()
    assert "There is no job" in page(await http.get(f"/ui/{project}/compare?a={first}&b={project}/1/99")).text_content()
    page(await http.get(f"/ui/{project}/compare"))
    page(await http.get(f"/ui/{project}/compare?a=nonsense&b={first}"), 400)
    page(await http.get(f"/ui/{project}/compare?a=999999/1/1&b={first}"), 400)


async def test_two_chosen_jobs_are_compared_the_older_one_first(http: Http, project: int) -> None:
    first, second = await run(http, project, books(1)), await run(http, project, books(2))
    answer = await send(http, project, "jobs", ("action", "compare"), ("job", second), ("job", first))
    assert page(answer).xpath("//input[@name='a' or @name='b']/@value") == [first, second]
    one = await send(http, project, "jobs", ("action", "compare"), ("job", first))
    assert "Choose exactly two jobs" in texts(page(one), "//p[@role='status']")[0]
