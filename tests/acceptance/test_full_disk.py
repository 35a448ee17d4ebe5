"""A crawl on a disk that is full: it waits, says so in one line, can be stopped, and loses nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.crawls import Project
from tests.support.eventually import eventually
from tests.support.servers import limit_files

SPIDERS = """
import secrets
import scrapy

class Many(scrapy.Spider):
    name = "many"

    async def start(self):
        for n in range(300):
            yield scrapy.Request(f"data:,{n}", dont_filter=True)

    def parse(self, response):
        for i in range(20):
            yield {"key": f"{response.url}/{i}", "noise": secrets.token_hex(500)}
"""
#: Bytes of a file; the items take about 6 MB.
LIMIT = 3_000_000


@pytest.mark.full
def test_a_crawl_on_a_full_disk_says_so_once_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", SPIDERS, "EXTRACT_API_ENABLED = False\n")
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "many", "-s", "LOG_LEVEL=INFO"],
            cwd=project.folder,
            stderr=stream,
            preexec_fn=lambda: limit_files(LIMIT),  # noqa: PLW1509
        )
        eventually(log.read_text, lambda text: "Cannot " in text)
        for words in ("shutting down gracefully", "forcing unclean shutdown"):
            process.send_signal(signal.SIGINT)
            eventually(log.read_text, lambda text, words=words: words in text)
        process.wait(60)
    (warning,) = re.findall(r"WARNING: (Cannot .*)", log.read_text())
    assert "The disk is full" in warning
    assert "press Ctrl-C twice; PLATFORM_JOB=1/1/1 resumes it later" in warning
    assert "[scrapy_ext.crawl.session.embedded] ERROR" not in log.read_text()

    resumed = project.crawl("many", "-s", "PLATFORM_JOB=1/1/1", "-s", "LOG_LEVEL=INFO")
    assert resumed.reason == "finished", resumed.log[-3000:]
    keys = [item["key"] for item in project.items("1/1/1")]
    assert sorted(keys) == sorted({f"data:,{n}/{i}" for n in range(300) for i in range(20)})
