"""The pages of webhooks, over HTTP."""

from __future__ import annotations

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts
from tests.support.servers import RunningServer

FORM = {"url": "http://127.0.0.1:9/hook?token=abcdef", "events": "job:completed\njob:*\njob:completed\n"}


async def test_a_webhook_is_added_and_its_secret_is_shown_once(http: Http, project: int) -> None:
    path = f"/ui/{project}/webhooks"
    assert "No webhooks yet." in (await http.get(path)).text
    made = page(await submit(http, path, FORM))
    (secret,) = texts(made, "//code[@class='secret']")
    assert secret.startswith("whsec_")
    (stored,) = (await http.get(f"/api/projects/{project}/webhooks")).json
    assert (stored["url"], stored["events"]) == (FORM["url"], ["job:completed", "job:*"])
    for address in (path, f"{path}/1", f"/ui/{project}/activity"):
        shown = await http.get(address)
        assert secret not in shown.text, address
        assert "abcdef" not in shown.text, address
    assert rows(page(await http.get(path)))[0][:5] == [
        "1",
        "http://127.0.0.1:9/hook?token=(hidden)",
        "job:completed, job:*",
        "enabled",
        "–",
    ]


async def test_a_test_of_a_webhook_has_its_outcome_among_the_deliveries(http: Http, project: int) -> None:
    path = f"/ui/{project}/webhooks/1"
    await submit(http, f"/ui/{project}/webhooks", FORM)
    assert "The test is sent" in done(await submit(http, path, {"action": "test"}))
    answer = await eventually_async(lambda: http.get(path), lambda answer: "Send again" in answer.text)
    (delivery,) = rows(page(answer))[-1:]
    assert delivery[1:5] == ["webhook:test", "given up", "1", "–"]
    assert "127.0.0.1" in delivery[5]
    listed = rows(page(await http.get(f"/ui/{project}/webhooks")))[0][4]
    assert "webhook:test, given up (" in listed
    (number,) = page(answer).xpath("//form[button='Send again']/input[@name='delivery']/@value")
    (before,) = (await http.get(f"/api/projects/{project}/webhooks/1/deliveries")).json
    assert "sent again" in done(await submit(http, path, {"action": "resend", "delivery": number}))
    answer = await eventually_async(lambda: http.get(path), lambda answer: rows(page(answer))[-1][3] == "2")
    (again,) = (await http.get(f"/api/projects/{project}/webhooks/1/deliveries")).json
    assert (again["id"], again["attempts"]) == (before["id"], 2)
    for wrong, status in (("x", 400), ("99", 404)):
        page(await submit(http, path, {"action": "resend", "delivery": wrong}), status)


async def test_a_webhook_is_disabled_enabled_and_removed_and_the_activity_has_it(http: Http, project: int) -> None:
    every = f"/ui/{project}/webhooks"
    path = f"{every}/1"
    await submit(http, every, FORM)
    assert done(await submit(http, path, {"action": "disable"})) == "Saved."
    assert rows(page(await http.get(every)))[0][3] == "disabled"
    await submit(http, path, {"action": "enable"})
    assert rows(page(await http.get(every)))[0][3] == "enabled"
    page(await submit(http, path, {"action": "explode"}), 400)
    assert done(await submit(http, path, {"action": "remove"})) == "Deleted."
    page(await http.get(path), 404)
    page(await submit(http, path, {"action": "test"}, shown_at=every), 404)
    events = [each["event"] for each in (await http.get(f"/activity/{project}")).lines]
    assert events == ["webhook:removed", "webhook:changed", "webhook:changed", "webhook:created"]


async def test_faults_of_a_new_webhook_are_at_their_fields(http: Http, project: int) -> None:
    form = {"url": f"ftp://{HOSTILE}", "events": "job *"}
    shown = page(await submit(http, f"/ui/{project}/webhooks", form), 400)
    assert "is not a URL" in texts(shown, "//*[@id='url-wrong']")[0]
    assert "'job *', which is not an event" in texts(shown, "//*[@id='events-wrong']")[0]
    assert shown.xpath("//input[@name='url']/@value") == [form["url"]]
    empty = page(await submit(http, f"/ui/{project}/webhooks", {"url": "https://hooks.example/"}), 400)
    assert "must be an array of 1 to 50 names" in texts(empty, "//*[@id='events-wrong']")[0]
    assert (await http.get(f"/api/projects/{project}/webhooks")).json == []


async def test_a_reader_sees_webhooks_without_forms(server: RunningServer, http: Http, project: int) -> None:
    path = f"/ui/{project}/webhooks"
    await submit(http, path, FORM)
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"reader-{project}", frozenset({project}), may_write=False)
    finally:
        await store.close()
    async with Http(server.url, key) as reader:
        for address in (path, f"{path}/1", f"/ui/{project}/settings"):
            assert page(await reader.get(address)).xpath("//main//form") == [], address
        token = page(await reader.get(path)).xpath("//input[@name='token']/@value")[0]
        for address, action in ((path, "add"), (f"{path}/1", "remove"), (f"/ui/{project}/settings", "set")):
            body = f"token={token}&action={action}&setting=a&value=1&url=https://a.example&events=*".encode()
            refused = await reader.post(address, body, Content_Type="application/x-www-form-urlencoded")
            assert refused.status == 403, address
    assert len((await http.get(f"/api/projects/{project}/webhooks")).json) == 1
    assert (await http.get(f"/projects/{project}/settings")).json == {}
