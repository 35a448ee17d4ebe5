"""The pages of one job beyond what they list: search, downloads, charts, tags, the log."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import urlencode

import lxml.etree
import pytest

from tests.integration.server.ui.test_jobs_page import send
from tests.integration.server.ui.test_pages import job, page, texts
from tests.support.filled_jobs import new_job
from tests.support.http import Answer, Http


async def test_items_are_searched_in_every_field_whatever_their_case(http: Http, project: int) -> None:
    key = await job(http, project)
    items = [
        {"name": f"item {n}", "deep": {"list": ["Käse", '"quoted"', "a/b"] if n == 777 else []}} for n in range(1200)
    ]
    await http.post(f"/items/{key}", items)
    await http.post(f"/items/{key}", b'{"name": "K\\u00e4se \\/ 2"}\n')
    for text, wanted in (
        ("ITEM 777", ["777"]),
        ("käse", ["777", "1200"]),
        ('"quoted"', ["777"]),
        ("a/b", ["777"]),
        ("SE / 2", ["1200"]),
        ("nothing", []),
    ):
        document = page(await http.get(f"/ui/{key}/items?{urlencode({'q': text})}"))
        assert texts(document, "//tbody/tr/td[1]") == wanted, text
    # More than a page of them: the next page goes on after the last that was found.
    first = page(await http.get(f"/ui/{key}/items?q=item"))
    (onward,) = first.xpath("//a[text()='Search further']/@href")
    second = page(await http.get(onward))
    assert texts(second, "//tbody/tr/td[1]")[0] == str(len(texts(first, "//tbody/tr/td[1]")))


async def test_a_search_looks_through_a_bounded_number_of_records(http: Http, project: int) -> None:
    key = await job(http, project)
    lines = b"".join(b'{"n":%d}\n' % n for n in range(100_500))
    await http.post(f"/items/{key}", lines)
    document = page(await http.get(f"/ui/{key}/items?q=100400"))
    (report,) = texts(document, "//p[@role='status']")
    assert report.startswith("0 found. Looked through ")
    assert "of 100 500 items (1–" in report
    # On a slow machine, a search ends by its time.
    while onward := document.xpath("//a[text()='Search further']/@href"):
        assert texts(document, "//tbody/tr") == []
        document = page(await http.get(onward[0]))
    assert texts(document, "//tbody/tr/td[1]") == ["100400"]


async def test_columns_show_how_many_items_have_a_field_and_its_values(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"a": 1, "b": "x"}, {"a": None, "b": [1]}, {"a": True}, {"a": 1.5, "b": {}}])
    document = page(await http.get(f"/ui/{key}/items"))
    assert texts(document, "//thead/tr/th")[1:] == ["a100 % · nothing, number, yes/no", "b75 % · list, object, text"]
    wide = await job(http, project)
    await http.post(f"/items/{wide}", [{f"f{n}": n for n in range(30)}])
    narrow = page(await http.get(f"/ui/{wide}/items"))
    assert len(narrow.xpath("//thead/tr/th")) == 9
    assert len(page(await http.get(f"/ui/{wide}/items?all=1")).xpath("//thead/tr/th")) == 31


async def test_all_records_are_downloaded_in_every_format(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"name": "a,b", "price": 1}, {"name": 'c"d'}])
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": "said"}])
    table = await http.get(f"/ui/{key}/items.csv")
    assert table.text.splitlines() == ["name,price", '"a,b",1', '"c""d",']
    assert "attachment" in table.headers["Content-Disposition"].lower()
    assert (await http.get(f"/ui/{key}/items.json")).json == [{"name": "a,b", "price": 1}, {"name": 'c"d'}]
    assert len((await http.get(f"/ui/{key}/items.jl")).lines) == 2
    lxml.etree.fromstring((await http.get(f"/ui/{key}/items.xml")).body)
    assert "said" in (await http.get(f"/ui/{key}/log.csv")).text
    request = {"time": 1, "method": "GET", "url": "http://a.example/", "status": 200, "duration": 1, "rs": 2}
    await http.post(f"/requests/{key}", [request])
    assert (await http.get(f"/ui/{key}/requests.json")).json == [request]
    assert (await http.get(f"/ui/{key}/requests.csv")).text.splitlines() == [
        "time,method,url,status,duration,rs,parent,fp",
        "1,GET,http://a.example/,200,1,2,,",
    ]
    assert (await http.get(f"/ui/{key}/items.exe")).status == 404


async def test_a_downloaded_table_has_no_formulas_and_that_of_the_api_has_what_was_stored(
    http: Http, project: int
) -> None:
    key = await job(http, project)
    formulas = ["=cmd|' /C calc'!A0", "+1+cmd()", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1"]
    plain = ["-2.50", "+491234", "1e-5", "a=b", "", "'quoted"]
    await http.post(f"/items/{key}", [{"=name()": text} for text in [*formulas, *plain]] + [{"=name()": -7}])
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": "=HYPERLINK()"}])

    def cells(answer: Answer) -> list[str]:
        return [row[0] if row else "" for row in csv.reader(io.StringIO(answer.text, newline=""))]

    for_people = cells(await http.get(f"/ui/{key}/items.csv"))
    assert for_people == ["'=name()", *(f"'{text}" for text in formulas), *plain, "-7"]
    for_programs = cells(await http.get(f"/items/{key}?format=csv&fields=%3Dname()&include_headers=1"))
    assert for_programs == ["=name()", *formulas, *plain, "-7"]
    assert "'=HYPERLINK()" in (await http.get(f"/ui/{key}/log.csv")).text


async def test_tags_are_added_and_taken_away(http: Http, project: int) -> None:
    key = await job(http, project, tags=["a,b", "c"])
    where = key.partition("/")[2] + "/tags"
    await send(http, project, where, ("add", "d, e"))
    answer = await send(http, project, where, ("remove", "a,b"))
    assert (await http.get(f"/jobs/{key}/tags")).json == ["c", "d", "e"]
    assert "The tags were changed." in page(answer).text_content()
    assert (await send(http, project, where, ("add", " , "))).status == 400


async def test_secrets_of_a_job_are_not_shown(http: Http, project: int) -> None:
    await job(http, project, spider_args={"api_key": "s3cret1", "a": "b"}, job_settings={"DB_PASSWORD": "s3cret2"})
    key = await job(http, project, environment={"ANY": "s3cret3"}, job_settings={"X_TOKEN": "s3cret4", "Y": "open"})
    for each in (key, key.rpartition("/")[0] + "/1"):
        for part in ("", "/stats"):
            text = (await http.get(f"/ui/{each}{part}")).text
            assert "s3cret" not in text
    assert "open" in (await http.get(f"/ui/{key}")).text


async def test_secrets_within_values_are_not_shown(http: Http, project: int) -> None:
    arguments = {"start": "https://a.example/?api_key=s3cret1", "category": "https://b.example/?page=2"}
    settings = {
        "DB": "postgresql://me:s3cret2@db/x",
        "FEEDS": {"s3://me:s3cret3@bucket/x": {}},
        "A": [{"token": "s3cret4"}],
    }
    job_key = await job(http, project, spider_args=arguments, job_settings=settings, cmd_args="--token s3cret5 -v")
    answer = await http.get(f"/ui/{job_key}")
    assert "s3cret" not in answer.text
    assert "https://b.example/?page=2" in page(answer).text_content()
    reported = {"keywords": "tents", "author": "Ann", "note": "12:30 at me@home"}
    assert "tents" in (text := (await http.get(f"/ui/{await job(http, project, spider_args=reported)}")).text)
    assert all(value in text for value in reported.values())


async def test_the_head_of_a_job_that_goes_on_is_got_anew_on_every_part_of_it(http: Http, project: int) -> None:
    key = await job(http, project)
    for part in ("items", "requests", "log", "stats"):
        (where,) = page(await http.get(f"/ui/{key}/{part}?q=x")).xpath("//div[@id='head']/@data-refresh")
        head = page(await http.get(where)).xpath("//div[@id='head']")[0]
        assert head.xpath(".//nav[@class='tabs']/a[@aria-current]/@href") == [f"/ui/{key}/{part}"]
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    assert page(await http.get(f"/ui/{key}/log")).xpath("//*[@data-refresh]") == []


async def test_charts_have_a_description_in_words(http: Http, project: int) -> None:
    key = await job(http, project)
    start = 1_800_000_000_000
    samples = [[start + n * 5000, 100 * n, 50 * n, 9 * n, 100_000_000 + n] for n in range(61)]
    await http.post(f"/samples/{key}", [*samples, ["odd"], [2**62, 1, 1, 1, 1], [1, 2], [-1, 1, 1, 1, 1]])
    document = page(await http.get(f"/ui/{key}"))
    reported = {each.xpath("string(./title)"): each.xpath("string(./desc)") for each in document.xpath("//svg")}
    assert set(reported) == {"Throughput, a minute", "Memory"}
    assert "requests: 1\u202f200 at most, 1\u202f200 on average" in reported["Throughput, a minute"]
    assert "items: 600 at most" in reported["Throughput, a minute"]
    assert "100 MB last" in reported["Memory"]


async def test_both_pages_of_a_job_have_the_same_throughput_with_a_gap_where_no_process_ran(
    http: Http, project: int
) -> None:
    key = await job(http, project)
    start = 1_800_000_000_000
    times = [*range(0, 300_000, 5000), *range(900_000, 1_200_000, 5000)]
    await http.post(f"/samples/{key}", [[start + ms, ms // 100, ms // 200, 0, 100_000_000] for ms in times])
    await http.post(
        f"/requests/{key}", [{"time": 1, "method": "GET", "url": "http://a", "duration": 3, "rs": 4, "status": 200}]
    )
    first, second = [
        document.xpath("//figure[contains(., 'Throughput')]//polyline/@points")
        for document in (page(await http.get(f"/ui/{key}")), page(await http.get(f"/ui/{key}/requests")))
    ]
    assert first == second
    assert len(first) == 4, "two lines with one gap"


async def test_without_samples_the_throughput_is_computed_from_the_times_of_the_records(
    http: Http, project: int
) -> None:
    key = await job(http, project)
    request = {"time": 1, "method": "GET", "url": "http://a.example/", "duration": 3, "rs": 4}
    for n in range(4):
        records = [{**request, "status": status} for status in (200, 200, 404, 503)]
        await http.post(f"/requests/{key}", records)
        await http.post(f"/items/{key}", [{"n": n}])
    overview = page(await http.get(f"/ui/{key}"))
    assert overview.xpath("//svg/title/text()") == ["Throughput, a minute", "Responses by status"]
    requests = page(await http.get(f"/ui/{key}/requests"))
    assert requests.xpath("//svg")[0].xpath("string(./desc)") == "200: 8; 404: 4; 503: 4"


async def test_statuses_of_many_requests_are_those_that_the_crawl_has_counted(http: Http, project: int) -> None:
    key = await job(http, project)
    request = {"time": 1, "method": "GET", "url": "http://a.example/", "duration": 3, "rs": 4, "status": 200}
    await http.post(f"/requests/{key}", [request] * 2500)
    last = page(await http.get(f"/ui/{key}/requests"))
    assert last.xpath("//svg/title/text()")[0] == "Responses by status, of the last 2000"
    stats = {f"downloader/response_status_count/{status}": n for status, n in ((200, 2400), (404, 100), ("x", 1))}
    await http.post(f"/jobs/{key}", json.dumps({"frameworkstats": stats}).encode())
    counted = page(await http.get(f"/ui/{key}/requests"))
    assert counted.xpath("//svg")[0].xpath("string(./desc)") == "200: 2\u202f400; 404: 100"


async def test_stats_that_are_times_are_shown_as_times_with_their_zone(http: Http, project: int) -> None:
    key = await job(http, project)
    stats = {"start_time": 1_795_000_000_000, "finish_time": 1_795_000_060_000, "item_scraped_count": 12_345}
    await http.post(f"/jobs/{key}", json.dumps({"frameworkstats": stats}).encode())
    shown = page(await http.get(f"/ui/{key}/stats"))
    assert [" ".join(row.itertext()).split() for row in shown.xpath("//tbody/tr")] == [
        ["finish_time", "2026-11-18", "11:07:40", "UTC"],
        ["item_scraped_count", "12", "345"],
        ["start_time", "2026-11-18", "11:06:40", "UTC"],
    ]


async def test_a_run_without_an_end_is_shown_as_lost(http: Http, project: int) -> None:
    key = await job(http, project, state="running")
    runs = [
        {"start_time": 1_795_000_000_000, "finish_time": 1_795_000_060_000, "items": 7, "responses": 9},
        {
            "start_time": 1_795_000_100_000,
            "finish_time": 1_795_000_160_000,
            "items": 3,
            "responses": 4,
            "close_reason": "shutdown",
        },
        {"start_time": 1_795_000_200_000, "finish_time": 1_795_000_260_000, "items": 1, "responses": 2},
    ]
    await http.post(f"/jobs/{key}", json.dumps({"runs": runs}).encode())

    async def outcomes() -> list[str]:
        shown = page(await http.get(f"/ui/{key}")).xpath("//*[@aria-label='Runs']//tbody/tr/td[5]")
        return [" ".join(" ".join(cell.itertext()).split()) for cell in shown]

    lost, stopped, current = await outcomes()
    assert lost.startswith("lost: no report since 2026-11-18 11:07:40")
    assert (stopped, current) == ("shutdown", "")
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "node_lost"}])
    assert (await outcomes())[2].startswith("lost: no report since 2026-11-18 11:11:00")


async def test_one_of_something_is_not_several(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"name": "a"}])
    assert "1 item, " in page(await http.get(f"/ui/{key}")).text_content()
    await http.post(f"/items/{key}", [{"name": "b"}])
    assert "2 items, " in page(await http.get(f"/ui/{key}")).text_content()


async def test_items_whose_indexes_do_not_begin_at_0_are_all_found(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"n": n} for n in range(500, 620)], Content_Range="items 500-/*")
    first = page(await http.get(f"/ui/{key}/items"))
    assert "items 501–550 of 620" in first.text_content()
    (last,) = first.xpath("//nav[@aria-label='Pages']//a[text()='last']/@href")
    numbers = page(await http.get(last)).xpath("//tbody/tr/td[1]//text()")
    assert [number.strip() for number in numbers] == [str(n) for n in range(600, 620)]
    one = page(await http.get(f"/ui/{key}/items/500"))
    assert (one.xpath("//a[text()='previous']"), len(one.xpath("//a[text()='next']"))) == ([], 1)


async def ended(http: Http, key: str) -> None:
    await http.post(f"/jobq/{key.partition('/')[0]}/update", [{"key": key, "state": "finished"}])


async def test_a_log_is_filtered_by_level_and_text_and_led_to_its_first_error(http: Http, project: int) -> None:
    key = await job(http, project)
    levels = [{5: 10, 300: 30, 333: 40, 400: 50}.get(n, 20) for n in range(500)]
    await http.post(
        f"/logs/{key}", [{"time": n, "level": level, "message": f"Line {n}"} for n, level in enumerate(levels)]
    )
    await ended(http, key)
    for query, wanted in (
        ("level=30", ["l300", "l333", "l400"]),
        ("level=50", ["l400"]),
        ("q=LINE+33", ["l33", *(f"l{n}" for n in range(330, 340))]),
        ("q=line+33&level=40", ["l333"]),
    ):
        document = page(await http.get(f"/ui/{key}/log?{query}"))
        assert document.xpath("//ol/li/@id") == wanted, query
    assert texts(document, "//nav[@class='levels']/a") == ["all", "info+ 499", "warning+ 3", "error+ 2", "critical 1"]
    led = page(await http.get(f"/ui/{key}/log/first-error"))
    assert "l333" in led.xpath("//ol/li/@id")


async def test_the_log_of_a_crawl_with_many_errors_stays_short_and_each_line_has_a_page(
    http: Http, project: int
) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", [{"time": n, "level": 40, "message": traceback_of(n)} for n in range(120)])
    await ended(http, key)
    answer = await http.get(f"/ui/{key}/log")
    document = page(answer)
    (main,) = document.xpath("//main")
    assert len(lxml.etree.tostring(main)) < 60_000
    assert "shop.py:34 in books" in document.text_content()
    assert "spidermw.py" not in document.text_content()
    (link,) = document.xpath("//li[@id='l7']/a[@class='whole']/@href")
    assert page(await http.get(link)).xpath("string(//pre)") == traceback_of(7)
    assert (await http.get(f"/ui/{key}/log/120")).status == 404


def traceback_of(number: int) -> str:
    return f"""Spider error processing <GET https://shop.example/page/{number}> (referer: None)
