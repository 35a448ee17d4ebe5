"""Keys and addresses in ``.env``, as a user keeps them beside ``scrapy.cfg``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from scrapy_ext.commands.shells import names as words
from scrapy_ext.settings import VARIABLES
from tests.support.crawls import Project
from tests.support.servers import ForkedServer
from tests.support.sites import Site
from tests.support.terminal_commands import scrapy

_SPIDER = """\
import os
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    async def start(self):
        yield scrapy.Request(self.site + "/page/1")
    def parse(self, response):
        yield {"url": response.url, "environment": "PLATFORM_API_KEY" in os.environ}
"""


@pytest.fixture(scope="module")
def site():
    made = Site()
    yield made
    made.close()


@pytest.fixture(scope="module")
def project(site: Site, tmp_path_factory: pytest.TempPathFactory):
    data = tmp_path_factory.mktemp("data")
    with ForkedServer(data, allow_hosts=[site.host], options=["--no-runner"]) as server:
        made = Project(tmp_path_factory.mktemp("project") / "shop", _SPIDER)
        (made.folder / ".env").write_text(
            f"EXTRACT_API_URL={server.url}/v1\nEXTRACT_API_KEY={server.extract_key}\n"
            f"PLATFORM_URL='{server.url}'\nPLATFORM_API_KEY=\"{server.platform_key}\"\nPLATFORM_PROJECT=77\n"
        )
        yield made


def test_crawls_and_commands_use_the_file(project: Project, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = project.crawl("pages", "-a", f"site={site.url}")
    assert (crawl.returncode, crawl.errors) == (0, [])
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    items = scrapy("platform", "items", "77/1/1", folder=project.folder, environment=environment)
    assert [item["environment"] for item in items.records] == [False]
    assert json.loads(project.command("extract", f"{site.url}/page/2"))["result"]["statusCode"] == 200
    for name in VARIABLES & set(os.environ):
        monkeypatch.delenv(name)
    assert words.jobs(project.folder) == ["77/1/1"]


def test_a_wrong_line_is_reported_in_one_line(project: Project, site: Site, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLATFORM_URL=http://127.0.0.1:1\nPLATFORM_API_KEY='secret\n")
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    for command in (["platform", "jobs"], ["extract", site.url]):
        done = scrapy(*command, folder=tmp_path, environment=environment)
        assert done.returncode in (1, 2)
        assert len(done.stderr.splitlines()) == 1
        assert ".env has a malformed line 2. Write NAME=VALUE" in done.stderr
        assert "secret" not in done.stderr
