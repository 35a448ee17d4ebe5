"""The pages of periodic jobs, over HTTP."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.server.ui.views.periodic import next_runs
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts

FORM = {"action": "save", "cron": "30 4 * * 1", "task": "books", "priority": "3", "arguments": "category=new\npages=3"}


async def schedule(http: Http, project: int, **fields: Any) -> str:
    body = {"cron": "30 4 * * 1", "tasks": [{"name": "books"}], **fields}
    made = await http.post(f"/api/projects/{project}/periodicjobs", json.dumps(body).encode())
    assert made.status == 201, made.text
    return f"/ui/{project}/periodic/{made.json['id']}"


async def stored(http: Http, project: int) -> list[dict[str, Any]]:
    return (await http.get(f"/api/projects/{project}/periodicjobs")).json["results"]


def test_the_next_runs_follow_each_other() -> None:
    now = datetime(2026, 2, 27, 12, 30, 15, tzinfo=timezone.utc)
    job = PeriodicJob(
        id=1, project=1, disabled=False, type="", description="", cron="0 6 * * *", addtags=[], tasks=[Task(name="s")]
    )
    times = [datetime.fromtimestamp(time / 1000, timezone.utc) for time in next_runs(job, int(now.timestamp() * 1000))]
    assert [f"{time:%m-%d %H:%M}" for time in times] == ["02-28 06:00", *(f"03-0{day} 06:00" for day in (1, 2, 3, 4))]
    job.cron = "no cron"
    assert next_runs(job, 0) == []


async def test_periodic_jobs_are_listed_with_their_next_runs(http: Http, project: int) -> None:
    await schedule(http, project, description="every Monday", addtags=["nightly"])
    await schedule(http, project, disabled=True, tasks=[{"name": "py:clean.py"}, {"name": "py:b.py"}])
    document = page(await http.get(f"/ui/{project}/periodic"))
    first, second = rows(document)
    following = Cron.parse("30 4 * * 1").next_after(datetime.now(timezone.utc))
    assert following is not None
    assert first[1:3] == ["books nightly", "30 4 * * 1"]
    assert first[3].startswith(f"{following:%a %Y-%m-%d %H:%M}")
    assert len(texts(document, "//tbody/tr[1]/td[4]//div | //tbody/tr[1]/td[4]//summary")) == 5
    assert first[5] == "every Monday"
    assert second[1] == "py:clean.py, py:b.py"
    assert second[3] == "paused"


@pytest.mark.parametrize("search", ["BOOKS", "nightly", "30 4", "Monday"])
async def test_periodic_jobs_are_found_by_what_is_in_them(http: Http, project: int, search: str) -> None:
    await schedule(http, project, description="every Monday", addtags=["nightly"])
    await schedule(http, project, tasks=[{"name": "other"}], cron="0 0 * * *")
    document = page(await http.get(f"/ui/{project}/periodic?q={search.replace(' ', '+')}"))
    assert [row[1] for row in rows(document)] == ["books nightly"]


async def test_many_periodic_jobs_are_paged(http: Http, project: int) -> None:
    for _ in range(51):
        await schedule(http, project)
    document = page(await http.get(f"/ui/{project}/periodic"))
    (following,) = document.xpath("//nav[@class='pager']/a[text()='next']/@href")
    assert [row[0] for row in rows(page(await http.get(following)))] == ["51"]


async def test_a_periodic_job_is_made_and_edited(http: Http, project: int) -> None:
    path = f"/ui/{project}/periodic"
    made = await submit(http, path, {**FORM, "addtags": "a tag\nb"}, shown_at=f"{path}/new")
    assert done(made) == "The periodic job was created."
    (job,) = await stored(http, project)
    assert job["cron"] == "30 4 * * 1"
    assert job["addtags"] == ["a tag", "b"]
    task = job["tasks"][0]
    assert (task["name"], task["priority"], task["spider_args"]) == ("books", 3, {"category": "new", "pages": "3"})
    fields = {
        **FORM,
        "cron": " 0  5 1 * * ",
        "task": ["py:a.py", "py:b.py", ""],
        "priority": ["2", "4", "2"],
        "arguments": ["--all now", "", ""],
        "description": "first of the month",
        "disabled": "on",
    }
    edited = await submit(http, f"{path}/{job['id']}", fields)
    assert done(edited) == "Saved."
    (job,) = await stored(http, project)
    assert (job["cron"], job["disabled"], job["description"]) == ("0 5 1 * *", True, "first of the month")
    assert [(task["name"], task["priority"], task["script_args"]) for task in job["tasks"]] == [
        ("py:a.py", 2, "--all now"),
        ("py:b.py", 4, ""),
    ]


async def test_arguments_of_every_kind_survive_an_edit(http: Http, project: int) -> None:
    arguments = {"n": 3, "deep": {"a": [None, True]}, "text": "two\nlines", HOSTILE: HOSTILE}
    path = await schedule(http, project, tasks=[{"name": "books", "spider_args": arguments}, {"name": "plain"}])
    document = page(await http.get(path))
    shown = [area.text[1:] for area in document.xpath("//textarea[@name='arguments']")]
    fields = {**FORM, "task": ["books", "plain", ""], "priority": ["2", "2", "2"], "arguments": shown}
    await submit(http, path, fields)
    (job,) = await stored(http, project)
    assert [task["spider_args"] for task in job["tasks"]] == [arguments, {}]


async def test_arguments_that_are_secret_are_not_shown_and_survive_an_edit(http: Http, project: int) -> None:
    task = {"name": "books", "spider_args": {"api_key": "s3cret", "page": "1"}}
    path = await schedule(http, project, tasks=[task])
    answer = await http.get(path)
    assert "s3cret" not in answer.text + (await http.get(f"/ui/{project}/periodic")).text
    shown = page(answer).xpath("//textarea[@name='arguments']")[0].text[1:]
    await submit(http, path, {**FORM, "arguments": shown.replace("page=1", "page=2")})
    (job,) = await stored(http, project)
    assert job["tasks"][0]["spider_args"] == {"api_key": "s3cret", "page": "2"}
    refused = await submit(http, path, {**FORM, "task": "others", "arguments": shown})
    assert "has no value of 'api_key' to keep" in page(refused, 400).text_content()


async def test_the_command_line_of_a_script_that_has_a_secret_survives_an_edit(http: Http, project: int) -> None:
    path = await schedule(http, project, tasks=[{"name": "py:tidy.py", "script_args": "--token s3cret"}])
    answer = await http.get(path)
    assert "s3cret" not in answer.text
    shown = page(answer).xpath("//textarea[@name='arguments']")[0].text[1:]
    await submit(http, path, {**FORM, "task": "py:tidy.py", "arguments": shown})
    (job,) = await stored(http, project)
    assert job["tasks"][0]["script_args"] == "--token s3cret"


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        ({"cron": "*/5 * * * *"}, "cron", "ranges, steps and lists are not supported"),
        ({"cron": "61 4 * * *"}, "cron", "minute must be 0 to 59, got 61"),
        ({"cron": "4 * *"}, "cron", "must have five fields"),
        ({"task": ""}, None, "tasks: must be 1 to"),
        ({"arguments": "no equals sign"}, "arguments", "has on line 1 no name=value"),
        ({"arguments": '{"a": '}, "arguments", "is not JSON"),
        ({"priority": "9"}, None, "must be 0 to 4, got 9"),
        ({"priority": "high"}, None, "must be a number"),
        ({"addtags": "x" * 300}, "addtags", "tags of 1 to"),
        ({"description": "x" * 3000}, "description", "must be at most"),
    ],
    ids=["step", "range", "short", "no task", "line", "JSON", "priority", "no number", "tag", "description"],
)
async def test_what_is_wrong_is_reported_at_its_field(
    http: Http, project: int, wrong: dict[str, str], field: str | None, message: str
) -> None:
    path = f"/ui/{project}/periodic"
    fields = {**FORM, **wrong}
    if "task" in wrong:
        fields["arguments"] = ""
    document = page(await submit(http, path, fields, shown_at=f"{path}/new"), 400)
    alerts = " ".join(texts(document, "//*[@role='alert']"))
    assert message.removeprefix("tasks: ") in alerts
    assert document.xpath("//input[@name='cron']/@value") == [fields["cron"]]
    if field is not None:
        (marked,) = document.xpath(f"//*[@name='{field}'][@aria-invalid='true'][1]")[:1]
        assert document.xpath(f"//*[@id='{marked.get('aria-describedby')}']")
    assert await stored(http, project) == []


async def test_a_periodic_job_is_paused_resumed_run_and_deleted(http: Http, project: int) -> None:
    path = await schedule(http, project, addtags=["nightly"], tasks=[{"name": "books", "priority": 4}])
    listed = f"/ui/{project}/periodic"
    assert "is paused" in done(await submit(http, path, {"action": "pause", "onward": "list"}, shown_at=listed))
    assert (await stored(http, project))[0]["disabled"]
    assert "runs on schedule again" in done(await submit(http, path, {"action": "resume"}))
    assert not (await stored(http, project))[0]["disabled"]
    assert done(await submit(http, path, {"action": "run"})) == "1 job was scheduled."
    (job,) = (await http.get(f"/api/jobs/list.json?project={project}&state=pending&state=running")).json["jobs"]
    assert (job["spider"], job["priority"], job["tags"]) == ("books", 4, ["nightly"])
    assert "Nothing was scheduled" in done(await submit(http, path, {"action": "run"}))
    assert done(await submit(http, path, {"action": "delete"})) == "Deleted."
    assert await stored(http, project) == []


async def test_nothing_of_a_periodic_job_becomes_markup(http: Http, project: int) -> None:
    task = {"name": HOSTILE, "spider_args": {HOSTILE: HOSTILE}}
    path = await schedule(http, project, description=HOSTILE, addtags=[HOSTILE], tasks=[task])
    for address in (path, f"/ui/{project}/periodic", f"/ui/{project}/periodic/new"):
        assert "alert(1)" in (await http.get(address)).text
        page(await http.get(address))


async def test_what_is_not_there_is_not_found(http: Http, project: int) -> None:
    page(await http.get(f"/ui/{project}/periodic/9"), 404)


async def test_a_common_schedule_becomes_one_periodic_job_for_each_expression(http: Http, project: int) -> None:
    path = f"/ui/{project}/periodic"
    chosen = await submit(
        http, path, {**FORM, "action": "choose", "schedule": "weekdays", "at": "06:15"}, shown_at=f"{path}/new"
    )
    document = page(chosen)
    crons = [f"15 6 * * {day}" for day in range(1, 6)]
    assert document.xpath("//input[@name='cron']/@value") == crons
    assert len(texts(document, "//ol[@data-next-runs]/li")) == 5
    assert document.xpath("//input[@name='task']/@value")[0] == "books", "what was typed stays"
    assert await stored(http, project) == []
    made = await submit(http, path, {**FORM, "cron": [*crons, " "]}, shown_at=f"{path}/new")
    assert done(made) == "5 periodic jobs were created, one for each cron expression."
    assert [job["cron"] for job in await stored(http, project)] == crons


async def test_of_several_expressions_all_are_stored_or_none(http: Http, project: int) -> None:
    path = f"/ui/{project}/periodic"
    fields = {**FORM, "cron": ["0 1 * * *", "0 25 * * *", "0 2 * * *"]}
    document = page(await submit(http, path, fields, shown_at=f"{path}/new"), 400)
    assert "hour must be 0 to 23" in " ".join(texts(document, "//*[@role='alert']"))
    assert document.xpath("//input[@name='cron']/@value") == fields["cron"]
    assert await stored(http, project) == []


async def test_a_week_shows_when_schedules_run_without_paused_ones(http: Http, project: int) -> None:
    path = await schedule(http, project, cron="15 * * * *", tasks=[{"name": HOSTILE}])
    await schedule(http, project, cron="30 4 * * *", disabled=True)
    document = page(await http.get(f"/ui/{project}/periodic/week"))
    assert texts(document, "//tbody/tr/th") == [HOSTILE]
    assert texts(document, "//tbody/tr/td") == ["24×:15 every hour at minute 15"] * 7
    assert document.xpath("//tbody//a/@href") == [path] * 7
    assert texts(document, "//tfoot/tr/td") == ["24"] * 7
    assert "1 paused job is left out" in document.text_content()


async def test_the_next_runs_are_shown_without_a_script(http: Http, project: int) -> None:
    path = await schedule(http, project)
    document = page(await submit(http, path, {**FORM, "action": "preview", "cron": "0 12 24 12 *"}))
    shown = texts(document, "//ol[@data-next-runs]/li")
    assert len(shown) == 5
    assert all(text.endswith("-12-24 12:00") for text in shown)
    assert (await stored(http, project))[0]["cron"] == "30 4 * * 1", "nothing was saved"
    new = f"/ui/{project}/periodic"
    wrong = page(await submit(http, new, {**FORM, "action": "preview", "cron": "* *"}, shown_at=f"{new}/new"), 400)
    assert "must have five fields" in texts(wrong, "//*[@id='cron-wrong']")[0]


async def test_a_script_reads_the_next_runs_of_what_is_typed(http: Http, project: int) -> None:
    path = f"/ui/{project}/periodic/next"
    both = (await http.get(f"{path}?cron=0+0+1+1+*&cron=0+0+2+1+*")).json
    assert [each["text"][-11:] for each in both["next"]][:2] in (
        ["01-01 00:00", "01-02 00:00"],
        ["01-02 00:00", "01-01 00:00"],
    )
    assert len(both["next"]) == 5
    assert (await http.get(f"{path}?schedule=every-6-hours&at=07:30")).json["crons"] == [
        f"30 {hour} * * *" for hour in (1, 7, 13, 19)
    ]
    assert "must be a number or *" in (await http.get(f"{path}?cron=*/5+*+*+*+*")).json["error"]
    assert "must be a time of the day" in (await http.get(f"{path}?schedule=daily&at=noon")).json["error"]
    never = (await http.get(f"{path}?cron=0+0+30+2+*")).json
    assert (never["crons"], never["next"]) == (["0 0 30 2 *"], [])
    assert "never runs: February has no day 30" in never["error"]
    assert (await http.get(path)).json == {"crons": [], "next": [], "error": ""}