Traceback (most recent call last):
  File "/srv/env/lib/python3.12/site-packages/twisted/internet/defer.py", line 1253, in adapt
    extracted = result.result()
  File "/srv/env/lib/python3.12/site-packages/scrapy/core/spidermw.py", line 167, in process_sync
    for r in iterable:
  File "/srv/shop/spiders/shop.py", line 30, in parse
    yield from self.books(response)
  File "/srv/shop/spiders/shop.py", line 34, in books
    yield {{"title": data["headline"]}}
KeyError: 'headline'"""


async def test_a_log_that_goes_on_begins_with_its_last_lines(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", [{"time": n, "level": 20, "message": f"Line {n}"} for n in range(500)])
    document = page(await http.get(f"/ui/{key}/log"))
    assert document.xpath("//ol/li/@id")[::99] == ["l400", "l499"]
    assert document.xpath("//ol/@data-live") == [f"/ui/{key}/log/live?after=500"]
    await ended(http, key)
    assert page(await http.get(f"/ui/{key}/log")).xpath("//ol/@data-live") == []


@pytest.mark.parametrize(
    "message", ["\x1b[31mred", "a\u202eb", "\x00\x07", "x" * 50_000], ids=["escape", "direction", "control", "huge"]
)
async def test_text_that_steers_is_shown_and_steers_nothing(http: Http, project: int, message: str) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": message}])
    await http.post(f"/items/{key}", [{"m": message}])
    for part in ("/log", "/items", "/items/0"):
        text = (await http.get(f"/ui/{key}{part}")).text
        assert not any(steering in text for steering in ("\x1b", "\u202e", "\x00", "\x07"))
        assert len(text) < 80_000


@pytest.mark.parametrize("part", ["", "/items", "/items?q=a", "/requests", "/log", "/log?level=40&start=0", "/stats"])
async def test_each_page_of_a_deleted_job_says_when_it_was_deleted(http: Http, project: int, part: str) -> None:
    deleted = await new_job(http, project)
    await deleted.fill()
    await deleted.delete()
    answer = await http.get(f"/ui/{deleted.key}{part}")
    document = page(answer)
    (notice,) = texts(document, "//section[@aria-label='Removed records']")
    assert f"Job {deleted.key} was deleted on 20" in notice
    assert deleted.secret not in answer.text
    assert document.xpath("//form[@class='actions']") == []


async def test_items_and_downloads_of_a_deleted_job_are_gone(http: Http, project: int) -> None:
    deleted = await new_job(http, project)
    await deleted.fill()
    await deleted.delete()
    for part in ("items/0", "items.jl", "items.csv", "log.jl", "requests.jl"):
        answer = await http.get(f"/ui/{deleted.key}/{part}")
        assert (answer.status, "was deleted on" in answer.text) == (410, True), part
