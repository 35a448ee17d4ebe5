"""The names of projects on pages, over HTTP."""

from __future__ import annotations

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts
from tests.support.servers import RunningServer


async def test_a_project_is_named_on_its_page_and_shown_by_its_name(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    named = await submit(http, path, {"action": "name", "name": f" books {project} "})
    assert done(named) == "Saved."
    document = page(await http.get(f"/ui/{project}/jobs"))
    assert f"{project} (books {project})" in " ".join(texts(document, "//header"))
    assert document.findtext(".//title") == f"Jobs of project {project} (books {project}) · scrapy-ext"
    assert page(await http.get(path)).xpath("//input[@name='name']/@value") == [f"books {project}"]
    await submit(http, path, {"action": "name", "name": ""})
    changes = [(each["user"], each["name"]) for each in (await http.get(f"/activity/{project}")).lines]
    assert changes == [("api", None), ("api", f"books {project}")]
    assert "books" not in " ".join(texts(page(await http.get(f"/ui/{project}/jobs")), "//header"))


async def test_a_wrong_name_is_reported_at_its_field(http: Http, project: int) -> None:
    path = f"/ui/{project}/settings"
    refused = page(await submit(http, path, {"action": "name", "name": "123"}), 400)
    assert "must not consist of digits alone" in texts(refused, "//*[@id='name-wrong']")[0]
    assert refused.xpath("//input[@name='name']/@value") == ["123"]


async def test_a_name_is_not_shown_to_a_key_of_another_project(server: RunningServer, http: Http, project: int) -> None:
    await submit(http, f"/ui/{project}/settings", {"action": "name", "name": f"secret {project}"})
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"stranger-{project}", frozenset({project + 500}), may_write=True)
    finally:
        await store.close()
    async with Http(server.url, key) as stranger:
        for path in (f"/ui/{project}/jobs", f"/ui/projects?project={project}", "/ui/projects"):
            assert "secret" not in (await stranger.get(path)).text, path


async def test_projects_with_spiders_that_need_somebody_come_first(http: Http, project: int) -> None:
    worse = project + 700
    for each, spider, reason in ((project, "a", "finished"), (worse, "a", "start_error"), (worse, "b", "finished")):
        key = (await http.post(f"/jobq/{each}/push", [{"spider": spider, "state": "running"}])).lines[0]["key"]
        fields = {"key": key, "state": "finished", "close_reason": reason}
        await http.post(f"/jobq/{each}/update", [fields])
    judged = [f'/ui/{worse}?show={verdict}"' for verdict in ("red", "green")]
    path = f"/ui/projects?project={project}"
    first = await eventually_async(lambda: http.get(path), lambda answer: all(link in answer.text for link in judged))
    found: list[list[str]] = []
    address: str | None = "/ui/projects"
    while address:
        document = page(await http.get(address))
        found += rows(document)
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='next']/@href")), None)
    by_project = {row[0]: row[2:5] for row in found}
    assert by_project[str(worse)] == ["1", "0", "1"]
    order = list(by_project)
    assert order.index(str(worse)) < order.index(str(project))
    assert texts(page(first), "//dl[@class='figures']//dt") == ["Needs attention", "Running", "Pending"]


async def test_nothing_of_a_name_becomes_markup(http: Http, project: int) -> None:
    name = HOSTILE.replace("/", "")[:80]
    await submit(http, f"/ui/{project}/settings", {"action": "name", "name": name})
    for path in (f"/ui/{project}/jobs", "/ui/projects", f"/ui/{project}/settings", f"/ui/{project}/activity"):
        page(await http.get(path))
    await submit(http, f"/ui/{project}/settings", {"action": "name", "name": ""})
