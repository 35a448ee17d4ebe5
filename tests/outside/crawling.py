"""Crawls of a case: a project in a folder, `scrapy crawl` in it, and its outcome."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.outside.cases import Answer, Crawl
from tests.support.crawls import Project, collect, key
from tests.support.handwritten_site import Call, Target

#: Seconds after which a crawl hangs.
TIMEOUT = 120
#: Extension of the project that writes the outcome of a run.
_OUTCOME = """
import json
from itemadapter import ItemAdapter
from scrapy import signals


class Outcome:
    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.items, self.crawler = [], crawler
        crawler.signals.connect(self.scraped, signals.item_scraped)
        crawler.signals.connect(self.closed, signals.spider_closed)
        return self

    def scraped(self, item):
        self.items.append(ItemAdapter(item).asdict())

    def closed(self, reason):
        # Those that a case can compare: its spider may set stats that no JSON holds.
        stats = {
            name: value
            for name, value in self.crawler.stats.get_stats().items()
            if isinstance(value, str) or (isinstance(value, (int, float)) and abs(value) < 2**63)
        }
        outcome = {"items": self.items, "reason": reason, "stats": stats}
        with open("outcome.json", "w") as file:
            json.dump(outcome, file, default=str, skipkeys=True)
"""
_SETTINGS = """
EXTENSIONS = {"project.outcome.Outcome": 0}
"""


class Crawls:
    """Both projects of a case, one with the add-on and one without."""

    def __init__(self, case: Crawl, folder: Path) -> None:
        self._case = case
        self._folder = folder

    def with_addon(self) -> dict[str, Any]:
        """Outcome of the last run with the add-on and its embedded services."""
        return self._run("with", "")

    def without_addon(self) -> dict[str, Any]:
        """Outcome of the last run of Scrapy alone."""
        return self._run("without", "ADDONS = {}\n")

    def _run(self, name: str, more: str) -> dict[str, Any]:
        # A site of its own, so that no run sees the hits of another.
        site = Target(latency=self._case.latency).start()
        try:
            for path, page in self._case.pages.items():
                site.page(path, page.replace("{site}", site.url().rstrip("/")))
            for path, answers in self._case.answers.items():
                _serve(site, path, answers)
            project = self._project(name, more, site)
            for _ in range(self._case.runs):
                site.calls.clear()
                outcome = _crawl(project, self._case)
            outcome |= _seen_by(site)
            outcome["files"] = {name: (project.folder / name).read_text() for name in self._case.files}
            if not more:
                outcome["stored"] = _Stored(project, self._case.stored_job or self._case.runs)
            return outcome
        finally:
            site.stop()

    def _project(self, name: str, more: str, site: Target) -> Project:
        settings: Mapping[str, Any] = {"SERVER_ALLOW_HOSTS": [site.host], **self._case.settings}
        lines = "".join(f"{setting} = {value!r}\n" for setting, value in settings.items())
        lines = lines.replace("{port}", str(site.port))
        source = self._case.spider.replace("{site}", site.url().rstrip("/"))
        project = Project(self._folder / name, source, _SETTINGS + lines + more)
        (project.folder / "project" / "outcome.py").write_text(_OUTCOME)
        return project


def _serve(site: Target, path: str, answers: list[Answer]) -> None:
    """Let the site give the answers of a path one after another."""
    waiting = [_encoded(answer, site) for answer in answers]

    async def handler(call: Call, writer: asyncio.StreamWriter) -> None:
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        writer.write(answer if call.method != "HEAD" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        await writer.drain()

    site.handle(path, handler)


def _encoded(answer: Answer, site: Target) -> bytes:
    url = site.url().rstrip("/")
    body = answer.body.replace("{site}", url).encode()
    has_body = answer.status not in (204, 304)
    headers = [*answer.headers]
    if has_body:
        headers += [("Content-Type", answer.type)] * bool(answer.type) + [("Content-Length", str(len(body)))]
    lines = "".join(f"{name}: {value.replace('{site}', url)}\r\n" for name, value in headers)
    return f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode() + body * has_body


def _seen_by(site: Target) -> dict[str, Any]:
    """Requests of the last run as the site had them, with ``{site}`` for its URL in headers."""
    times = [call.time for call in site.calls]
    return {
        "paths": [call.path for call in site.calls],
        "sent": {call.path: _headers(call, site) for call in site.calls},
        "received": [[call.method, call.path, call.body.decode("latin-1")] for call in site.calls],
        "gap": (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else math.inf,
    }


def _headers(call: Call, site: Target) -> dict[str, str]:
    return {name.lower(): value.replace(site.url().rstrip("/"), "{site}") for name, value in call.headers}


class _Stored:
    """Items that the platform has of the last job, read when they are compared."""

    def __init__(self, project: Project, job: int) -> None:
        self._project, self._job = project, job

    def __eq__(self, other: object) -> bool:
        return in_any_order(self.items()) == in_any_order(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.items())

    def items(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in item.items() if not name.startswith("_")}
            for item in self._project.items(f"1/1/{self._job}")
        ]

    def log(self) -> str:
        """Messages of the job's log on the platform."""
        job = key(f"1/1/{self._job}")
        records = self._project.stored(lambda client, _project: collect(client.logs.iter(job)))
        return "\n".join(record["message"] for record in records)


def in_any_order(value: Any) -> Any:
    """Value with a list sorted: requests that run at the same time end in any order."""
    return sorted(value, key=json.dumps) if isinstance(value, list) else value


def _crawl(project: Project, case: Crawl) -> dict[str, Any]:
    running = project.start("s", *case.arguments, environment=case.environment)
    try:
        code = running.process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
        raise AssertionError(f"the crawl did not end:\n{running.log.read_text()[-5000:]}") from None
    written = project.folder / "outcome.json"
    # Without it, the spider was never closed.
    outcome: dict[str, Any] = json.loads(written.read_text()) if written.exists() else {"items": [], "stats": {}}
    written.unlink(missing_ok=True)
    return {**outcome, "exit": code, "log": running.log.read_text(errors="replace")}
