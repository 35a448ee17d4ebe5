"""The pages of spiders, the comparison of jobs, and the change of a job against earlier ones, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.integration.server.ui.test_jobs_page import send
from tests.integration.server.ui.test_pages import job
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, rows, texts

TRACEBACK = """Spider error processing <GET https://a.example/> (referer: None)
Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/scrapy/core/spidermw.py", line 167, in process_sync
    for r in iterable:
  File "/srv/shop/shop.py", line 34, in parse
    yield data['headline']
KeyError: 'headline'"""


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
    assert "No spiders yet." in page(await http.get(f"/ui/{project}")).text_content()
    runs = [("finished", number) for number in (10, 30, 10)]
    for reason, number in (*runs, ("failed", 0), ("closespider_timeout", 3), ("cancelled", 1)):
        await run(http, project, books(number), reason)
    await job(http, project, spider="news", state="pending")
    path = f"/ui/{project}"
    document = page(
        await eventually_async(lambda: http.get(path), lambda answer: answer.text.count('class="cell') == 6)
    )
    cells = document.xpath("//ol[@class='strip']//a/@class")
    assert cells == [*["cell green"] * 3, "cell red", "cell amber", "cell none"]
    by_name = {row[0]: row for row in rows(document)}
    assert by_name["amber: books"][2].endswith("1 / median 10"), "the median is that of the runs that finished well"
    assert by_name["no verdict: news"][4] == "0 + 1 pending"


async def test_the_row_of_a_spider_names_the_job_that_needs_somebody_and_runs_it_again(
    http: Http, project: int
) -> None:
    await run(http, project, books(1), "failed", spider_args={"category": "9"})
    await run(http, project, books(1), spider_args={"category": "8"})
    path = f"/ui/{project}"
    document = page(
        await eventually_async(lambda: http.get(path), lambda answer: answer.text.count('class="cell') == 2)
    )
    (row,) = rows(document)
    assert (row[0], row[3]) == ("red: books", "job 1: it failed: failed")
    assert document.xpath("//a[@class='again']/@href") == [f"/ui/{project}/jobs/run?again={project}/1/1"]
    compared = page(await http.get(f"/ui/{project}/compare?b={project}/1/2")).text_content()
    assert f"No run before {project}/1/2 has its arguments: {project}/1/1 is the last one with others." in compared
    assert "is the last" not in page(await http.get(f"/ui/{project}/compare?a={project}/1/1&b={project}/1/2")).text


async def test_the_address_of_the_list_of_spiders_leads_to_the_overview(http: Http, project: int) -> None:
    for spider in ("books", "news"):
        await job(http, project, spider=spider, state="pending")
    document = page(await http.get(f"/ui/{project}/spiders?q=NEW"))
    assert [row[0] for row in rows(document)] == ["no verdict: news"]
    assert document.xpath("//main//input[@name='q']/@value") == ["NEW"]
    assert "of this list has this in its name" in page(await http.get(f"/ui/{project}?q=other")).text_content()


async def test_the_page_of_a_spider_has_its_runs_medians_and_charts(http: Http, project: int) -> None:
    keys = [await run(http, project, books(number)) for number in (10, 20, 60, 30)]
    path = f"/ui/{project}/spiders/{keys[0].split('/')[1]}"
    document = page(await eventually_async(lambda: http.get(path), lambda answer: "Medians: those" in answer.text))
    assert texts(document, "//dl[@class='figures']//dd")[0] == "20"
    assert texts(document, "//figure//title[parent::svg]") == [
        f"{name} of the last 4 runs" for name in ("Items", "Errors", "Duration")
    ]
    columns = document.xpath("//figure[1]//a[@aria-label]/@aria-label")
    assert [label.rpartition(" UTC: ")[2] for label in columns] == ["10", "20", "60", "30"], (
        "times say that they are UTC"
    )
    assert [row[0] for row in rows(document)] == keys[::-1]
    assert document.xpath("//ol[@class='strip']//a/@href") == [f"/ui/{key}" for key in keys]
    page(await http.get(f"/ui/{project}/spiders/99"), 404)
    page(await http.get(f"/ui/{project}/spiders/{await _number(http, project, 'quiet')}"))


async def test_the_runs_of_a_spider_are_paged(http: Http, project: int) -> None:
    keys = [await run(http, project, []) for _ in range(22)]
    path = f"/ui/{project}/spiders/{keys[0].split('/')[1]}"
    first = page(await http.get(path))
    assert [row[0] for row in rows(first)] == keys[:1:-1]
    assert len(first.xpath("//ol[@class='strip']//a")) == 22
    last = page(await http.get(first.xpath("//nav[@class='pager']/a/@href")[0]))
    assert [row[0] for row in rows(last)] == keys[1::-1]
    assert len(last.xpath("//tbody//a[starts-with(., 'compare')]")) == 1, "no run is before the first one"


async def _number(http: Http, project: int, spider: str) -> str:
    return (await job(http, project, spider=spider, state="pending")).split("/")[1]


async def test_a_job_shows_its_change_against_the_median_of_earlier_ones(http: Http, project: int) -> None:
    for number in (10, 10, 20):
        await run(http, project, books(number), spider_args={"a": "1"})
    await run(http, project, books(1000), spider_args={"a": "2"})
    await run(http, project, books(500), "failed", spider_args={"a": "1"})
    key = await run(http, project, books(4), spider_args={"a": "1"})
    answer = await eventually_async(lambda: http.get(f"/ui/{key}"), lambda answer: "Medians" in answer.text)
    document = page(answer)
    assert texts(document, "//dd[starts-with(@class, 'change')]")[0] == "\N{MINUS SIGN}60 %, median 10"
    assert "last 3 runs before it with the same arguments that finished well" in document.text_content()
    assert "4 items, 40 % of the 10" in document.text_content(), "its verdict says the same"
    spider = page(await http.get(f"/ui/{project}/spiders/{key.split('/')[1]}"))
    assert texts(spider, "//dl[@class='figures']//dd")[0] == "10", "and so do the pages of its spider"
    (row,) = rows(page(await http.get(f"/ui/{project}")))
    assert row[2].endswith("4 / median 10")
    compared = page(await http.get(f"/ui/{project}/compare?b={key}"))
    assert texts(compared, "//tr[th='Items']/td")[-1] == "10"
    first = page(await http.get(f"/ui/{key.rpartition('/')[0]}/1"))
    assert texts(first, "//dd[starts-with(@class, 'change')]") == []


async def test_a_pending_job_has_nothing_that_means_nothing(http: Http, project: int) -> None:
    key = await job(http, project, state="pending")
    document = page(await http.get(f"/ui/{key}"))
    assert document.xpath("//dl[@class='figures'] | //figure") == []
    assert "This job has not started" in document.text_content()


async def test_the_errors_of_a_job_are_on_its_overview_in_groups(http: Http, project: int) -> None:
    key = await job(http, project)
    lines = [{"time": n, "level": 40 if n % 100 == 0 else 20, "message": f"line {n} {HOSTILE}"} for n in range(1000)]
    lines.append({"time": 7, "level": 50, "message": TRACEBACK})
    await http.post(f"/logs/{key}", lines)
    document = page(await http.get(f"/ui/{key}"))
    groups = texts(document, "//ul[@class='error-groups']/li/details/summary")
    assert groups[0].startswith(f"line N {HOSTILE.split('<')[0]}")
    assert "10 times" in groups[0]
    assert groups[1].startswith("KeyError: 'headline' 1 time, in parse, shop.py:34")
    assert texts(document, "//ol[@class='frames']/li") == ["shop.py:34 in parseyield data['headline']"]
    assert document.xpath("//ul[@class='error-groups']//a/@href")[1] == f"/ui/{key}/log?start=980#l1000"


async def test_the_page_of_a_spider_has_the_reasons_and_the_errors_of_its_last_runs(http: Http, project: int) -> None:
    keys = []
    for count in (1, 2):
        keys.append(await job(http, project))
        lines = [{"time": n, "level": 40, "message": f"line {n} {HOSTILE}"} for n in range(3 * (count % 2))]
        lines += [{"time": 9 + n, "level": 40, "message": TRACEBACK} for n in range(count)]
        await http.post(f"/items/{keys[-1]}", books(20))
        await http.post(f"/logs/{keys[-1]}", lines)
        await http.post(f"/jobq/{project}/update", [{"key": keys[-1], "state": "finished", "close_reason": "finished"}])
    path = f"/ui/{project}/spiders/{keys[0].split('/')[1]}"
    judged = ("3 times in 2 runs", ": 2 errors in the log")
    document = page(
        await eventually_async(lambda: http.get(path), lambda answer: all(text in answer.text for text in judged))
    )
    assert texts(document, "//section[@aria-label='Verdict']//li") == ["job 2: 2 errors in the log"]
    groups = texts(document, "//ul[@class='error-groups']/li/details/summary")
    assert groups[0].startswith("KeyError: 'headline' 3 times in 2 runs, in parse, shop.py:34"), "the last run has it"
    assert groups[1].startswith("line N <script>")
    links = document.xpath("//ul[@class='error-groups']/li[1]//a/@href")
    assert links == [f"/ui/{keys[1]}/log?start=0#l0", f"/ui/{keys[1]}", f"/ui/{keys[0]}"]


async def test_the_overview_has_the_spiders_that_need_somebody_first(http: Http, project: int) -> None:
    assert "No spiders yet." in page(await http.get(f"/ui/{project}")).text_content()
    for spider, reason in (("good", "finished"), ("bad", "start_error"), ("odd", "login failed")):
        await run(http, project, books(3), reason, spider=spider)
    await job(http, project, spider="bad", state="pending")
    path = f"/ui/{project}"
    document = page(await eventually_async(lambda: http.get(path), lambda answer: "no verdict" not in answer.text))
    found = rows(document)
    assert [row[0] for row in found] == ["red: bad", "amber: odd", "green: good"]
    assert [row[3] for row in found] == ["it failed: start_error", "its spider ended it: login failed", ""]
    assert found[0][4] == "0 + 1 pending"
    assert texts(document, "//nav[@aria-label='Verdicts']/a") == [
        *("all", "needs attention 2", "red 1", "amber 1", "green 1"),
    ]
    shown = page(await http.get(f"{path}?show=amber"))
    assert [row[0] for row in rows(shown)] == ["amber: odd"]
    assert [row[0] for row in rows(page(await http.get(f"{path}?q=GOO")))] == ["green: good"]


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


async def test_a_comparison_is_with_the_last_run_with_the_same_arguments(http: Http, project: int) -> None:
    args = [{"spider_args": {"category": each}} for each in ("books", "toys")]
    first, _, third = [await run(http, project, books(3), **args[place]) for place in (0, 1, 0)]
    document = page(await http.get(f"/ui/{project}/compare?b={third}"))
    assert document.xpath("//input[@name='a']/@value") == [first]
    other = await run(http, project, books(3), spider_args={"category": "wine"})
    document = page(await http.get(f"/ui/{project}/compare?b={other}"))
    assert document.xpath("//input[@name='a']/@value") == [third]
    assert ["category=books", "category=wine", "different"] in rows(document)


async def test_a_comparison_hides_the_secrets_in_arguments_and_command_lines(http: Http, project: int) -> None:
    secret = {"spider_args": {"api_key": "hunter2", "page": "1"}}
    first, second = [await run(http, project, [], cmd_args=f"--password hunter{n}", **secret) for n in (2, 3)]
    answer = await http.get(f"/ui/{project}/compare?a={first}&b={second}")
    assert "hunter" not in answer.text
    assert "api_key=••••••, page=1, ••••••" in answer.text


async def test_the_time_of_the_crawl_changes_no_item(http: Http, project: int) -> None:
    before = await run(http, project, [{**item, "scraped_at": n} for n, item in enumerate(books(8))])
    after = await run(
        http, project, [{**item, "scraped_at": n + 100} for n, item in enumerate([*books(7), *books(8, price=2)[7:]])]
    )
    path = f"/ui/{project}/compare?a={before}&b={after}"
    document = page(await http.get(path))
    assert texts(document, "//dd[parent::div]") == ["0", "0", "1", "7"]
    assert "every pair: the fields scraped_at." in " ".join(document.text_content().split())
    assert texts(document, "//ul[@class='item-changes']//dt") == ["price"]
    (every,) = document.xpath("//a[text()='Compare them too']/@href")
    assert texts(page(await http.get(every)), "//dd[parent::div]") == ["0", "0", "8", "0"]


async def test_two_chosen_jobs_are_compared_the_older_one_first(http: Http, project: int) -> None:
    first, second = await run(http, project, books(1)), await run(http, project, books(2))
    answer = await send(http, project, "jobs", ("action", "compare"), ("job", second), ("job", first))
    assert page(answer).xpath("//input[@name='a' or @name='b']/@value") == [first, second]
    one = await send(http, project, "jobs", ("action", "compare"), ("job", first))
    assert "Choose exactly two jobs" in texts(page(one), "//p[@role='status']")[0]
