"""The client on Windows, and on a Python without fcntl, fork and the like: components, crawls and commands.

They use remote services. Another system shows Windows as far as it can; a Python without these modules, on whichever
system it runs, differs in nothing else.
"""

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
from tests.support.servers import ForkedServer, RunningServer, without_keys
from tests.support.sites import Site

_PACKAGE = Path(scrapy_ext.__file__).parent
#: Python runs it before anything else, in every process that inherits PYTHONPATH. Twisted alone has the modules: its
#: event loop for this system is none without them.
_WITHOUT_MODULES = """\
import builtins, importlib, os, sys

_kept = {name: importlib.import_module(name) for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")}
_import = builtins.__import__

class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name in _kept:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def _import_except(name, globals=None, locals=None, fromlist=(), level=0):
    if name in _kept and (globals or {}).get("__name__", "").startswith("twisted."):
        return _kept[name]
    return _import(name, globals, locals, fromlist, level)

for name in _kept:
    del sys.modules[name]
sys.meta_path.insert(0, _Finder())
builtins.__import__ = _import_except
del os.fork, os.forkpty
"""
_AS_WINDOWS = "from tests.support import as_windows\nas_windows.install()\n"
#: Imports all that a client uses; the commands for the server's own machine have their modules of the server inside.
_IMPORT = """\
import pkgutil
import scrapy_ext

names = [each.name for each in pkgutil.walk_packages(scrapy_ext.__path__, "scrapy_ext.", onerror=lambda name: None)
         if each.name.split(".")[1] not in ("server", "jobprocess")]
for name in names:
    __import__(name)
print(len(names))
"""
#: Runs commands one after the other, which spares the start of Python for each.
_COMMANDS = """\
import json, sys
from scrapy.cmdline import execute

for words in json.loads(sys.argv[1]):
    try:
        execute(["scrapy", *words])
    except SystemExit as end:
        print(json.dumps([words, end.code or 0]), flush=True)
"""
_SPIDER = """\
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/page/{number}", self.parse)

    def parse(self, response):
        yield {"url": response.url, "length": len(response.body)}
"""


