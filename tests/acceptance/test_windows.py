"""The client on Windows: components, crawls and commands with remote services, as far as another system can show it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import scrapy_ext
from tests.support.crawls import Project
from tests.support.servers import RunningServer, without_keys
from tests.support.sites import Site

_ROOT = Path(__file__).parents[2]
_SPIDERS = """\
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/page/{number}", self.parse)

    def parse(self, response):
        yield {"url": response.url, "length": len(response.body)}
"""
#: Imports all that a client uses; the commands for the server's own machine have their modules of the server inside.
_IMPORT = """\
import pkgutil, sys
from tests.support import as_windows
as_windows.install()
import scrapy_ext
names = [each.name for each in pkgutil.walk_packages(scrapy_ext.__path__, "scrapy_ext.", onerror=lambda name: None)
         if each.name.split(".")[1] not in ("server", "jobprocess")]
for name in names:
    __import__(name)
print(len(names))
"""


@dataclass
class Windows:
    """A project, and remote services for it."""

    project: Project
    server: RunningServer
    site: Site

    def run(self, *arguments: str, typed: str = "", remote: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Scrapy."""
        given = {
            "EXTRACT_API_URL": f"{self.server.url}/v1", "EXTRACT_API_KEY": self.server.extract_key,
            "PLATFORM_URL": self.server.url, "PLATFORM_API_KEY": self.server.platform_key,
        }  # fmt: skip
        return python(
            "-m", "tests.support.as_windows", *arguments,
            folder=self.project.folder, environment=given if remote else {}, typed=typed,
        )  # fmt: skip


def python(
    *arguments: str, folder: Path, environment: dict[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in without_keys().items() if not name.startswith(("PLATFORM_", "EXTRACT_"))}
    path = os.pathsep.join([str(_ROOT), str(folder)])
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=folder, env={**clean, "PYTHONPATH": path, **(environment or {})},
        input=typed, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    site = Site()
    folder = tmp_path_factory.mktemp("windows")
    data = tmp_path_factory.mktemp("data")
    with RunningServer(data, allow_hosts=[site.host], options=["--no-runner"]) as server:
        yield Windows(Project(folder, _SPIDERS), server, site)
    site.close()


def test_all_modules_of_a_client_are_imported(tmp_path: Path) -> None:
    done = python("-c", _IMPORT, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    modules = [
        path for path in Path(scrapy_ext.__file__).parent.rglob("*.py")
        if path.relative_to(Path(scrapy_ext.__file__).parent).parts[0] not in ("server", "jobprocess", "__init__.py")
    ]  # fmt: skip
    assert int(done.stdout) > 0.9 * len(modules)


def test_a_crawl_runs_on_remote_services(windows: Windows) -> None:
    done = windows.run("crawl", "pages", "-a", "pages=7", "-a", f"site={windows.site.url}")
    assert done.returncode == 0, done.stderr
    assert "'finish_reason': 'finished'" in done.stderr
    assert " ERROR: " not in done.stderr
    for name in ("items.jl", "items.csv"):
        saved = windows.run("platform", "items", "last", "--output", name)
        assert saved.returncode == 0, saved.stderr
    folder = windows.project.folder
    assert len((folder / "items.jl").read_bytes().split(b"\n")) == 7 + 1
    assert sorted(path.name for path in folder.glob("items.*")) == ["items.csv", "items.jl"]


def test_an_interrupted_extract_continues_and_failed_lines_are_repeated(windows: Windows) -> None:
    folder = windows.project.folder
    good = [f"{windows.site.url}/page/{number}" for number in range(5)]
    (folder / "urls.txt").write_text("\n".join([*good[:3], "no url"]) + "\n")
    first = windows.run("extract", "-i", "urls.txt", "-o", "pages.jsonl")
    assert first.returncode == 1, first.stderr
    written = (folder / "pages.jsonl").read_bytes()
    assert written.count(b"\n") == 4
    assert b"\r" not in written
    (folder / "urls.txt").write_text("\n".join(good) + "\n")
    again = windows.run("extract", "-i", "urls.txt", "-o", "pages.jsonl", "--retry-failed")
    assert again.returncode == 0, again.stderr
    records = [json.loads(line) for line in (folder / "pages.jsonl").read_bytes().splitlines()]
    assert sorted(record["line"] for record in records) == [1, 2, 3, 4, 5]
    assert all("result" in record for record in records)
    assert not list(folder.glob("pages.jsonl.*"))


def test_the_server_needs_another_system(windows: Windows) -> None:
    needs = "the server needs Linux or macOS; on Windows, run it in WSL or a container"
    done = windows.run("platform", "serve", remote=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"scrapy platform serve: {needs}\n")
    doctor = windows.run("platform", "doctor")
    assert doctor.returncode == 0, doctor.stdout
    alone = python("-m", "tests.support.as_windows", "--server", folder=windows.project.folder)
    assert (alone.returncode, alone.stdout, alone.stderr) == (1, "", f"error: {needs}\n")


def test_embedded_services_need_another_system(windows: Windows) -> None:
    done = windows.run("extract", f"{windows.site.url}/page/1", remote=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "needs Linux or macOS" in done.stderr
    assert "PLATFORM_URL" in done.stderr
    crawl = windows.run("crawl", "pages", "-a", "pages=1", "-a", f"site={windows.site.url}", remote=False)
    assert "needs Linux or macOS" in crawl.stderr
    assert "Traceback" not in crawl.stderr
    off = [f"-s{name}=False" for name in ("EXTRACT_API_ENABLED", "PLATFORM_ENABLED", "FRONTIER_ENABLED")]
    alone = windows.run("crawl", "pages", "-a", "pages=1", "-a", f"site={windows.site.url}", *off, remote=False)
    assert "'item_scraped_count': 1" in alone.stderr
