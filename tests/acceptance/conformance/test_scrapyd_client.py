"""scrapyd-client from PyPI, unchanged: deploy, list and schedule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from scrapyd_client.pyclient import ScrapydClient

from tests.support.eventually import eventually
from tests.support.packed_projects import files
from tests.support.servers import RunningServer

_SPIDER = """
import scrapy


class Greeting(scrapy.Spider):
    name = "greeting"
    start_urls = ["data:,hello"]

    def parse(self, response):
        yield {"text": response.text, "to": getattr(self, "to", None)}
"""


@pytest.fixture
def project(tmp_path: Path, server: RunningServer) -> Path:
    """A project whose scrapy.cfg has the server, as the how-to says."""
    for path, text in files(shop__spiders=_SPIDER).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "scrapy.cfg").write_text(
        f"[settings]\ndefault = shop.settings\n"
        f"[deploy]\nurl = {server.url}\nusername = {server.platform_key}\npassword =\nproject = {tmp_path.name}\n"
    )
    return tmp_path


def run(project: Path, *arguments: str) -> str:
    environment: Mapping[str, str] = {**os.environ, "HOME": str(project)}
    done = subprocess.run(
        [sys.executable, "-m", "scrapyd_client", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_deploy_list_schedule_and_read_the_items(project: Path, server: RunningServer) -> None:
    name = project.name
    assert '"status":"ok"' in run(project, "deploy", "--version", "1.0")
    assert name in run(project, "projects").split()
    assert "greeting" in run(project, "spiders", "-p", name)
    said = run(project, "schedule", "-p", name, "greeting", "--arg", "to=you", "--arg", "setting=LOG_LEVEL=INFO")
    job = re.search(r"=> (\S+)", said)
    assert job is not None, said
    client = ScrapydClient(server.url, server.platform_key, "")
    eventually(lambda: client.status(job[1])["currstate"] == "finished")
    (finished,) = client.jobs(name)["finished"]
    assert (finished["id"], finished["spider"]) == (job[1], "greeting")
    assert client.versions(name) == ["1.0"]
    assert client.daemonstatus()["finished"] >= 1
    client.delversion(name, "1.0")
    assert client.versions(name) == []
