"""Demonstration: real crawls of the example site, and their stored data.

``python -m example_project.demo`` starts the site, runs three spiders of this project one after the other with
the embedded services, and shows what the platform holds afterwards. Each run makes jobs of its own, and a
dupefilter collection of its own (``demo_seen_<time>``): a collection that stayed the same would make the next
run skip every page of this one, which is what one is for, but no demonstration.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scrapy.settings import BaseSettings
from scrapy.utils.project import get_project_settings

from example_project.site import news, shop
from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.crawl.commit.execution import COLLECTION as COMMITS
from scrapy_ext.crawl.session.services import platform_client

PROJECT = Path(__file__).parent
RUN = PROJECT / ".scrapy" / "demo"
#: Timeout of a crawl in seconds; each takes a tenth of that on two cores.
LIMIT = 300

_JOB = re.compile(r"'platform/job': '(\d+/\d+/\d+)'")

#: Width of a table without a terminal, in columns.
WIDTH = 200

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH)


@dataclass
class Crawl:
    """A run of a spider: title, expected number of items, settings and arguments."""

    spider: str
    shows: str
    items: int
    options: list[str] = field(default_factory=list)


@contextlib.contextmanager
def running_site() -> Iterator[str]:
    """Run the site on a free port; return its URL."""
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


def crawl(planned: Crawl) -> JobKey:
    """Run ``scrapy crawl`` and return its job. On failure, exit with the end of its log."""
    log = RUN / f"{planned.spider}-{os.getpid()}.log"
    command = [sys.executable, "-m", "scrapy", "crawl", planned.spider, *planned.options]
    began = time.monotonic()
    with log.open("wb") as output, console.status(f"scrapy crawl {planned.spider}: {planned.shows} …"):
        try:
            done = subprocess.run(command, cwd=PROJECT, stdout=output, stderr=output, timeout=LIMIT, check=False)
            fault = f"ended with exit code {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            fault = f"took longer than {LIMIT} s"
    text = log.read_text("utf-8", "replace")
    job = _JOB.search(text)
    if fault or job is None:
        console.print(text[-4000:], markup=False)
        sys.exit(f"scrapy crawl {planned.spider} {fault or 'made no job'}; its whole log is in {log}")
    console.print(f"  scrapy crawl {planned.spider:<10} {planned.shows} ({time.monotonic() - began:.0f} s)")
    return JobKey.parse(job[1])


async def look(settings: BaseSettings, jobs: dict[JobKey, Crawl]) -> bool:
    """Print the stored data; return whether each job stored as many items as the site has."""
    async with platform_client(settings) as (client, project):
        total = (await client.jobs.list(project, count=1)).total
        table = Table(title=f"Jobs of this run; the project has {total}", title_justify="left", box=SIMPLE_HEAD)
        for title in ("job", "spider", "closed", "items", "requests", "through the frontier", "log lines"):
            table.add_column(title, justify="left" if title in ("job", "spider", "closed") else "right")
        complete = True
        for key, planned in jobs.items():
            items, *others = await counts(client, key)
            complete = complete and items == planned.items
            reason = str((await client.jobs.metadata(key)).get("close_reason"))
            found = f"{items}" if items == planned.items else f"{items} of {planned.items}"
            table.add_row(str(key), planned.spider, reason, found, *map(str, others))
        console.print(table)
        console.print(await beside(client, project))
        return complete


async def counts(client: PlatformClient, key: JobKey) -> list[int]:
    """Return the numbers of a job's items, request records, requests read from its frontier, and log lines."""
    stats = (await client.jobs.metadata(key)).get("frameworkstats") or {}
    items, requests, logs = [
        (await resource.stats(key)).totals.input_values for resource in (client.items, client.requests, client.logs)
    ]
    return [items, requests, int(stats.get("scheduler/dequeued/frontier", 0)), logs]


async def beside(client: PlatformClient, project: int) -> Table:
    """Print the collections, and the remaining frontiers."""
    table = Table(title="Beside the jobs", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("what")
    table.add_column("how many", justify="right")
    for one in (await client.collections.list(project))[-5:]:
        count = await client.collections.count(project, one.type, one.name)
        held = "items of commits under way" if one.name == COMMITS else "pages that the dupefilter keeps"
        table.add_row(f"records of collection {one.name}: {held}", str(count))
    frontiers = await client.frontier.frontiers(project)
    table.add_row("frontiers left: a crawl that has finished removes its own", str(len(frontiers)))
    return table


def hints() -> Iterator[str]:
    """Print commands for a closer inspection."""
    scrapy = os.path.relpath(Path(sys.executable).parent / "scrapy", PROJECT)
    folder = os.path.relpath(PROJECT, os.environ.get("PWD") or PROJECT.parent)
    yield "Look at it:"
    for command in ("items", "jobs", "logs"):
        yield f"  cd {folder} && {scrapy} platform {command}"
    yield "In a browser, at http://127.0.0.1:8700 with the API key demo:"
    yield f"  cd {folder} && PLATFORM_API_KEY=demo {scrapy} platform serve"
    yield f"Screenshots are in {RUN / 'screenshots'}"


def plan() -> list[Crawl]:
    """Return the crawls of the demonstration."""
    seen = f"demo_seen_{time.strftime('%Y%m%d_%H%M%S')}"
    return [
        Crawl(
            "catalogue",
            "a shop, its products extracted from HTTP responses",
            len(shop.PRODUCTS),
            ["-s", f"DUPEFILTER_COLLECTION={seen}"],
        ),
        Crawl("news", "a section of a newspaper", news.ARTICLES_PER_SECTION, ["-a", "section=harbour"]),
        Crawl(
            "reviews",
            "a click in a browser, and screenshots",
            shop.BEST_RATED,
            ["-a", f"screenshots={RUN / 'screenshots'}"],
        ),
    ]


def main() -> None:
    """Run the demonstration."""
    crawls = plan()
    parser = argparse.ArgumentParser(
        prog="python -m example_project.demo", description=(__doc__ or "").partition("\n")[0]
    )
    names = [planned.spider for planned in crawls]
    parser.add_argument("spiders", nargs="*", metavar="SPIDER", help=f"only these: {', '.join(names)}")
    chosen = parser.parse_args().spiders or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no such spider: {', '.join(sorted(unknown))}; choose of {', '.join(names)}")
    os.chdir(PROJECT)
    RUN.mkdir(parents=True, exist_ok=True)
    with running_site() as site:
        os.environ["SITE_URL"] = site
        console.print(f"The example site runs at {site}. Its spiders:")
        jobs = {crawl(planned): planned for planned in crawls if planned.spider in chosen}
        complete = asyncio.run(look(get_project_settings(), jobs))
    for line in hints():
        console.print(line, markup=False)
    if not complete:
        sys.exit("A crawl did not store everything that the site has; its log is in the folder of the screenshots.")


if __name__ == "__main__":
    main()
