"""Crawls whose requests a test writes down, and what became of each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.crawls import Crawl, Project, Running
from tests.support.faulty_service import FaultyService

KEY = "0123456789abcdef-secret"

#: Waves of requests follow each other: each begins when every request of the one before it has come to its end.
SPIDER = '''
import asyncio
import base64
import json
from pathlib import Path

import scrapy


def plain(value):
    """What JSON has no form for."""
    return "bytes " + base64.b64encode(value).decode() if isinstance(value, bytes) else repr(value)


class Planned(scrapy.Spider):
    name = "planned"
    #: Whether callbacks never end, after they have reported their response.
    endless = ""

    def __init__(self, domains="", **arguments):
        super().__init__(**arguments)
        if domains:
            self.allowed_domains = domains.split(",")

    async def start(self):
        waves = json.loads(Path("plan.json").read_text())
        for number, wave in enumerate(waves, 1):
            self.left = len(wave)
            self.over = asyncio.Event()
            for row in wave:
                yield self.request(row, True)
            if number < len(waves):
                await self.over.wait()
        Path("start-is-over").touch()

    def request(self, row, counts=False):
        row = dict(row)
        kwargs = {"counts": counts, "planned": row["url"], "then": row.pop("then", [])}
        if "raw_headers" in row:
            row["headers"] = {name: value.encode("latin-1") for name, value in row.pop("raw_headers").items()}
        return scrapy.Request(**row, callback=self.parse, errback=self.failed, cb_kwargs=kwargs)

    async def parse(self, response, counts, planned, then):
        self.got(response, counts, planned)
        while self.endless:
            await asyncio.sleep(1)
        if "inline" in response.meta:
            inline = response.meta["inline"]
            self.got(await self.crawler.engine.download_async(scrapy.Request(inline)), False, inline)
        yield {"url": planned}
        for row in then:
            yield self.request(row)

    def got(self, response, counts, planned):
        is_text = isinstance(response, scrapy.http.TextResponse)
        self.report(
            counts,
            planned=planned,
            url=response.url,
            status=response.status,
            kind=next(kind.__name__ for kind in type(response).__mro__ if kind.__module__.startswith("scrapy.")),
            text=response.text[:1000] if is_text else None,
            size=len(response.body),
            headers=[[k.decode(), [v.decode("latin-1") for v in vs]] for k, vs in response.headers.items()],
            flags=response.flags,
            result=getattr(response, "extract_result", None),
            holds_its_body_once=(getattr(response, "extract_result", None) or {}).get("httpResponseBody")
            is response.body,
            latency=response.meta.get("download_latency"),
            asked=response.request.url,
            own=response.request.meta.get("own"),
        )
    def needs_browser(self, response):
        """What a request can name as the check of its escalation."""
        return b"Please wait" in response.body

    def failed(self, failure):
        error, kwargs = failure.value, failure.request.cb_kwargs
        self.report(
            kwargs["counts"],
            planned=kwargs["planned"],
            error=type(error).__name__,
            message=str(error),
            kinds=[kind.__name__ for kind in type(error).__mro__],
            type=getattr(error, "type", None),
            status=getattr(error, "status", None) or getattr(getattr(error, "response", None), "status", None),
            retry_after=getattr(error, "retry_after", None),
            blocked_domain=getattr(error, "blocked_domain", None),
            ambiguous=getattr(error, "ambiguous", None),
            violations=[
                [fault.field, fault.rule, fault.remedy, fault.status] for fault in getattr(error, "violations", [])
            ],
            own=failure.request.meta.get("own"),
        )

    def report(self, counts, **outcome):
        with open("outcomes.jsonl", "a") as file:
            file.write(json.dumps(outcome, default=plain) + "\\n")
        if counts:
            self.left -= 1
            if not self.left:
                self.over.set()

'''

#: Without the platform and its server, which most of these tests do not need.
ALONE = "FRONTIER_ENABLED = False\nPLATFORM_ENABLED = False\nROBOTSTXT_OBEY = False\n"
#: With both, and the server for them.
WITH_FRONTIER = "ROBOTSTXT_OBEY = False\n"
#: What may pass is waited for so briefly that a test can afford it.
IMPATIENT: dict[str, Any] = {
    name: {"wait": 0.01, "longest": 0.01}
    for name in (
        "network",
        "unexpected-answer",
        "5xx",
        "/server/internal",
        "/server/timed-out",
        "/download/temporary-error",
    )
}


@dataclass
class Outcome:
    """Outcome of a request: a response, or ``error``."""

    planned: str
    order: int
    url: str = ""
    status: int | None = None
    kind: str = ""
    text: str | None = None
    size: int = 0
    headers: list[tuple[str, list[str]]] | None = None
    flags: list[str] | None = None
    result: dict[str, Any] | None = None
    holds_its_body_once: bool = False
    latency: float | None = None
    asked: str = ""
    own: Any = None
    error: str | None = None
    message: str = ""
    kinds: list[str] | None = None
    type: str | None = None
    retry_after: float | None = None
    blocked_domain: str | None = None
    ambiguous: bool | None = None
    violations: list[list[Any]] | None = None

    def header(self, name: str) -> list[str]:
        """Every value of a header."""
        return next((values for key, values in self.headers or [] if key == name), [])


class Plan:
    """A project with the spider above. ``settings`` are Python values; ``source`` is written as it is."""

    def __init__(
        self, folder: Path, service: FaultyService | None, settings: dict[str, Any] | None = None, source: str = ALONE
    ) -> None:
        given = settings or {}
        if service is not None:
            given = {"EXTRACT_API_URL": service.url, "EXTRACT_API_KEY": KEY} | given
        lines = "".join(f"{name} = {value!r}\n" for name, value in given.items())
        self.folder = folder
        self.project = Project(folder, SPIDER, source + lines)

    def start(self, *waves: Iterable[Any], options: Iterable[str] = ()) -> Running:
        """Start a crawl of these requests: URLs, or arguments of ``scrapy.Request`` by name."""
        rows = [[row if isinstance(row, dict) else {"url": row} for row in wave] for wave in waves]
        (self.folder / "plan.json").write_text(json.dumps(rows))
        return self.project.start("planned", *options)

    def crawl(self, *waves: Iterable[Any], options: Iterable[str] = (), timeout: float = 300) -> Crawl:
        """Crawl them to the end."""
        return self.start(*waves, options=options).end(timeout)

    @property
    def start_is_over(self) -> bool:
        """Return True if a crawl has made all its requests: all are in the scheduler, or behind it."""
        return (self.folder / "start-is-over").exists()

    @property
    def outcomes(self) -> list[Outcome]:
        """Outcomes of the requests of every crawl here, in its order."""
        file = self.folder / "outcomes.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [Outcome(order=order, **json.loads(line)) for order, line in enumerate(lines)]

    def outcome(self, url: str) -> Outcome:
        """Return the outcome of a request."""
        (found,) = [outcome for outcome in self.outcomes if outcome.planned == url]
        return found

    def delivered(self) -> list[str]:
        """The requests that got a response, sorted."""
        return sorted(outcome.planned for outcome in self.outcomes if outcome.error is None)


def setting(name: str, value: Any) -> tuple[str, str]:
    """A setting on the command line."""
    return "-s", f"{name}={value}"


def routed(url: str, meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A request with fields for the extraction."""
    return {"url": url, "meta": {"extract_api": fields or True, **(meta or {})}}


def pages(domain: str, count: int) -> list[str]:
    """Pages of a domain."""
    return [f"https://{domain}/{number}" for number in range(count)]
