"""The pages of monitors and alerts, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts


async def finished(http: Http, project: int, items: int, spider: str = "books") -> str:
    """Add a finished job; return its key."""
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": spider, "state": "running"}])
    key: str = pushed.json["key"]
    await http.post(f"/items/{key}", [{"name": f"item {place}"} for place in range(items)])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    return key


async def stored(http: Http, project: int) -> list[dict[str, Any]]:
    return (await http.get(f"/api/projects/{project}/monitors")).json  # type: ignore[no-any-return]


async def test_a_monitor_is_previewed_then_added_and_its_results_are_on_the_job(http: Http, project: int) -> None:
    key = await finished(http, project, 5)
    path = f"/ui/{project}/monitors"
    assert "No monitors yet." in (await http.get(path)).text
    schema = json.dumps({"required": ["price"]})
    form = {"name": "enough", "spider": "books", "checks": "items >= 10\n\nerrors == 0\n", "schema": schema}
    shown = page(await submit(http, f"{path}/new", {**form, "action": "preview"}))
    assert rows(shown)[0][1] == key
    assert "items is 5, expected at least 10" in rows(shown)[0][4]
    assert shown.xpath("//textarea[@name='checks']")[0].text.strip() == "items >= 10\n\nerrors == 0"
    assert await stored(http, project) == []
    assert done(await submit(http, f"{path}/new", {**form, "action": "add"})) == "Saved."
    (monitor,) = await stored(http, project)
    assert (monitor["checks"], monitor["enabled"]) == (["items >= 10", "errors == 0"], True)
    key = await finished(http, project, 5)
    await eventually_async(lambda: http.get(f"/api/projects/{project}/monitors/results?job={key}"), lambda a: a.json)
    job = page(await http.get(f"/ui/{key}"))
    assert texts(job, "//section[@class='job-monitors']//h3") == ["failed enough"]
    assert "items is 5, expected at least 10" in " ".join(texts(job, "//ul[@class='checks']/li"))
    assert job.xpath(f"//ul[@class='checks']//a[@href='/ui/{key}/items/0']")
    listed = page(await http.get(path))
    (failing,) = (texts(row, "./td") for row in listed.xpath("//tr[@class='failed']"))
    assert [failing[0], failing[1], failing[3]] == ["enough", "books", "1"]
    assert failing[4].startswith(f"{key} items is 5, expected at least 10")
    one = page(await http.get(f"{path}/{monitor['id']}"))
    assert key in [row[1] for row in rows(one) if len(row) > 1]
    fields = {"action": "disable", "number": monitor["id"]}
    assert done(await submit(http, path, fields)) == "Saved."
    assert (await stored(http, project))[0]["enabled"] is False
    assert done(await submit(http, path, {**fields, "action": "remove"})) == "Deleted."
    assert await stored(http, project) == []
    assert (await http.get(f"{path}/{monitor['id']}")).status == 404


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "or schema or expect is required"),
        ({"checks": "pages >= 1"}, "has no measure 'pages'"),
        ({"schema": "{"}, "is not JSON"),
        ({"schema": '{"type": 7}'}, "is not a JSON Schema"),
        ({"checks": "items >= 1", "args": "country"}, "Write one name=value per line."),
        ({"expect": "soon", "spider": "books"}, "must be hours (24h)"),
    ],
)
async def test_wrong_input_is_explained_beside_its_field_and_kept(
    http: Http, project: int, fields: dict[str, str], wrong: str
) -> None:
    path = f"/ui/{project}/monitors/new"
    form = {"name": HOSTILE, **fields}
    for action in ("preview", "add"):
        answer = page(await submit(http, path, {**form, "action": action}), 400)
        assert wrong in " ".join(texts(answer, "//p[@class='wrong']"))
        assert answer.xpath("//input[@name='name']/@value") == [HOSTILE]
    assert await stored(http, project) == []


async def test_targets_are_added_tried_and_removed_and_their_addresses_never_shown(http: Http, project: int) -> None:
    path = f"/ui/{project}/monitors"
    form = {"action": "target-add", "name": "on-call", "url": "json://127.0.0.1:9/a-secret"}
    assert done(await submit(http, path, form)) == "Saved."
    answer = await submit(http, path, {"action": "target-test", "number": 1})
    assert done(answer) == "The test is sent. The last messages of the target have its outcome."
    tried = await eventually_async(lambda: http.get(f"{path}?part=alerts"), lambda found: "Send again" in found.text)
    assert "a-secret" not in tried.text
    assert "json://***" in tried.text
    assert "its address is not public" in tried.text
    (message,) = page(tried).xpath("//form[button='Send again']/input[@name='message']/@value")
    again = await submit(http, path, {"action": "target-resend", "number": 1, "message": message})
    assert done(again) == "It is sent again. Its outcome appears below."
    (sent,) = (await http.get(f"/api/projects/{project}/alerts/1/messages")).json
    assert str(sent["id"]) == message
    refused = page(await submit(http, path, {**form, "url": "syslog://a-secret"}), 400)
    assert "has the scheme syslog, which is not supported" in " ".join(texts(refused, "//p[@class='wrong']"))
    assert done(await submit(http, path, {"action": "target-remove", "number": 1})) == "Deleted."
    for action in ("target-test", "target-resend"):
        missing = await submit(http, path, {"action": action, "number": 1, "message": message})
        assert missing.status == 404


async def test_foreign_text_is_shown_as_text(http: Http, project: int) -> None:
    body = {"name": HOSTILE, "checks": ["items >= 10"], "schema": {"title": HOSTILE}, "enabled": True}
    made = await http.post(f"/api/projects/{project}/monitors", json.dumps(body).encode())
    key = await finished(http, project, 1, HOSTILE)
    await eventually_async(lambda: http.get(f"/api/projects/{project}/monitors/results?job={key}"), lambda a: a.json)
    of_project = f"/ui/{project}/monitors"
    for path in (of_project, f"{of_project}?part=results", f"{of_project}/{made.json['id']}", f"/ui/{key}"):
        assert HOSTILE in " ".join(texts(page(await http.get(path)), "//main"))


async def test_the_activity_names_who_changed_monitors_and_targets(http: Http, project: int) -> None:
    path = f"/ui/{project}/monitors"
    await submit(http, f"{path}/new", {"name": "enough", "checks": "items >= 1", "action": "add"})
    (monitor,) = await stored(http, project)
    await submit(http, path, {"action": "target-add", "name": "on-call", "url": "json://127.0.0.1:9/secret-token"})
    (target,) = (await http.get(f"/api/projects/{project}/alerts")).json
    for action in ("target-test", "target-disable", "target-remove"):
        await submit(http, path, {"action": action, "number": target["id"]})
    await submit(http, path, {"action": "remove", "number": monitor["id"]})
    target = json.dumps({"name": "b", "url": "json://127.0.0.1:9/secret-token"}).encode()
    added = await http.post(f"/api/projects/{project}/alerts", target)
    await http.delete(f"/api/projects/{project}/alerts/{added.json['id']}")
    answer = await http.get(f"/activity/{project}")
    assert "secret-token" not in answer.text
    changes = [each for each in answer.lines if each["event"].partition(":")[0] in ("rule", "alert-target")]
    assert {each["user"] for each in changes} == {"api"}
    assert [each["event"] for each in reversed(changes)] == [
        "rule:created",
        "alert-target:created",
        "alert-target:changed",
        "alert-target:removed",
        "rule:removed",
        "alert-target:created",
        "alert-target:removed",
    ]


async def test_a_job_with_a_verdict_says_who_is_alerted_if_it_happens_again(http: Http, project: int) -> None:
    key = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])).json["key"]
    failed = {"key": key, "state": "finished", "close_reason": "start_error"}
    await http.post(f"/jobq/{project}/update", [failed])
    await eventually_async(lambda: http.get(f"/ui/{key}"), lambda answer: "it failed: start_error" in answer.text)

    async def alerted() -> str:
        (text,) = texts(page(await http.get(f"/ui/{key}")), "//section[@aria-label='Verdict']/p")
        return text

    assert await alerted() == "Nobody is alerted if this happens again: no monitor covers such jobs. Add a monitor"
    for name, spider in (("enough", "books"), ("others", "news")):
        monitor = {"name": name, "spider": spider, "checks": ["items >= 1"], "enabled": True}
        await http.post(f"/api/projects/{project}/monitors", json.dumps(monitor).encode())
    nobody = "Nobody is alerted when a monitor of such jobs fails (enough): no target of alerts is enabled."
    assert await alerted() == f"{nobody} Targets of alerts"
    target = json.dumps({"name": "on-call", "url": "json://127.0.0.1:9/a"}).encode()
    number = (await http.post(f"/api/projects/{project}/alerts", target)).json["id"]
    expected = "on-call is alerted when a monitor of such jobs begins to fail, and reminded while it fails: enough."
    assert await alerted() == f"{expected} Targets of alerts"
    unreached = "//section[@aria-label='Verdict']/p[@class='wrong']"
    assert (await http.post(f"/api/projects/{project}/alerts/{number}/test", b"")).status == 202
    document = page(
        await eventually_async(lambda: http.get(f"/ui/{key}"), lambda answer: "The last message to" in answer.text)
    )
    (text,) = texts(document, unreached)
    assert text.startswith("The last message to on-call was not accepted: ")
    assert texts(document, "//section[@aria-label='Verdict']/p") == [f"{expected} Targets of alerts", text]
    await submit(http, f"/ui/{project}/monitors", {"action": "target-disable", "number": number})
    assert await alerted() == f"{nobody} Targets of alerts"
