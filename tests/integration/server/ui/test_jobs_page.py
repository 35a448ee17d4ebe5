"""Actions of the jobs page: filter, run, stop, run again, delete."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.monitor_queue import enqueue_job, forget_job
from tests.integration.server.ui.test_pages import job, page, texts
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import RunningServer


async def token(http: Http, project: int) -> str:
    found = page(await http.get(f"/ui/{project}/jobs/run")).xpath("//input[@name='token']/@value")
    return str(found[0])


async def send(http: Http, project: int, path: str, *fields: tuple[str, str]) -> Answer:
    """Send a form of a page and follow where it leads."""
    body = urlencode([("token", await token(http, project)), *fields]).encode()
    return await http.post(f"/ui/{project}/{path}", body, Content_Type="application/x-www-form-urlencoded")


async def listed(http: Http, project: int, **query: str) -> list[dict[str, Any]]:
    query = {"project": str(project), "state": "pending", **query}
    jobs = (await http.get(f"/api/jobs/list.json?{urlencode(query)}")).json["jobs"]
    return list(jobs)


def shown(answer: Answer) -> list[str]:
    return texts(page(answer), "//tbody/tr/td[2]")


async def test_the_tab_of_jobs_that_need_somebody_has_their_number_and_the_page_that_of_those_without_a_verdict(
    http: Http, project: int, server: RunningServer
) -> None:
    failed, good = await job(http, project), await job(http, project)
    for key, reason in ((failed, "failed"), (good, "finished")):
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": reason}])
    path, tab = f"/ui/{project}/jobs?state=attention", "//nav[@class='tabs']/a[starts-with(., 'needs attention')]"
    judged = page(
        await eventually_async(lambda: http.get(path), lambda answer: texts(page(answer), tab)[0].endswith("1"))
    )
    assert texts(judged, "//tbody/tr/td[2]") == [failed]
    store = await Store.open(server.where)
    try:
        # A row of the queue that is due in an hour: the server does not judge the job meanwhile.
        later = store.clock() + 3_600_000
        await store._engine.write(enqueue_job, JobKey.parse(good), {}, later)
        for waiting in (path, f"/ui/{project}"):
            text = page(await http.get(waiting)).text_content()
            assert "1 finished job of this project has no verdict yet" in text, waiting
        assert "no verdict yet" not in (await http.get(f"/ui/{project}/jobs")).text
    finally:
        await store._engine.write(forget_job, JobKey.parse(good))
        await store.close()


async def test_jobs_are_filtered_by_state_spider_and_tag_and_counted(http: Http, project: int) -> None:
    books = await job(http, project, spider="Books.fr", tags=["nightly"])
    more = await job(http, project, spider="cookbooks", state="pending")
    news = await job(http, project, spider="news", tags=["nightly", "eu"])
    for query, wanted in (
        ("", {books, more, news}),
        ("?spider=BOOK", {books, more}),
        ("?tag=nightly", {books, news}),
        ("?tag=nightly&spider=book", {books}),
        ("?state=pending&spider=book", {more}),
        ("?spider=%25", set()),
        ("?tag=none", set()),
        ("?state=anything", {books, more, news}),
    ):
        assert set(shown(await http.get(f"/ui/{project}/jobs{query}"))) == wanted, query
    filtered = page(await http.get(f"/ui/{project}/jobs?spider=book&state=running"))
    assert texts(filtered, "//nav[@class='tabs']/a") == [
        *("all 2", "needs attention 0", "pending 1", "running 1", "finished 0"),
    ]
    # The filter is kept by every link of the page, and the page by none of them.
    assert all("spider=book" in link for link in filtered.xpath("//nav[@class='tabs']/a/@href"))
    for long in ("a" * 300, "a%00"):
        assert (await http.get(f"/ui/{project}/jobs?spider={long}")).status == 400


async def test_several_jobs_are_stopped_at_once(http: Http, project: int) -> None:
    pending, running = await job(http, project, state="pending"), await job(http, project)
    ended = await job(http, project)
    await http.post(f"/jobq/{project}/update", [{"key": ended, "state": "finished"}])
    back = f"/ui/{project}/jobs?spider=book"
    chosen = [("job", key) for key in (pending, running, ended, pending)]
    answer = await send(http, project, "jobs", ("action", "stop"), ("back", back), *chosen)
    assert "2 jobs were asked to stop." in texts(page(answer), "//p[@role='status']")
    assert page(answer).xpath("//input[@name='spider']/@value") == ["book"]
    assert (await http.get(f"/jobs/{pending}/close_reason")).json == "cancelled"
    assert (await http.get(f"/jobs/{running}/state")).json == "running"


async def test_jobs_run_again_as_they_were(http: Http, project: int) -> None:
    same = {"spider_args": {"a": "1"}, "job_settings": {"B": 2}, "tags": ["x"], "units": 2, "priority": 3}
    keys = [await job(http, project, **same, environment={"C": "d"}, cmd_args="--e") for _ in range(2)]
    await http.post(f"/jobs/{keys[0]}", b'{"close_reason": "finished", "frameworkstats": {"a": 1}}')
    answer = await send(http, project, "jobs", ("action", "rerun"), *(("job", key) for key in keys))
    assert "2 jobs were scheduled again." in texts(page(answer), "//p[@role='status']")
    again, other = await listed(http, project)
    metadata = (await http.get(f"/jobs/{again['id']}")).json
    assert {again["id"], other["id"]}.isdisjoint(keys)
    assert {name: metadata[name] for name in same} == same
    assert (metadata["environment"], metadata["cmd_args"]) == ({"C": "d"}, "--e")
    assert "close_reason" not in metadata
    assert "frameworkstats" not in metadata


async def test_jobs_of_a_client_of_scrapyd_run_again_with_ids_of_their_own(http: Http, project: int) -> None:
    environment = {"SCRAPY_JOB": "of-a-client", "C": "d"}
    key = await job(http, project, tags=["scrapyd:of-a-client", "x"], environment=environment)
    await send(http, project, "jobs", ("action", "rerun"), ("job", key), ("job", await job(http, project)))
    (again,) = await listed(http, project, has_tag="x")
    metadata = (await http.get(f"/jobs/{again['id']}")).json
    assert (metadata["tags"], metadata["environment"]) == (["x"], {"C": "d"})


async def test_jobs_are_deleted_when_that_is_confirmed(http: Http, project: int) -> None:
    keys = [await job(http, project, state="pending", spider=f"s{n}") for n in range(2)]
    chosen = [("job", key) for key in keys]
    asked = page(await send(http, project, "jobs", ("action", "delete"), *chosen))
    assert texts(asked, "//h1") == ["Delete 2 jobs?"]
    assert len(await listed(http, project)) == 2
    form = asked.xpath("//main//form")[0]
    fields = [(each.get("name"), each.get("value")) for each in form.xpath(".//input")]
    body = urlencode([*fields, ("action", "delete")]).encode()
    gone = await http.post(form.get("action"), body, Content_Type="application/x-www-form-urlencoded")
    assert "2 jobs were deleted." in texts(page(gone), "//p[@role='status']")
    assert await listed(http, project) == []
    assert texts(page(gone), "//nav[@class='tabs']/a")[-1] == "deleted 2"
    assert set(shown(await http.get(f"/ui/{project}/jobs?state=deleted"))) == set(keys)


@pytest.mark.parametrize(
    "fields",
    [
        [("action", "stop"), ("job", "abc")],
        [("action", "stop"), ("job", "99999999/1/1")],
        [("action", "burn"), ("job", "{project}/1/1")],
        [("job", "{project}/1/1")],
    ],
    ids=["no key", "another project", "unknown", "nothing"],
)
async def test_a_form_that_no_page_has_is_refused(http: Http, project: int, fields: list[tuple[str, str]]) -> None:
    filled = [(name, value.replace("{project}", str(project))) for name, value in fields]
    answer = await send(http, project, "jobs", *filled)
    assert answer.status == 400
    assert texts(page(answer), "//h1") == ["Invalid request"]


async def confirmed(http: Http, asked: Answer) -> Answer:
    """Send the form of a page that asks for confirmation."""
    form = page(asked).xpath("//main//form")[0]
    fields = [(each.get("name"), each.get("value")) for each in form.xpath(".//input | .//button")]
    body = urlencode(fields).encode()
    return await http.post(form.get("action"), body, Content_Type="application/x-www-form-urlencoded")


async def test_an_action_on_all_that_the_filters_find_says_their_number_first(http: Http, project: int) -> None:
    pushed = [{"spider": f"book{n % 3}", "spider_args": {"n": str(n)}} for n in range(70)]
    keys = [line["key"] for line in (await http.post(f"/jobq/{project}/push", pushed)).lines]
    await http.post(f"/jobq/{project}/push", [{"spider": "news"}])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "running"} for key in keys[:2]])
    ended = [{"key": key, "state": "finished", "close_reason": "finished"} for key in keys[:20]]
    await http.post(f"/jobq/{project}/update", ended)
    document = page(await http.get(f"/ui/{project}/jobs?spider=book"))
    assert "Choose all 70 found" in texts(document, "//form[@id='several']//label")
    address = document.xpath("//form[@id='several']/@action")[0].removeprefix(f"/ui/{project}/")
    back = ("back", f"/ui/{project}/jobs?spider=book")

    asked = await send(http, project, address, ("action", "stop"), ("all", "1"), back)
    assert texts(page(asked), "//h1") == ["Stop 50 jobs?"]
    assert "The filters find 50 pending or running jobs." in page(asked).text_content()
    assert len(texts(page(asked), "//ul[@class='listed']/li")) == 21
    assert len(await listed(http, project)) == 51
    # A job of a later time is not among those that were counted.
    later = await job(http, project, spider="book1", state="pending")
    answer = await confirmed(http, asked)
    assert "50 jobs were asked to stop." in texts(page(answer), "//p[@role='status']")
    assert page(answer).xpath("//input[@name='spider']/@value") == ["book"]
    assert {each["spider"] for each in await listed(http, project)} == {"book1", "news"}
    assert (await http.get(f"/jobs/{later}/state")).json == "pending"

    outcome = "jobs?spider=book&outcome=ok"
    asked = await send(http, project, outcome, ("action", "rerun"), ("all", "1"), back)
    assert texts(page(asked), "//h1") == ["Run 20 jobs again?"]
    assert "20 jobs were scheduled again." in texts(page(await confirmed(http, asked)), "//p[@role='status']")
    arguments = [each["spider_args"]["n"] for each in await listed(http, project) if each.get("spider_args")]
    assert sorted(arguments, key=int) == [str(n) for n in range(20)]

    asked = await send(http, project, "jobs?spider=book2", ("action", "delete"), ("all", "1"), back)
    assert texts(page(asked), "//h1")[0].startswith("Delete ")
    await confirmed(http, asked)
    assert not shown(await http.get(f"/ui/{project}/jobs?spider=book2"))
    assert shown(await http.get(f"/ui/{project}/jobs?spider=book1"))
    nothing = await send(http, project, "jobs?spider=nothing", ("action", "stop"), ("all", "1"), back)
    assert texts(page(nothing), "//p[@role='status']") == ["No job was chosen."]
    assert (await send(http, project, "jobs?longer=soon", ("action", "stop"), ("all", "1"), back)).status == 400


async def test_all_jobs_of_a_page_are_chosen_by_a_link_without_scripts(http: Http, project: int) -> None:
    keys = {await job(http, project) for _ in range(3)}
    document = page(await http.get(f"/ui/{project}/jobs"))
    (link,) = document.xpath("//a[text()='Choose this page']/@href")
    chosen = page(await http.get(link))
    assert set(chosen.xpath("//input[@name='job'][@checked]/@value")) == keys
    assert chosen.xpath("//a[text()='Choose none']/@href") == [f"/ui/{project}/jobs"]


async def test_a_wrong_filter_keeps_the_others_and_is_named_as_on_the_page(http: Http, project: int) -> None:
    key = await job(http, project, tags=["nightly"])
    await job(http, project)
    for wrong, message in (
        ("longer=soon", "Took at least must be a duration, got 'soon'."),
        ("outcome=fine", "Outcome must be one of "),
        ("from=yesterday", "From must be a date, got 'yesterday'."),
        ("spider=" + "a" * 300, "Spider must be 255 characters at most"),
    ):
        answer = await http.get(f"/ui/{project}/jobs?tag=nightly&{wrong}")
        assert (answer.status, shown(answer)) == (400, [key]), wrong
        document = page(answer)
        (said,) = document.xpath("//p[@role='alert']")
        assert said.text_content().startswith(message)
        (field,) = document.xpath("//*[@aria-invalid='true']")
        assert (field.get("name"), field.get("aria-describedby")) == (wrong.partition("=")[0], said.get("id"))
        assert document.xpath("//input[@name='tag']/@value") == ["nightly"]


async def test_the_tags_of_the_project_are_suggested(http: Http, project: int) -> None:
    await http.post(f"/jobq/{project}/push", [{"spider": "a", "tags": ["nightly", f"t{n:03}"]} for n in range(120)])
    suggested = page(await http.get(f"/ui/{project}/jobs?state=running")).xpath("//datalist/option/@value")
    assert suggested == ["nightly", *(f"t{n:03}" for n in range(99))]


async def test_nothing_chosen_is_reported(http: Http, project: int) -> None:
    answer = await send(http, project, "jobs", ("action", "stop"))
    assert texts(page(answer), "//p[@role='status']") == ["No job was chosen."]


async def test_an_address_puts_no_words_of_its_own_on_a_page(http: Http, project: int) -> None:
    for query in ("done=You+won", "done=deleted&n=lots+of+money", "done=deleted&n=99999999999"):
        text = page(await http.get(f"/ui/{project}/jobs?{query}")).text_content()
        assert "won" not in text
        assert "money" not in text
        assert "99999999999" not in text


async def _finished(http: Http, project: int, reason: str, **fields: Any) -> str:
    key = await job(http, project, **fields)
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": reason}])
    return key


async def test_jobs_are_filtered_by_outcome_date_and_duration(http: Http, project: int) -> None:
    reasons = ("finished", "failed", "cancelled", "closespider_itemcount", "no_more_pages", "killed by SIGSEGV")
    keys = {reason: await _finished(http, project, reason) for reason in reasons}
    running = await job(http, project)
    for query, wanted in (
        ("outcome=ok", {"finished"}),
        ("outcome=failed", {"failed", "killed by SIGSEGV"}),
        ("outcome=cancelled", {"cancelled"}),
        ("outcome=limit", {"closespider_itemcount"}),
        ("outcome=other", {"no_more_pages"}),
        ("outcome=ok&spider=book", {"finished"}),
        ("outcome=ok&spider=none", set()),
        ("longer=1h", set()),
        ("shorter=1h", set(reasons) | {"running"}),
        ("shorter=1h&state=finished", set(reasons)),
        ("from=2020-01-01&to=2020-01-02", set()),
        ("from=2020-01-01", set(reasons) | {"running"}),
        ("to=2020-01-01", set()),
    ):
        found = set(shown(await http.get(f"/ui/{project}/jobs?{query}")))
        assert found == {{**keys, "running": running}[reason] for reason in wanted}, query
    for wrong in ("from=yesterday", "to=2026-13-01", "longer=soon", "from=9999-12-31"):
        assert (await http.get(f"/ui/{project}/jobs?{wrong}")).status == 400, wrong
    document = page(await http.get(f"/ui/{project}/jobs"))
    assert texts(document, "//tr[@class='failed']/td[4]") == ["killed by SIGSEGV", "failed"]


async def test_jobs_are_sorted_by_every_column(http: Http, project: int) -> None:
    keys = [await _finished(http, project, "finished", spider=name) for name in ("b", "c", "a")]
    for key, number in zip(keys, (2, 3, 1), strict=True):
        await http.post(f"/items/{key}", [{"n": n} for n in range(number)])
    document = page(await http.get(f"/ui/{project}/jobs"))
    for head in document.xpath("//thead//a"):
        assert len(shown(await http.get(head.get("href")))) == 3, head.text
    (items,) = [head.get("href") for head in document.xpath("//thead//a") if head.text.strip() == "Items"]
    descending = await http.get(items)
    assert shown(descending) == [keys[1], keys[0], keys[2]]
    assert page(descending).xpath("//th[@aria-sort='descending']/a/text()")[0].strip() == "Items"
    (items,) = page(descending).xpath("//th[@aria-sort]/a/@href")
    assert shown(await http.get(items)) == [keys[2], keys[0], keys[1]]
    assert shown(await http.get(f"/ui/{project}/jobs?sort=spider")) == [keys[2], keys[0], keys[1]]
    assert shown(await http.get(f"/ui/{project}/jobs?sort=changed")) == keys
    assert shown(await http.get(f"/ui/{project}/jobs?sort=nothing")) == keys[::-1]


async def test_a_sorted_list_has_pages(http: Http, project: int) -> None:
    pushed = [{"spider": f"s{n:03}", "state": "pending"} for n in range(120)]
    await http.post(f"/jobq/{project}/push", pushed)
    names: list[str] = []
    address: str | None = f"/ui/{project}/jobs?sort=spider"
    while address:
        document = page(await http.get(address))
        names += texts(document, "//tbody/tr/td[3]")
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='next']/@href")), None)
    assert names == [each["spider"] for each in pushed]
    backwards = page(await http.get(f"/ui/{project}/jobs?sort=changed&offset=100"))
    assert texts(backwards, "//tbody/tr/td[3]") == names[100:]


async def test_columns_have_arguments_warnings_monitors_queue_time_version_and_node(http: Http, project: int) -> None:
    body = b'{"name": "enough", "checks": ["items >= 2"], "enabled": true}'
    for _ in range(2):
        assert (await http.post(f"/api/projects/{project}/monitors", body)).status == 201
        body = body.replace(b"enough", b"some").replace(b">= 2", b">= 1")
    arguments = {"category": "new", "api_key": "0123456789abcdef"}
    key = await job(http, project, state="pending", spider_args=arguments, version="v7")
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "running"}])
    await http.post(f"/items/{key}", [{"a": 1}])
    await http.post(f"/logs/{key}", [{"time": 1, "level": level, "message": "m"} for level in (20, 30, 30, 40, 50)])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "finished"}])
    query = "columns=arguments.warnings.errors.monitors.queued.version.node"
    address = f"/ui/{project}/jobs?{query}"
    answer = await eventually_async(lambda: http.get(address), lambda answer: "1 of 2" in answer.text)
    titles = texts(page(answer), "//thead//th")[1:]
    row = dict(zip(titles, texts(page(answer), "//tbody/tr/td")[1:], strict=True))
    assert "0123456789abcdef" not in answer.text
    assert row.pop("Queued") != "–"
    assert row == {
        "Job": key,
        "Arguments": "api_key=••••••, category=new",
        "Warnings": "2",
        "Errors": "2",
        "Failed monitors": "1 of 2",
        "Version": "v7",
        "Node": "–",
    }


async def test_the_chosen_columns_are_remembered(server: RunningServer, http: Http, project: int) -> None:
    await job(http, project, priority=3)
    titles = texts(page(await http.get(f"/ui/{project}/jobs")), "//thead//a")
    assert titles[:3] == ["Job", "Spider", "State"]
    query = "column=spider&column=priority&column=nonsense"
    address = f"{server.url}/ui/{project}/jobs/columns?{query}&back=/ui/{project}/jobs"
    headers = {"Authorization": f"Basic {b64encode(f'{server.platform_key}:'.encode()).decode()}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(address, allow_redirects=False) as answer:
        assert answer.status == 303
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    chosen = page(await http.get(f"/ui/{project}/jobs", Cookie=cookie))
    assert texts(chosen, "//thead//a") == ["Job", "Spider", "Priority"]
    assert texts(chosen, "//tbody/tr/td")[1:] == [f"{project}/1/1", "books", "3"]
    assert chosen.xpath("//input[@name='column'][@checked]/@value") == ["job", "spider", "priority"]
    # The address shows them to others, and comes before what this browser remembers.
    assert "columns=job.spider.priority" in answer.headers["Location"]
    shared = page(await http.get(f"/ui/{project}/jobs?columns=job.state", Cookie=cookie))
    assert texts(shared, "//thead//a") == ["Job", "State"]
    for wrong in ("scrapy_ext_job_columns=;", "scrapy_ext_job_columns=x.y", 'scrapy_ext_job_columns="<b>"'):
        assert texts(page(await http.get(f"/ui/{project}/jobs", Cookie=wrong)), "//thead//a") == titles
