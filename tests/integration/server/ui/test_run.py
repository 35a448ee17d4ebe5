"""The form that runs a spider, and runs a job again, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.versions import SpiderArgument, SpiderInfo
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.versions import NewVersion
from tests.support.http import Answer, Http
from tests.support.page_forms import HOSTILE, done, page, submit, texts
from tests.support.servers import RunningServer


async def run(http: Http, project: int, **fields: Any) -> Answer:
    return await submit(http, f"/ui/{project}/jobs/run", fields)


async def listed(http: Http, project: int, without: str = "") -> list[dict[str, Any]]:
    """All jobs but one: those of a version without code fail at once."""
    jobs = (await http.get(f"/api/jobs/list.json?project={project}")).json["jobs"]
    return [each for each in jobs if each["id"] != without]


async def metadata(http: Http, key: str, *names: str) -> dict[str, Any]:
    found = (await http.get(f"/jobs/{key}")).json
    return {name: found.get(name) for name in names}


def fields_of(document: Any) -> dict[str, str]:
    """The fields of the form, as a browser without scripts sends them."""
    (form,) = document.xpath("//form[@data-run]")
    return {name: value for name, value in form.form_values() if name != "token"}


async def deploy(server: RunningServer, project: int, version: str, *spiders: SpiderInfo) -> None:
    store = await Store.open(server.where)
    try:
        number = await store.versions.begin(project, NewVersion(version, "egg", "", 4, "f" * 64, ""), "me")
        await store.versions.put(project, number, 0, b"code")
        await store.versions.arrived(project, number)
        await store.versions.ready(project, number, list(spiders))
    finally:
        await store.close()


NOVELS = SpiderInfo(
    "novels",
    [
        SpiderArgument("category", required=True, annotation="Literal['old', 'new']", help="<b> of novels"),
        SpiderArgument("pages", default="3", annotation="int", help="at most"),
        SpiderArgument("token"),
    ],
    "Reads novels <all>.",
)


async def test_a_form_starts_a_spider_with_all_that_run_json_takes(http: Http, project: int) -> None:
    answer = await run(
        http,
        project,
        spider="books",
        arguments="category = new\r\nurl=http://a.example/?a=b\r\n\r\n",
        priority="4",
        units="3",
        job_workers="4..32",
        tags="nightly, eu,nightly",
        timeout="60",
        job_settings='{"CLOSESPIDER_ITEMCOUNT": 3}',
        environment='{"A": "b"}',
        node_tags="gpu",
        meta='{"owner": "me"}',
    )
    assert "The job is scheduled. This is its page." in page(answer).text_content()
    (found,) = await listed(http, project)
    expected = {
        "spider": "books",
        "spider_args": {"category": "new", "url": "http://a.example/?a=b"},
        "priority": 4,
        "units": 3,
        "job_workers": "4..32",
        "tags": ["nightly", "eu"],
        "job_settings": {"CLOSESPIDER_ITEMCOUNT": 3, "PLATFORM_JOB_TIMEOUT": 60},
        "environment": {"A": "b"},
        "node_tags": ["gpu"],
        "owner": "me",
        "scheduled_by": "api",
    }
    assert await metadata(http, found["id"], *expected) == expected


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("spider", "", "must be 1 to 255 characters"),
        ("arguments", "category", "has on line 1 no name=value"),
        ("arguments", "a=1\nspider=b", "has spider, which is no argument"),
        ("arguments", "a=1\na=2", "has a twice"),
        ("priority", "9", "must be 0 to 4, got 9"),
        ("units", "many", "must be a whole number"),
        ("job_workers", "many", "must be a number of workers from 1 to 256"),
        ("tags", "a" * 300, "must be 1 to 255 characters"),
        ("job_settings", "{", "is not JSON"),
        ("job_settings", "[1]", "must be a JSON object"),
        ("job_settings", '{"PLATFORM_URL": 1}', "has PLATFORM_URL, which is set by the node"),
        ("timeout", "soon", "must be a number of seconds"),
        ("environment", '{"A=B": "1"}', "has A=B, which cannot be the name of an environment variable"),
        ("node_tags", "a" * 300, "must be 1 to 255 characters"),
        ("meta", '{"priority": 1}', "has priority, which is no part of it here"),
        ("meta", '{"state": "gone"}', "has state, which must be one of pending"),
    ],
    ids=range(16),
)
async def test_what_is_wrong_is_reported_at_its_field_and_what_was_typed_stays(
    http: Http, project: int, field: str, typed: str, message: str
) -> None:
    fields = {"spider": "books", "arguments": "keep=me", "priority": "2", "units": "1", "tags": "kept", field: typed}
    answer = await run(http, project, **fields)
    document = page(answer, 400)
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
        answer = await run(http, project, spider="books", arguments="a=1")
        assert answer.status == wanted
    assert "is pending or running with these arguments already" in answer.text
    assert len(await listed(http, project)) == 1


async def test_a_spider_of_the_deployed_version_has_a_field_for_each_argument(
    server: RunningServer, http: Http, project: int
) -> None:
    await deploy(server, project, "v1", NOVELS, SpiderInfo("poems", [SpiderArgument("poet")], custom=False))
    form = page(await http.get(f"/ui/{project}/jobs/run"))
    assert form.xpath("//datalist[@id='spiders']/option/@value") == ["novels", "poems"]
    assert texts(form, "//main//details/ul/li")[0] == "novels Reads novels <all>."
    (link,) = form.xpath("//main//a[text()='novels']/@href")
    form = page(await http.get(link))
    assert texts(form, "//fieldset//label") == ["category required", "pages int", "token"]
    assert texts(form, "//fieldset//p[@class='hint']") == ["<b> of novels", "at most Default: 3.", ""]
    assert texts(form, "//fieldset//select/option") == ["choose one", "old", "new"]
    # An argument that is empty is not given, and a spider that takes no others offers none.
    answer = await run(http, project, **{**fields_of(form), "argument.category": "old"})
    assert done(answer) == "The job is scheduled. This is its page."
    (job,) = await listed(http, project)
    assert job["spider_args"] == {"category": "old"}
    poems = page(await submit(http, f"/ui/{project}/jobs/run", {"spider": "poems", "action": "show"}))
    assert "argument.poet" in fields_of(poems)
    assert "arguments" not in fields_of(poems)
    refused = page(await run(http, project, spider="novel"), 400)
    assert "'novel' is no spider of version v1" in refused.xpath("//*[@id='spider-hint']")[0].text_content()


async def test_arguments_that_the_code_does_not_take_are_reported_and_may_be_sent_all_the_same(
    server: RunningServer, http: Http, project: int
) -> None:
    await deploy(server, project, "v1", NOVELS)
    fields = {"spider": "novels", "argument.pages": "many", "tags": "kept"}
    form = page(await run(http, project, **fields), 400)
    assert texts(form, "//fieldset//p[@class='wrong']") == [
        "category is required: the spider has no default for it. Write category=VALUE.",
        "pages must be a whole number, got 'many'. Write such a value.",
    ]
    assert (fields_of(form)["argument.pages"], fields_of(form)["tags"]) == ("many", "kept")
    assert await listed(http, project) == []
    await run(http, project, **fields_of(form), anyway="1")
    (job,) = await listed(http, project)
    assert job["spider_args"] == {"pages": "many"}


async def test_what_earlier_runs_were_given_is_offered_without_secrets(http: Http, project: int) -> None:
    for page_number in ("1", "2"):
        arguments = {"page": page_number, "api_key": "s3cret", HOSTILE: HOSTILE, "text": "two\nlines"}
        await http.post(f"/jobq/{project}/push", [{"spider": "books", "spider_args": arguments}])
    answer = await http.get(f"/ui/{project}/jobs/run?spider=books")
    assert "s3cret" not in answer.text
    form = page(answer)
    assert sorted(texts(form, "//fieldset//label")) == sorted(["page", "api_key", HOSTILE, "text"])
    (first,) = form.xpath("//input[@name='argument.page']")
    assert form.xpath(f"//datalist[@id='{first.get('list')}']/option/@value") == ["2", "1"]
    assert first.value == ""
    assert len(form.xpath("//details/ul/li/span/a[contains(@href, 'again=')]")) == 2


async def test_run_again_opens_the_form_of_the_job_and_leads_to_the_new_one(
    server: RunningServer, http: Http, project: int
) -> None:
    for version in ("v1", "v2"):
        await deploy(server, project, version, SpiderInfo("books"))
    given = {
        "spider_args": {"page": "1", "api_key": "s3cret", "text": "two\nlines", "empty": "", "n": 5},
        "job_settings": {"A": 2, "TOKEN": "s3cret", "PLATFORM_JOB_TIMEOUT": 60},
        "environment": {"LEVEL": "s3cret"},
        "node_tags": ["gpu"],
        "tags": ["x", "a, b"],
        "units": 2,
        "priority": 3,
        "mine": [1],
        "my_token": "s3cret",
    }
    job = {"spider": "books", **given, "version": "v1", "state": "running"}
    key = (await http.post(f"/jobq/{project}/push", [job])).lines[0]["key"]
    (again,) = page(await http.get(f"/ui/{key}")).xpath("//a[text()='Run again…']/@href")
    answer = await http.get(again)
    assert "s3cret" not in answer.text
    fields = fields_of(page(answer))
    assert (fields["version"], fields["timeout"], fields["argument.page"]) == ("", "60", "1")
    assert texts(page(answer), "//select[@name='version']/option") == ["current (v2)", "v2", "v1 (of the earlier job)"]
    assert json.loads(fields["arguments"]) == {"text": "two\nlines", "empty": ""}
    assert json.loads(fields["meta"]) == {"mine": [1], "my_token": "••••••"}
    answer = await run(http, project, **{**fields, "argument.page": "2"})
    assert done(answer) == "The new job is scheduled. This is its page."
    (new,) = await listed(http, project, key)
    assert texts(page(answer), "//nav[@class='crumbs']/span[@class='key']") == [new["id"]]
    expected = {**given, "spider_args": {**given["spider_args"], "page": "2"}, "version": "v2", "mine": [1]}
    assert await metadata(http, new["id"], *expected) == expected
    # The earlier version is run when it is chosen.
    await run(http, project, **{**fields, "argument.page": "3", "version": "v1"})
    assert (await listed(http, project, key))[0]["spider_args"]["page"] == "3"
    assert await metadata(http, (await listed(http, project, key))[0]["id"], "version") == {"version": "v1"}
    # Several jobs of the list run again as one does.
    other = (await http.post(f"/jobq/{project}/push", [{**job, "frontier": "pushed"}])).lines[0]["key"]
    await submit(http, f"/ui/{project}/jobs", {"action": "rerun", "job": [key, other]})
    for each in (await listed(http, project, key))[:2]:
        expected = {**given, "version": "v2", "spider_type": "manual", "frontier": None}
        assert await metadata(http, each["id"], *expected) == expected
    # One job that is chosen in the list leads to the same form.
    answer = await submit(http, f"/ui/{project}/jobs", {"action": "rerun", "job": key})
    assert fields_of(page(answer)) == fields
    await http.post("/api/jobs/delete.json", f"project={project}&job={key}".encode())
    assert page(await http.get(again), 404) is not None
    assert page(await run(http, project, **fields), 404) is not None


async def arguments(http: Http, answer: Answer) -> object:
    """The arguments of the job whose page is the answer to the form."""
    (key,) = texts(page(answer), "//nav[@class='crumbs']/span[@class='key']")
    return (await metadata(http, key, "spider_args"))["spider_args"]


TYPED: dict[str, Any] = {
    "n": -5,
    "big": 2**53,
    "rate": 0.5,
    "on": True,
    "none": None,
    "unknown": None,
    "snow": "☃ ü",
    "digits": "007",
    "text": "two\nlines",
    "ids": [1, "é", None],
    "odd": ["two\u2028lines"],
    "map": {"a": [1.5]},
    "level": 2,
    "word": "true",
}


async def test_arguments_keep_their_types_in_another_run(server: RunningServer, http: Http, project: int) -> None:
    level = SpiderArgument("level", annotation="Literal[1, 2, True]")
    await deploy(server, project, "v1", SpiderInfo("books", [level, SpiderArgument("none", annotation="int | None")]))
    job = {"spider": "books", "spider_args": TYPED, "state": "running"}
    key = (await http.post(f"/jobq/{project}/push", [job])).lines[0]["key"]
    fields = fields_of(page(await http.get(f"/ui/{project}/jobs/run?again={key}")))
    # One of several lines has no control of its own.
    assert ("argument.text" in fields, json.loads(fields["arguments"])["text"]) == (False, TYPED["text"])
    await run(http, project, **fields)
    for typed, wanted in (({}, TYPED), ({"argument.none": "3", "argument.n": "7"}, {**TYPED, "none": 3, "n": 7})):
        answer = await run(http, project, **{**fields, "argument.digits": "008", **typed})
        assert done(answer) == "The new job is scheduled. This is its page."
        assert await arguments(http, answer) == {**wanted, "digits": "008"}
    # A form that is not filled from a job keeps the types of the last run; null has none but that of its annotation.
    new = {"argument.n": "9", "argument.on": "False", "argument.unknown": "4"}
    assert await arguments(http, await run(http, project, spider="books", **new)) == {
        "n": 9,
        "on": False,
        "unknown": "4",
    }
    answer = await run(http, project, spider="books", arguments="n=10\nids=[2]", **{"argument.level": "True"})
    assert await arguments(http, answer) == {"n": 10, "ids": [2], "level": "True"}


async def test_a_value_of_another_type_is_reported_at_its_field(http: Http, project: int) -> None:
    job = {"spider": "books", "spider_args": TYPED, "state": "running"}
    key = (await http.post(f"/jobq/{project}/push", [job])).lines[0]["key"]
    changed = {"n": "many", "big": "1e3", "rate": "1.50", "on": "perhaps", "ids": "[1", "map": "[]"}
    given = {f"argument.{name}": value for name, value in changed.items()}
    form = page(await run(http, project, spider="books", again=key, **given), 400)
    words = {"on": "true or false", "ids": "a JSON array", "map": "a JSON object"}
    assert texts(form, "//fieldset//p[@class='wrong']") == [
        f"{name} was {word} in the earlier run, which {value!r} is not. Write {word} as in JSON."
        for name, value in changed.items()
        for word in (words.get(name, "a number"),)
    ]
    assert await listed(http, project, key) == []
    lines = page(await run(http, project, spider="books", again=key, arguments="n=many"), 400)
    assert "was a number in the earlier run" in texts(lines, "//*[@id='arguments-hint']")[0]
    # It is sent as text, or in JSON with any type.
    answer = await run(http, project, spider="books", again=key, **given, anyway="1")
    assert await arguments(http, answer) == changed
    answer = await run(http, project, spider="books", again=key, arguments='{"n": "many", "big": [1]}')
    assert await arguments(http, answer) == {"n": "many", "big": [1]}


async def test_a_hidden_value_without_a_job_to_take_it_from_is_refused(http: Http, project: int) -> None:
    answer = await run(http, project, spider="books", arguments="api_key=••••••")
    assert "has no value of 'api_key' to keep. Write the value." in page(answer, 400).text_content()


async def test_the_form_becomes_that_of_a_periodic_job(http: Http, project: int) -> None:
    fields = {"spider": "books", "argument.page": "1", "arguments": "more=2", "tags": "x, y", "priority": "4"}
    form = page(await run(http, project, **fields, action="schedule"))
    assert texts(form, "//h1") == ["New periodic job"]
    sent: dict[str, Any] = {"action": "save"}
    for name, value in form.forms[-1].form_values():
        sent.setdefault(name, []).append(value)
    assert done(await submit(http, f"/ui/{project}/periodic", sent)) == "The periodic job was created."
    (job,) = (await http.get(f"/api/projects/{project}/periodicjobs")).json["results"]
    (task,) = job["tasks"]
    assert (task["name"], task["spider_args"], task["priority"]) == ("books", {"page": "1", "more": "2"}, 4)
    assert job["addtags"] == ["x", "y"]
    refused = page(await run(http, project, **fields, units="2", timeout="9", action="schedule"), 400)
    for field in ("units", "timeout"):
        assert "cannot be given to a periodic job" in texts(refused, f"//*[@id='{field}-hint']")[0]
