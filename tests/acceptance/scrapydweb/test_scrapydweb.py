"""ScrapydWeb from PyPI, unchanged: its pages and its calls, with a server of this package in its settings."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scrapyd_client.pyclient import ScrapydClient

from tests.acceptance.scrapydweb.program import PROGRAM
from tests.support import packed_projects as packed
from tests.support.eventually import eventually
from tests.support.multipart import form
from tests.support.servers import ForkedServer, RunningServer

_SPIDER = """
import scrapy


class Greeting(scrapy.Spider):
    name = "greeting"
    start_urls = ["data:,hello"]

    def parse(self, response):
        self.logger.error("something to see")
        yield {"text": response.text}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def web(
    server: RunningServer, tmp_path_factory: pytest.TempPathFactory, unused_tcp_port_factory: Callable[[], int]
) -> Iterator[str]:
    """The address of a ScrapydWeb that knows the server."""
    folder, port = tmp_path_factory.mktemp("scrapydweb"), unused_tcp_port_factory()
    subprocess.run([PROGRAM], cwd=folder, capture_output=True, timeout=120, check=False)  # writes its settings
    (settings,) = folder.glob("scrapydweb_settings_v*.py")
    host = server.url.removeprefix("http://")
    text = re.sub(
        r"(?ms)^SCRAPYD_SERVERS = \[.*?^\]",
        f"SCRAPYD_SERVERS = ['{server.platform_key}:x@{host}']",
        settings.read_text(),
    )
    text = re.sub(r"(?m)^SCRAPYDWEB_PORT = .*", f"SCRAPYDWEB_PORT = {port}", text)
    text = re.sub(r"(?m)^SCRAPYDWEB_BIND = .*", "SCRAPYDWEB_BIND = '127.0.0.1'", text)
    settings.write_text(text)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([PROGRAM], cwd=folder, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            eventually(lambda: is_there(url), details=(folder / "log").read_text)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def is_there(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_deploy_run_and_look_at_a_job(server: RunningServer, web: str, tmp_path: Path) -> None:
    body, kind = form(
        packed.egg(shop__spiders=_SPIDER), name="file", file_name="shop.egg", project="shop", version="1_0"
    )
    upload = urllib.request.Request(f"{web}/1/deploy/upload/", body, {"Content-Type": kind})
    with urllib.request.urlopen(upload, timeout=300) as answer:
        page = answer.read().decode()
    assert "Deploy" in page
    api = f"{web}/1/api"
    client = ScrapydClient(server.url, server.platform_key, "x")
    project = next(name for name in client.projects() if name.startswith("shop"))
    versions = json.loads(read(f"{api}/listversions/{project}/"))["versions"]
    assert json.loads(read(f"{api}/listspiders/{project}/{versions[-1]}/"))["spiders"] == ["greeting"]
    job = json.loads(read(f"{api}/start/{project}/greeting/"))["jobid"]
    eventually(lambda: json.loads(read(f"{api}/listjobs/{project}/"))["finished"])
    (row,) = json.loads(read(f"{web}/1/jobs/?listjobs=True"))
    assert (row["project"], row["spider"], row["job"], bool(row["finish"])) == (project, "greeting", job, True)
    assert "something to see" in read(f"{web}/1/log/utf8/{project}/greeting/{job}/")
    stats = re.sub(r"<[^>]*>", " ", read(f"{web}/1/log/stats/{project}/greeting/{job}/"))
    assert re.search(r"finish_reason\s+finished", stats)
    for place in ("logs", "items"):
        assert f"{job}." in read(f"{web}/1/{place}/{project}/greeting/")
    assert json.loads(read(f"{api}/daemonstatus/"))["finished"] == 1
    waiting = client.schedule(project, "greeting", [("setting", "DOWNLOAD_DELAY=0")])
    assert json.loads(read(f"{api}/stop/{project}/{waiting}/"))["prevstate"] in ("pending", "running", None)
