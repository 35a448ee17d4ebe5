"""The demonstration: real crawls of the example site, and what they have stored.

``python -m example_project.demo`` starts the site, runs three spiders of this project one after the other with
the embedded services, and shows what the platform holds afterwards. Each run makes jobs of its own, and a
dupefilter collection of its own (``demo_seen_<time>``): a collection that stayed the same would make the next
run skip every page of this one, which is what one is for, but no demonstration.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scrapy.settings import BaseSettings
from scrapy.utils.project import get_project_settings

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.embedded import platform_client

PROJECT = Path(__file__).parent
LOGS = PROJECT / ".scrapy" / "demo"
#: Seconds after which a crawl is stopped: it takes a fifth of that on two cores.
LIMIT = 300

console = Console()


@dataclass
class Crawl:
    """A run of a spider: what it shows, and its settings and arguments."""

    spider: str
    shows: str
    options: list[str] = field(default_factory=list)


@contextlib.contextmanager
def running_site() -> Iterator[str]:
    """The site on a free port; its address."""
    command = [sys.executable, "-m", "example_project.site", "--port", "0", "--exit-with-stdin"]
    with subprocess.Popen(
        command, cwd=PROJECT.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline().split() if process.stdout else []
        if line[:1] != ["ready"]:
            sys.exit("The example site did not start.")
        try:
            yield line[1]
        finally:
            if process.stdin:
                process.stdin.close()


def crawl(planned: Crawl) -> None:
    """Run ``scrapy crawl``; ends the demonstration with the end of its log when that fails."""
    log = LOGS / f"{planned.spider}.log"
    command = [sys.executable, "-m", "scrapy", "crawl", planned.spider, *planned.options]
    began = time.monotonic()
    with log.open("wb") as output, console.status(f"scrapy crawl {planned.spider}: {planned.shows} …"):
        try:
            done = subprocess.run(command, cwd=PROJECT, stdout=output, stderr=output, timeout=LIMIT, check=False)
            fault = f"ended with exit code {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            fault = f"took longer than {LIMIT} s"
    if fault:
        console.print(log.read_text("utf-8", "replace")[-4000:], markup=False, highlight=False)
        sys.exit(f"scrapy crawl {planned.spider} {fault}; its whole log is in {log}")
    console.print(f"  scrapy crawl {planned.spider:<10} {planned.shows} ({time.monotonic() - began:.0f} s)")


async def stored(settings: BaseSettings, runs: int) -> tuple[Table, Table]:
    """Tables of the newest jobs and of what their project holds beside them."""
    async with platform_client(settings) as (client, project):
        found = await client.jobs.list(project, count=runs)
        jobs = Table(title=f"Jobs (the newest {len(found.jobs)} of {found.total})", title_justify="left")
        for title in ("job", "spider", "state", "items", "requests", "log lines", "through the frontier"):
            jobs.add_column(title, justify="left" if title in ("job", "spider", "state") else "right")
        for job in reversed(found.jobs):
            jobs.add_row(job.id, job.spider, job.close_reason or job.state, *await counts(client, JobKey.parse(job.id)))
        return jobs, await beside(client, project)


async def counts(client: PlatformClient, key: JobKey) -> list[str]:
    """How many items, request records and log lines a job has stored, and requests the frontier gave it."""
    numbers = [
        (await resource.stats(key)).totals.input_values for resource in (client.items, client.requests, client.logs)
    ]
    stats = (await client.jobs.metadata(key)).get("frameworkstats") or {}
    return [*map(str, numbers), str(stats.get("scheduler/dequeued", "?"))]


async def beside(client: PlatformClient, project: int) -> Table:
    """Collections, and the frontiers that are left."""
    table = Table(title="Beside the jobs", title_justify="left")
    table.add_column("what")
    table.add_column("records", justify="right")
    for one in await client.collections.list(project):
        table.add_row(f"collection {one.name}", str(await client.collections.count(project, one.type, one.name)))
    frontiers = await client.frontier.frontiers(project)
    table.add_row("frontiers left (a crawl removes its own when it has finished)", str(len(frontiers)))
    return table


def main() -> None:
    """Run it."""
    os.chdir(PROJECT)
    LOGS.mkdir(parents=True, exist_ok=True)
    seen = f"demo_seen_{time.strftime('%Y%m%d_%H%M%S')}"
    plan = [
        Crawl("catalogue", "300 products, extracted from HTTP responses", ["-s", f"DUPEFILTER_COLLECTION={seen}"]),
        Crawl("news", "a section of a newspaper", ["-a", "section=harbour"]),
        Crawl("reviews", "a click in a browser, and screenshots", ["-a", f"screenshots={LOGS / 'screenshots'}"]),
    ]
    with running_site() as site:
        os.environ["SITE_URL"] = site
        console.print(f"The example site runs at {site}. Its spiders, through the embedded services:")
        for planned in plan:
            crawl(planned)
        for table in asyncio.run(stored(get_project_settings(), len(plan))):
            console.print()
            console.print(table)
    shown = os.path.relpath(PROJECT, os.environ.get("PWD", PROJECT.parent))
    console.print("\nLook at it:")
    for command in ("items", "jobs", "logs", "serve"):
        console.print(f"  cd {shown} && scrapy platform {command}", highlight=False)
    console.print(f"Screenshots: {LOGS / 'screenshots'}", highlight=False)


if __name__ == "__main__":
    main()
