"""Actions of the jobs page: filter, run, stop, run again, delete."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from scrapy_ext.api.platform.versions import SpiderArgument, SpiderInfo
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.versions.versions import NewVersion
from tests.integration.server.ui.test_pages import job, page, texts
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
    assert texts(filtered, "//nav[@class='tabs']/a") == ["all 2", "pending 1", "running 1", "finished 0"]
    # The filter is kept by every link of the page, and the page by none of them.
    assert all("spider=book" in link for link in filtered.xpath("//nav[@class='tabs']/a/@href"))
    for long in ("a" * 300, "a%00"):
        assert (await http.get(f"/ui/{project}/jobs?spider={long}")).status == 400


async def test_a_form_starts_a_spider_with_all_that_run_json_takes(http: Http, project: int) -> None:
    answer = await send(
        http,
        project,
        "jobs/run",
        ("spider", "books"),
        ("arguments", "category = new\r\nurl=http://a.example/?a=b\r\n\r\n"),
        ("priority", "4"),
        ("units", "3"),
        ("tags", "nightly, eu,nightly"),
        ("job_settings", '{"CLOSESPIDER_ITEMCOUNT": 3}'),
    )
    assert "The job is scheduled." in page(answer).text_content()
    (found,) = await listed(http, project)
    metadata = (await http.get(f"/jobs/{found['id']}")).json
    assert {name: metadata.get(name) for name in ("spider", "spider_args", "priority", "units", "tags")} == {
        "spider": "books",
        "spider_args": {"category": "new", "url": "http://a.example/?a=b"},
        "priority": 4,
        "units": 3,
        "tags": ["nightly", "eu"],
    }
    assert metadata["job_settings"] == {"CLOSESPIDER_ITEMCOUNT": 3}
    assert metadata["scheduled_by"] == "api"


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("spider", "", "must be 1 to 255 characters"),
        ("arguments", "category", "has on line 1 no name=value"),
        ("arguments", "a=1\nspider=b", "has on line 2 spider, which is no argument"),
        ("arguments", "a=1\na=2", "has a twice"),
        ("priority", "9", "must be 0 to 4, got 9"),
        ("units", "many", "must be a whole number"),
        ("tags", "a" * 300, "must be 1 to 255 characters"),
        ("job_settings", "{", "is not JSON"),
        ("job_settings", "[1]", "must be a JSON object"),
    ],
    ids=range(9),
)
async def test_what_is_wrong_is_reported_at_its_field_and_what_was_typed_stays(
    http: Http, project: int, field: str, typed: str, message: str
) -> None:
    fields = {"spider": "books", "arguments": "keep=me", "priority": "2", "units": "1", "tags": "kept", field: typed}
    answer = await send(http, project, "jobs/run", *fields.items())
    assert answer.status == 400
    document = page(answer)
    (beside,) = document.xpath(f"//*[@id='{field}-hint']")
    assert message in beside.text_content()
    (input_of,) = document.xpath(f"//*[@id='{field}']")
    assert (input_of.get("aria-invalid"), input_of.get("aria-describedby")) == ("true", f"{field}-hint")
    kept = {
        "spider": document.xpath("//input[@id='spider']/@value")[0],
        "arguments": document.xpath("//textarea[@id='arguments']")[0].text_content().strip("\n"),
        "tags": document.xpath("//input[@id='tags']/@value")[0],
        "job_settings": document.xpath("//textarea[@id='job_settings']")[0].text_content().strip("\n"),
    }
    assert all(kept[name] == fields.get(name, "") for name in kept)
    assert await listed(http, project) == []


async def test_a_job_that_waits_or_runs_already_is_reported(http: Http, project: int) -> None:
    for wanted in (200, 400):
        answer = await send(http, project, "jobs/run", ("spider", "books"), ("arguments", "a=1"))
        assert answer.status == wanted
    assert "is pending or running with these arguments already" in answer.text
    assert len(await listed(http, project)) == 1


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


async def test_a_job_runs_again_as_it_was(http: Http, project: int) -> None:
    same = {"spider_args": {"a": "1"}, "job_settings": {"B": 2}, "tags": ["x"], "units": 2, "priority": 3}
    key = await job(http, project, **same, environment={"C": "d"}, cmd_args="--e")
    await http.post(f"/jobs/{key}", b'{"close_reason": "finished", "frameworkstats": {"a": 1}}')
    answer = await send(http, project, "jobs", ("action", "rerun"), ("job", key))
    assert "1 job was scheduled again." in texts(page(answer), "//p[@role='status']")
    (again,) = await listed(http, project)
    metadata = (await http.get(f"/jobs/{again['id']}")).json
    assert again["id"] != key
    assert {name: metadata[name] for name in same} == same
    assert (metadata["environment"], metadata["cmd_args"]) == ({"C": "d"}, "--e")
    assert "close_reason" not in metadata
    assert "frameworkstats" not in metadata


async def test_a_job_of_a_client_of_scrapyd_runs_again_with_an_id_of_its_own(http: Http, project: int) -> None:
    environment = {"SCRAPY_JOB": "of-a-client", "C": "d"}
    key = await job(http, project, tags=["scrapyd:of-a-client", "x"], environment=environment)
    await send(http, project, "jobs", ("action", "rerun"), ("job", key))
    (again,) = await listed(http, project)
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


async def test_nothing_chosen_is_reported(http: Http, project: int) -> None:
    answer = await send(http, project, "jobs", ("action", "stop"))
    assert texts(page(answer), "//p[@role='status']") == ["No job was chosen."]


async def test_an_address_puts_no_words_of_its_own_on_a_page(http: Http, project: int) -> None:
    for query in ("done=You+won", "done=deleted&n=lots+of+money", "done=deleted&n=99999999999"):
        text = page(await http.get(f"/ui/{project}/jobs?{query}")).text_content()
        assert "won" not in text
        assert "money" not in text
        assert "99999999999" not in text


async def test_spiders_of_the_deployed_version_are_offered_and_others_refused(
    server: RunningServer, http: Http, project: int
) -> None:
    waits = await job(http, project, state="pending")
    assert "no version of the project is deployed" in page(await http.get(f"/ui/{waits}")).text_content()
    store = await Store.open(server.where)
    try:
        deploy = await store.versions.begin(project, NewVersion("v1", "egg", "", 4, "f" * 64, ""), "me")
        await store.versions.put(project, deploy, 0, b"code")
        await store.versions.arrived(project, deploy)
        pages = SpiderArgument("pages", default="3", help="<b> at most")
        arguments = [SpiderArgument("category", required=True), pages]
        await store.versions.ready(project, deploy, [SpiderInfo("novels", arguments, "Reads novels <all>.")])
    finally:
        await store.close()
    form = page(await http.get(f"/ui/{project}/jobs/run"))
    assert form.xpath("//datalist/option/@value") == ["novels"]
    shown = "novels category (required) pages=3 Reads novels <all>. pages <b> at most"
    assert texts(form, "//main//details/ul/li") == [shown]
    answer = await send(http, project, "jobs/run", ("spider", "novel"))
    (message,) = page(answer).xpath("//*[@id='spider-hint']")
    assert "'novel' is no spider of version v1" in message.text_content()
    assert "Use one of novels" in message.text_content()


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
    for wrong in ("scrapy_ext_job_columns=;", "scrapy_ext_job_columns=x.y", 'scrapy_ext_job_columns="<b>"'):
        assert texts(page(await http.get(f"/ui/{project}/jobs", Cookie=wrong)), "//thead//a") == titles
