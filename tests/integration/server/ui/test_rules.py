"""The pages of rules of retention and of delivery, over HTTP."""

from __future__ import annotations

from typing import Any

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts
from tests.support.servers import RunningServer

#: Nothing is old enough for it, so that the rule removes nothing when it is enabled.
FORM = {"what": ["items", "logs"], "spider": "books", "older_than": "3000"}


async def finished(http: Http, project: int, items: int) -> str:
    """Add a finished job; return its key."""
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
    key: str = pushed.json["key"]
    await http.post(f"/items/{key}", [{"name": f"item {place}"} for place in range(items)])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    return key


async def stored(http: Http, project: int, name: str = "retention") -> list[dict[str, Any]]:
    return (await http.get(f"/api/projects/{project}/{name}")).json  # type: ignore[no-any-return]


def fields(document: Any) -> dict[str, Any]:
    """The hidden field that stands for what a preview was shown for."""
    return {"previewed": document.xpath("//input[@name='previewed']/@value")[0]}


async def test_a_rule_is_added_and_enabled_only_with_what_its_preview_has_shown(http: Http, project: int) -> None:
    old, new = await finished(http, project, 3), await finished(http, project, 2)
    path = f"/ui/{project}/retention/new"
    form = {"what": ["items"], "keep_last": "1"}
    unseen = page(await submit(http, path, {**form, "action": "add"}))
    assert "Add and enable" in texts(unseen, "//main//button")
    assert await stored(http, project) == []
    shown = page(await submit(http, path, {**form, "action": "preview"}))
    preview = " ".join(texts(shown, "//section[@aria-label='Preview']/p"))
    assert (
        "removes items of jobs, beyond the newest one of each spider. Now this is the data of 1 job: 3 rec" in preview
    )
    assert [row[0] for row in rows(shown)] == [old]
    assert shown.xpath("//input[@name='what'][@checked]/@value") == ["items"]
    other = page(await submit(http, path, {**form, "keep_last": "2", **fields(shown), "action": "add"}))
    assert "data of 0 jobs" in " ".join(texts(other, "//section[@aria-label='Preview']/p"))
    assert await stored(http, project) == []
    assert done(await submit(http, path, {**form, **fields(shown), "action": "add"})) == "Saved."
    (rule,) = await stored(http, project)
    assert (rule["what"], rule["keep_last"], rule["enabled"]) == (["items"], 1, True)
    assert new not in (await http.get(f"/ui/{project}/retention")).text


async def test_a_rule_is_enabled_from_its_preview_disabled_and_removed(http: Http, project: int) -> None:
    key = await finished(http, project, 3)
    path = f"/ui/{project}/retention"
    await submit(http, f"{path}/new", {**FORM, "action": "off"})
    listed = page(await http.get(path))
    assert rows(listed)[0][1:5] == ["project", "off", "items and logs of jobs of spider books", "older than 3000 days"]
    assert listed.xpath(f"//td[@class='does']/a[@href='{path}/1']")
    one = page(await http.get(f"{path}/1"))
    assert "Now this is the data of 0 jobs" in " ".join(texts(one, "//main/p"))
    assert key in (await http.get(f"{path}/1")).text
    for action, enabled in (("enable", True), ("disable", False)):
        assert done(await submit(http, path, {"action": action, "number": "1"}, shown_at=f"{path}/1")) == "Saved."
        assert (await stored(http, project))[0]["enabled"] is enabled
    assert done(await submit(http, path, {"action": "remove", "number": "1"})) == "Deleted."
    page(await http.get(f"{path}/1"), 404)
    page(await submit(http, path, {"action": "remove", "number": "1"}, shown_at=f"{path}/new"), 404)
    page(await submit(http, path, {"action": "explode", "number": "1"}, shown_at=f"{path}/new"), 400)
    messages = (await http.get(f"/activity/{project}")).lines
    changes = [each["event"] for each in messages if each.get("purpose") == "retention"]
    assert changes == ["rule:removed", "rule:changed", "rule:changed", "rule:created"]


async def test_faults_of_a_new_rule_are_at_their_fields(http: Http, project: int) -> None:
    path = f"/ui/{project}/retention/new"
    shown = page(await submit(http, path, {"action": "preview", "older_than": HOSTILE, "keep_last": "0"}), 400)
    for field, message in (
        ("what", "must be an array of some of jobs"),
        ("older_than", "must be a whole number of days"),
        ("keep_last", "must be a whole number of jobs"),
    ):
        assert message in texts(shown, f"//*[@id='{field}-wrong']")[0]
    assert shown.xpath("//input[@name='older_than']/@value") == [HOSTILE]
    nowhere = {"action": "preview", "target": "file:///nowhere", "what": ["items"], "compression": "zst"}
    refused = page(await submit(http, f"/ui/{project}/deliveries/new", nowhere), 400)
    assert "is not one that this server may deliver to" in texts(refused, "//*[@id='target-wrong']")[0]
    assert refused.xpath("//select/option[@selected]/text()") == ["zst"]
    assert await stored(http, project, "deliveries") == []


async def test_rules_of_the_server_are_changed_by_those_who_manage_all_projects(
    server: RunningServer, http: Http, project: int
) -> None:
    path = f"/ui/{project}/retention"
    form = {**FORM, "spider": f"of-{project}", "of_server": "1"}
    await submit(http, f"{path}/new", {**form, "action": "off"})
    (rule,) = [each for each in (await http.get("/api/retention")).json if each["spider"] == form["spider"]]
    of_rule = {"number": str(rule["id"]), "of_server": "1"}
    store = await Store.open(server.where)
    try:
        manager = await add_key(store, f"manager-{project}", frozenset({project}), may_write=True)
        reader = await add_key(store, f"rules-{project}", frozenset({project}), may_write=False)
    finally:
        await store.close()
    async with Http(server.url, manager) as limited:
        listed = page(await limited.get(path))
        row = listed.xpath(f"//tr[td/a[@href='{path}/{rule['id']}?of_server=1']]")[0]
        assert texts(row, "./td")[1] == "server"
        assert row.xpath(".//button") == []
        for action, where in (("remove", path), ("off", f"{path}/new")):
            refused = await submit(limited, where, {**form, **of_rule, "action": action}, shown_at=f"{path}/new")
            assert refused.status == 403
            assert "Only those who manage all projects" in refused.text
    async with Http(server.url, reader) as limited:
        for address in (path, f"{path}/{rule['id']}?of_server=1", f"/ui/{project}/deliveries"):
            assert page(await limited.get(address)).xpath("//main//form") == [], address
        assert (await limited.get(f"{path}/new")).status == 403
    assert done(await submit(http, path, {**of_rule, "action": "remove"}, shown_at=f"{path}/new")) == "Deleted."
    assert rule["id"] not in [each["id"] for each in (await http.get("/api/retention")).json]
    assert await stored(http, project) == []
