"""The page of the settings of a project, over HTTP."""

from __future__ import annotations

import json
from typing import Any

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts

SECRET = "hunter2-0123456789"


async def stored(http: Http, project: int) -> dict[str, Any]:
    return (await http.get(f"/projects/{project}/settings")).json  # type: ignore[no-any-return]


async def test_settings_are_set_changed_and_removed(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    listed = {row[0]: row[1] for row in rows(page(await http.get(path)))}
    assert (listed["max_running"], listed["alert_window"]) == ("not set: no limit", "not set: 60")
    assert done(await submit(http, path, {"action": "set", "setting": "max_running", "value": "3"})) == "Saved."
    await submit(http, path, {"action": "set", "setting": "mine", "value": '{"a": [1]}'})
    assert await stored(http, project) == {"max_running": 3, "mine": {"a": [1]}}
    listed = {row[0]: row[1] for row in rows(page(await http.get(path)))}
    assert listed["max_running"] == "3"
    assert json.loads(listed["mine"]) == {"a": [1]}
    form = page(await http.get(f"{path}?setting=max_running"))
    assert form.xpath("//textarea[@name='value']")[0].text.strip() == "3"
    assert done(await submit(http, path, {"action": "remove", "setting": "max_running"})) == "Deleted."
    assert await stored(http, project) == {"mine": {"a": [1]}}
    changes = [each["settings"] for each in (await http.get(f"/activity/{project}")).lines]
    assert changes == [["max_running"], ["mine"], ["max_running"]]


async def test_secret_values_are_hidden_and_kept_when_another_value_changes(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    of_spiders = {"books": {"API_KEY": SECRET, "DELAY": 1}, "news": {"PROXY": f"http://me:{SECRET}@proxy.example"}}
    settings = {"spider_settings": of_spiders, "MY_TOKEN": SECRET}
    assert (await http.post(f"/projects/{project}/settings", json.dumps(settings).encode())).status == 200
    for address in (path, f"{path}?setting=spider_settings", f"{path}?setting=MY_TOKEN"):
        answer = await http.get(address)
        assert "••••••" in answer.text
        assert SECRET not in answer.text, address
    form = page(await http.get(f"{path}?setting=spider_settings"))
    value = json.loads(form.xpath("//textarea[@name='value']")[0].text)
    value["books"]["DELAY"] = 2
    await submit(http, path, {"action": "set", "setting": "spider_settings", "value": json.dumps(value)})
    of_spiders["books"]["DELAY"] = 2
    assert (await stored(http, project))["spider_settings"] == of_spiders
    value["books"]["OTHER_KEY"] = value["books"]["API_KEY"]
    refused = await submit(http, path, {"action": "set", "setting": "spider_settings", "value": json.dumps(value)})
    assert "has a hidden value that is not stored" in texts(page(refused, 400), "//*[@id='value-wrong']")[0]


async def test_an_object_with_a_secret_in_the_name_of_a_member_is_hidden_and_kept(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    sites = {f"https://me:{SECRET}@shop.example/": 1}
    for name, value in (("SITES", sites), ("mine", {"SITES": sites, "DELAY": 1})):
        await http.post(f"/projects/{project}/settings", json.dumps({name: value}).encode())
        for address in (path, f"{path}?setting={name}"):
            answer = await http.get(address)
            assert "••••••" in answer.text
            assert SECRET not in answer.text, address
        shown = page(await http.get(f"{path}?setting={name}")).xpath("//textarea[@name='value']")[0].text
        sent = {"action": "set", "setting": name, "value": shown.replace("1", "2")}
        assert done(await submit(http, path, sent)) == "Saved."
    assert await stored(http, project) == {"SITES": sites, "mine": {"SITES": sites, "DELAY": 2}}


async def test_a_wrong_setting_is_reported_at_its_field(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    for setting, value, field, message in (
        ("max_running", "many", "value", "is not JSON"),
        ("max_running", "-1", "value", "max_running must be a whole number, 0 or more"),
        ("alert_window", '"long"', "value", "alert_window must be a number of seconds"),
        ("job_settings", "[1]", "value", "job_settings must be a JSON object"),
        ("..", "1", "setting", "must be 1 to"),
        (HOSTILE, "{", "value", "is not JSON"),
    ):
        shown = page(await submit(http, path, {"action": "set", "setting": setting, "value": value}), 400)
        assert message in " ".join(texts(shown, f"//*[@id='{field}-wrong']")), (setting, value)
        assert shown.xpath("//input[@name='setting']/@value") == [setting]
        assert shown.xpath("//textarea[@name='value']")[0].text.strip() == value
    assert await stored(http, project) == {}
