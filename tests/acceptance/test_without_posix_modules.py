"""The client on a Python without fcntl, fork and the like, whichever system it runs on: components, crawls, commands.

Nothing else differs here: ``test_windows.py`` shows the rest of Windows.
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
from tests.support.servers import RunningServer, without_keys
from tests.support.sites import Site

_PACKAGE = Path(scrapy_ext.__file__).parent
#: Python runs it before anything else, in every process that inherits PYTHONPATH. Twisted alone has the modules: its
#: event loop for this system is none without them.
_SITE = """\
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
        for number in range(5):
            yield scrapy.Request(f"{self.site}/page/{number}", self.parse)

    def parse(self, response):
        yield {"url": response.url, "length": len(response.body)}
"""
_NEEDS = (
    "the server needs Linux or macOS (this Python has no os.fork, fcntl, pwd, resource); on Windows, run it in WSL or "
    "a container"
)


@dataclass
class Client:
    """A project, and remote services for it."""

    project: Project
    server: RunningServer
    site: Site
    #: The folder with the file that Python runs first.
    start: Path

    def python(self, *arguments: str, remote: bool = True) -> subprocess.CompletedProcess[str]:
        others = {name: value for name, value in without_keys().items() if not name.startswith(("PLATFORM_", "EXTR"))}
        services = {
            "EXTRACT_API_URL": f"{self.server.url}/v1", "EXTRACT_API_KEY": self.server.extract_key,
            "PLATFORM_URL": self.server.url, "PLATFORM_API_KEY": self.server.platform_key,
        }  # fmt: skip
        folders = [str(self.start), str(_PACKAGE.parent), str(self.project.folder)]
        # A library that Scrapy uses warns that it has no locks.
        environment = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONWARNINGS": "ignore:only soft file lock"}
        return subprocess.run(
            [sys.executable, "-P", *arguments] if sys.version_info >= (3, 11) else [sys.executable, *arguments],
            cwd=self.project.folder, env={**others, **environment, **(services if remote else {})},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    def commands(self, *commands: str, remote: bool = True) -> tuple[list[int], str]:
        """Run commands of Scrapy; returns their exit codes, and what they wrote to standard error."""
        words = [command.split() for command in commands]
        done = self.python("-c", _COMMANDS, json.dumps(words), remote=remote)
        ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
        assert [each for each, _ in ends] == words, done
        return [code for _, code in ends], done.stderr


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    site = Site()
    start = tmp_path_factory.mktemp("start")
    (start / "sitecustomize.py").write_text(_SITE)
    folder, data = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("data")
    with RunningServer(data, allow_hosts=[site.host], options=["--no-runner"]) as server:
        yield Client(Project(folder, _SPIDER), server, site, start)
    site.close()


def test_all_modules_of_a_client_are_imported(client: Client) -> None:
    done = client.python("-c", _IMPORT)
    assert done.returncode == 0, done.stderr
    modules = [
        path for path in _PACKAGE.rglob("*.py")
        if path.relative_to(_PACKAGE).parts[0] not in ("server", "jobprocess", "__init__.py")
    ]  # fmt: skip
    assert int(done.stdout) > 0.9 * len(modules)


def test_crawls_and_commands_run_on_remote_services(client: Client) -> None:
    crawl = client.python("-m", "scrapy", "crawl", "pages", "-a", f"site={client.site.url}")
    assert "'finish_reason': 'finished'" in crawl.stderr
    assert "'item_scraped_count': 5" in crawl.stderr
    assert " ERROR: " not in crawl.stderr
    folder = client.project.folder
    (folder / "seen.jsonl").write_text('{"_key": "a"}\n')
    page = f"{client.site.url}/page/1"
    codes, errors = client.commands(
        f"extract {page} -o pages.jsonl",
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
    for name, lines in (("pages.jsonl", 1), ("items.jsonl", 5), ("requests.csv", 6)):
        assert (folder / name).read_bytes().count(b"\n") == lines


def test_a_server_says_in_one_line_that_it_cannot_run(client: Client) -> None:
    codes, errors = client.commands("platform serve", "platform keys add me --data data", remote=False)
    assert codes == [1, 1]
    assert errors == f"scrapy platform serve: {_NEEDS}\nscrapy platform keys: {_NEEDS}\n"
    found = client.python("-m", "scrapy", "platform", "doctor", "--json", "--data", "data", remote=False)
    problems = [each for line in found.stdout.splitlines() if (each := json.loads(line))["status"] == "problem"]
    assert [(each["check"], each["finding"]) for each in problems] == [("server", _NEEDS)]
    assert "EXTRACT_API_URL" in problems[0]["remedy"]
    module = client.python("-m", "scrapy_ext.server", remote=False)
    assert (module.returncode, module.stdout, module.stderr) == (1, "", f"error: {_NEEDS}\n")
