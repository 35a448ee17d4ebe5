"""The use of storage, over HTTP and by the command."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from scrapy.settings import Settings

from scrapy_ext.commands.platform import load, parser_of
from scrapy_ext.compatibility.python import timeout_after
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import page, submit, texts
from tests.support.servers import RunningServer


async def filled(http: Http, project: int) -> str:
    answer = await http.post("/api/run.json", {"project": str(project), "spider": "books", "state": "running"})
    job = str(answer.json["jobid"])
    await http.post(f"/items/{job}", [{"n": n, "text": "x" * 100} for n in range(50)])
    await http.post(f"/collections/{project}/s/pages", [{"_key": str(n), "v": n} for n in range(20)])
    return job


async def counted(http: Http, path: str) -> Any:
    """Return the use once its sums are complete."""
    found = await eventually_async(
        lambda: http.get(path), lambda answer: answer.status == 200 and answer.json["counted"] is not None
    )
    return found.json


async def test_the_use_of_storage_is_by_kind_spider_and_age(server: RunningServer, http: Http, project: int) -> None:
    await filled(http, project)
    usage = await counted(http, f"/api/projects/{project}/usage")
    kinds = {part["name"]: part["records"] for part in usage["kinds"]}
    assert (kinds["items"], kinds["collections"]) == (50, 20)
    assert [(part["name"], part["records"]) for part in usage["spiders"]] == [("books", 50)]
    assert [part["name"] for part in usage["ages"]] == ["7d"]
    assert usage["database"]["bytes"] > 0
    whole = await counted(http, "/api/usage")
    assert str(project) in {part["name"] for part in whole["projects"]}
    metrics = (await http.get("/metrics")).text
    assert "scrapy_ext_deleted_bytes_total" in metrics
    shown = page(await http.get(f"/ui/{project}/usage"))
    assert "books" in texts(shown, "//td")


async def test_a_key_of_one_project_sees_its_use_only(server: RunningServer, http: Http, project: int) -> None:
    await filled(http, project)
    fields = {"action": "add", "name": f"usage-{project}", "opens": "platform", "projects": str(project)}
    (key,) = texts(page(await submit(http, "/ui/keys", fields)), "//code[@class='secret']")
    async with Http(server.url, key) as other, timeout_after(60):
        usage = await counted(other, f"/api/projects/{project}/usage")
        assert usage["bytes"] > 0
        assert usage["database"] is None
        for refused in ("/api/usage", f"/api/projects/{project + 1}/usage", "/ui/usage"):
            assert (await other.get(refused)).status in (403, 404)


async def test_the_command_writes_a_line_for_each_part(
    server: RunningServer, http: Http, project: int, capfdbinary: Any
) -> None:
    await filled(http, project)
    await counted(http, f"/api/projects/{project}/usage")
    settings = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": project}
    for arguments in ([], [str(project)], ["--all"]):
        chosen = load("usage")
        options = parser_of(chosen).parse_args(arguments)
        assert await asyncio.to_thread(chosen.run, Settings(settings), options) == 0
        rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
        found = {(row["by"], row["name"]): row for row in rows}
        assert found["kind", "items"]["bytes"] > 0
        assert found["database", "on disk"]["bytes"] > 0
        assert (("project", str(project)) in found) == (arguments == ["--all"])
        assert (("spider", "books") in found) == (arguments != ["--all"])
