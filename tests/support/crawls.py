"""Real crawls as subprocesses: a project in a folder, `scrapy crawl` in it, and what it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from scrapy.settings import BaseSettings

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.crawl.session.services import platform_client
from tests.support import forked
from tests.support.documented_names import undocumented

T = TypeVar("T")

#: Variables that would point a crawl elsewhere.
_OURS = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|SCRAPY|SITE)_\w+")


@dataclass
class Crawl:
    """A crawl that has ended."""

    returncode: int
    log: str

    def stat(self, name: str) -> int:
        """A number of Scrapy's stats; 0 when it was not counted."""
        found = re.search(rf"'{re.escape(name)}': (\d+)", self.log)
        return int(found[1]) if found else 0

    @property
    def reason(self) -> str:
        """Scrapy's close reason."""
        found = re.search(r"Spider closed \(([^)]*)\)", self.log)
        return found[1] if found else ""

    @property
    def errors(self) -> list[str]:
        """Lines of level ERROR and above."""
        return [line for line in self.log.splitlines() if re.search(r" (ERROR|CRITICAL): ", line)]


@dataclass
class Running:
    """A crawl that was started."""

    process: subprocess.Popen[bytes] | forked.ForkedProcess
    log: Path

    def end(self, timeout: float = 300) -> Crawl:
        """Wait until it has ended. All its stats and its close reason are documented."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the crawl did not end:\n{self.log.read_text()[-5000:]}") from None
        crawl = Crawl(self.process.returncode, self.log.read_text())
        assert undocumented(crawl.log) == []
        return crawl


class Project:
    """A Scrapy project in a folder of its own. ``is_forked``: its crawls do not import Scrapy anew, nor its server."""

    def __init__(self, folder: Path, spiders: str, settings: str = "", *, is_forked: bool = True) -> None:
        self.folder = folder
        self._start = forked.start if is_forked else subprocess.Popen
        package = folder / "project"
        package.mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = project.settings\n")
        (package / "__init__.py").write_text("")
        (package / "settings.py").write_text(
            'BOT_NAME = "project"\nSPIDER_MODULES = ["project.spiders"]\nADDONS = {"scrapy_ext.Addon": 500}\n'
            "TELNETCONSOLE_ENABLED = False\n" + settings
        )
        (package / "spiders.py").write_text(spiders)

    def start(self, spider: str, *arguments: str, environment: dict[str, str] | None = None) -> Running:
        """Start `scrapy crawl`."""
        # A file, not a pipe: a crawl whose log nobody reads must go on.
        log = self.folder / f"crawl-{len(list(self.folder.glob('crawl-*.log')))}.log"
        with log.open("wb") as stream:
            process = self._start(
                [sys.executable, "-m", "scrapy", "crawl", spider, *arguments],
                cwd=self.folder,
                env=self._environment(environment or {}),
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
        return Running(process, log)

    def crawl(self, spider: str, *arguments: str, environment: dict[str, str] | None = None) -> Crawl:
        """Run `scrapy crawl` to its end."""
        return self.start(spider, *arguments, environment=environment).end()

    def command(self, *arguments: str, typed: str = "") -> str:
        """Run another command of Scrapy; returns its standard output."""
        return self.run("-m", "scrapy", *arguments, typed=typed)

    def run(self, *arguments: str, typed: str = "") -> str:
        """Run Python in the project; returns its standard output."""
        done = forked.run([sys.executable, *arguments], cwd=self.folder, env=self._environment({}), input=typed)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)} | more

    def stored(self, ask: Callable[[PlatformClient, int], Awaitable[T]]) -> T:
        """Ask the embedded platform of the project something."""

        async def run() -> T:
            settings = BaseSettings({"SERVER_DATA": str(self.folder / ".scrapy" / "platform")})
            async with platform_client(settings) as (client, project):
                return await ask(client, project)

        with forked.embedded_servers() if self._start is forked.start else contextlib.nullcontext():
            return asyncio.run(run())

    def items(self, job: str) -> list[dict]:
        """The items of a job."""
        return self.stored(lambda client, _project: collect(client.items.iter(key(job))))


def ask_server(url: str, platform_key: str, ask: Callable[[PlatformClient], Awaitable[T]]) -> T:
    """Ask a running platform something."""

    async def run() -> T:
        async with PlatformClient(PlatformUrls.single(url), platform_key) as client:
            return await ask(client)

    return asyncio.run(run())


async def collect(iterator) -> list:
    """All of an asynchronous iterator."""
    return [value async for value in iterator]


def key(job: str):
    """A job key from its text."""
    from scrapy_ext.api.platform import JobKey

    return JobKey.parse(job)