@dataclass
class Client:
    """A project, and remote services for it."""

    project: Project
    server: RunningServer
    site: Site
    #: Code that comes first where a script runs.
    first: str = ""
    #: Module with the commands of Scrapy.
    scrapy: str = "scrapy"
    #: The folder with the file that Python runs first.
    start: Path | None = None

    def python(self, *arguments: str, remote: bool = True) -> subprocess.CompletedProcess[str]:
        others = {name: value for name, value in without_keys().items() if not name.startswith(("PLATFORM_", "EXTR"))}
        services = {
            "EXTRACT_API_URL": f"{self.server.url}/v1", "EXTRACT_API_KEY": self.server.extract_key,
            "PLATFORM_URL": self.server.url, "PLATFORM_API_KEY": self.server.platform_key,
        }  # fmt: skip
        folders = [str(folder) for folder in (self.start, _PACKAGE.parent, self.project.folder) if folder is not None]
        environment = {"PYTHONPATH": os.pathsep.join(folders)}
        if self.start is not None:
            # A library that Scrapy uses warns that it has no locks.
            environment["PYTHONWARNINGS"] = "ignore:only soft file lock"
        return subprocess.run(
            [sys.executable, "-P", *arguments] if sys.version_info >= (3, 11) else [sys.executable, *arguments],
            cwd=self.project.folder, env={**others, **environment, **(services if remote else {})},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    def run(self, *arguments: str, remote: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Scrapy."""
        return self.python("-m", self.scrapy, *arguments, remote=remote)

    def crawl(self, pages: int, *options: str, remote: bool = True) -> subprocess.CompletedProcess[str]:
        """Crawl pages of the site."""
        arguments = ("-a", f"pages={pages}", "-a", f"site={self.site.url}", *options)
        return self.run("crawl", "pages", *arguments, remote=remote)

    def commands(self, *commands: str, remote: bool = True) -> tuple[list[int], str]:
        """Run commands of Scrapy; returns their exit codes, and what they wrote to standard error."""
        words = [command.split() for command in commands]
        done = self.python("-c", self.first + _COMMANDS, json.dumps(words), remote=remote)
        ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
        assert [each for each, _ in ends] == words, done
        return [code for _, code in ends], done.stderr

    def imports_all(self) -> None:
        """Every module of a client can be imported."""
        done = self.python("-c", self.first + _IMPORT, remote=False)
        assert done.returncode == 0, done.stderr
        parts = [path.relative_to(_PACKAGE).parts[0] for path in _PACKAGE.rglob("*.py")]
        modules = [part for part in parts if part not in ("server", "jobprocess", "__init__.py")]
        assert int(done.stdout) > 0.9 * len(modules)

    def lines(self, name: str) -> int:
        """Number of lines of a file of the project."""
        return (self.project.folder / name).read_bytes().count(b"\n")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Site]]:
    site = Site()
    data = tmp_path_factory.mktemp("data")
    with ForkedServer(data, allow_hosts=[site.host], options=["--no-runner"]) as server:
        yield server, site
    site.close()


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory, services: tuple[RunningServer, Site]) -> Client:
    project = Project(tmp_path_factory.mktemp("windows"), _SPIDER)
    return Client(project, *services, first=_AS_WINDOWS, scrapy="tests.support.as_windows")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, services: tuple[RunningServer, Site]) -> Client:
    """A client without the modules."""
    start = tmp_path_factory.mktemp("start")
    (start / "sitecustomize.py").write_text(_WITHOUT_MODULES)
    return Client(Project(tmp_path_factory.mktemp("bare"), _SPIDER), *services, start=start)


# ── Windows ──


def test_all_modules_of_a_client_are_imported_on_windows(windows: Client) -> None:
    windows.imports_all()


def test_a_crawl_runs_on_remote_services(windows: Client) -> None:
    done = windows.crawl(7)
    assert done.returncode == 0, done.stderr
    assert "'finish_reason': 'finished'" in done.stderr
    assert " ERROR: " not in done.stderr
    names = ("items.jl", "items.csv")
    saved = [f"platform items last --output {name}" for name in names]
    codes, errors = windows.commands(*saved, "platform doctor")
    assert codes == [0] * 3, errors
    assert windows.lines("items.jl") == 7
    assert sorted(path.name for path in windows.project.folder.glob("items.*")) == sorted(names)


@pytest.mark.long
def test_an_interrupted_extract_continues_and_failed_lines_are_repeated(windows: Client) -> None:
    folder = windows.project.folder
    good = [f"{windows.site.url}/page/{number}" for number in range(5)]
    (folder / "urls.txt").write_text("\n".join([*good[:3], "no url"]) + "\n")
    first = windows.run("extract", "-i", "urls.txt", "-o", "pages.jsonl")
    assert first.returncode == 1, first.stderr
    assert windows.lines("pages.jsonl") == 4
    assert b"\r" not in (folder / "pages.jsonl").read_bytes()
    (folder / "urls.txt").write_text("\n".join(good) + "\n")
    again = windows.run("extract", "-i", "urls.txt", "-o", "pages.jsonl", "--retry-failed")
    assert again.returncode == 0, again.stderr
    records = [json.loads(line) for line in (folder / "pages.jsonl").read_bytes().splitlines()]
    assert sorted(record["line"] for record in records) == [1, 2, 3, 4, 5]
    assert all("result" in record for record in records)
    assert not list(folder.glob("pages.jsonl.*"))


def test_the_server_needs_another_system(windows: Client) -> None:
    needs = "the server needs Linux or macOS; on Windows, run it in WSL or a container"
    done = windows.run("platform", "serve", remote=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"scrapy platform serve: {needs}\n")
    alone = windows.run("--server", remote=False)
    assert (alone.returncode, alone.stdout, alone.stderr) == (1, "", f"error: {needs}\n")


@pytest.mark.long
def test_embedded_services_need_another_system(windows: Client) -> None:
    done = windows.run("extract", f"{windows.site.url}/page/1", remote=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "needs Linux or macOS" in done.stderr
    assert "PLATFORM_URL" in done.stderr
    crawl = windows.crawl(1, remote=False)
    assert "needs Linux or macOS" in crawl.stderr
    assert "Traceback" not in crawl.stderr
    off = [f"-s{name}=False" for name in ("EXTRACT_API_ENABLED", "PLATFORM_ENABLED", "FRONTIER_ENABLED")]
    alone = windows.crawl(1, *off, remote=False)
    assert "'item_scraped_count': 1" in alone.stderr


# ── without the modules ──


@pytest.mark.long
def test_all_modules_of_a_client_are_imported_without_posix_modules(bare: Client) -> None:
    bare.imports_all()


@pytest.mark.long
def test_crawls_and_commands_run_on_remote_services(bare: Client) -> None:
    crawl = bare.crawl(5)
    assert "'finish_reason': 'finished'" in crawl.stderr
    assert "'item_scraped_count': 5" in crawl.stderr
    assert " ERROR: " not in crawl.stderr
    (bare.project.folder / "seen.jsonl").write_text('{"_key": "a"}\n')
    codes, errors = bare.commands(
        f"extract {bare.site.url}/page/1 -o pages.jsonl",
        "platform items last --output items.jsonl",
        "platform requests last --output requests.csv",
        "platform logs last",
        "platform jobs",
        "platform collections put seen seen.jsonl",
        "platform collections get seen",
        "platform run pages",
        "platform schedule",
        "platform doctor",
    )
    assert codes == [0] * 10, errors
    assert "Traceback" not in errors
    assert [bare.lines(name) for name in ("pages.jsonl", "items.jsonl", "requests.csv")] == [1, 5, 6]


def test_a_server_says_in_one_line_that_it_cannot_run(bare: Client) -> None:
    needs = (
        "the server needs Linux or macOS (this Python has no os.fork, fcntl, pwd, resource); on Windows, run it in "
        "WSL or a container"
    )
    codes, errors = bare.commands("platform serve", "platform keys add me --data data", remote=False)
    assert codes == [1, 1]
    assert errors == f"scrapy platform serve: {needs}\nscrapy platform keys: {needs}\n"
    found = bare.run("platform", "doctor", "--json", "--data", "data", remote=False)
    problems = [each for line in found.stdout.splitlines() if (each := json.loads(line))["status"] == "problem"]
    assert [(each["check"], each["finding"]) for each in problems] == [("server", needs)]
    assert "EXTRACT_API_URL" in problems[0]["remedy"]
    module = bare.python("-m", "scrapy_ext.server", remote=False)
    assert (module.returncode, module.stdout, module.stderr) == (1, "", f"error: {needs}\n")
