"""Scrapyd's page of jobs, its lists of files, and the log and the items of a job as files.

Clients such as ScrapydWeb read the tables, whose cells are those of Scrapyd. A file's name is the ID of its job.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timezone
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import LogRecord
from scrapy_ext.api.violations import ContractError
from scrapy_ext.formats import Page
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import TEXT, not_found
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.http.formats import result
from scrapy_ext.server.http.record_writers import Text
from scrapy_ext.server.http.routes import Router, Routes
from scrapy_ext.server.scrapyd.jobs import files_of, listed, time_of, utc_time
from scrapy_ext.server.scrapyd.naming import Projects, id_of, jobs_of
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, ran_for
from scrapy_ext.server.store.records.records import Slice, Span

#: Maximum jobs in the list of a spider's files.
_MOST_FILES: Final = 1000
#: In place of the time of a log record whose number is no time of a calendar.
_NO_TIME: Final = "0000-00-00 00:00:00"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_HTML: Final = schemas.AnswerShape("A page.", {"text/html": schemas.STRING})

ROUTES: Final = Routes(tag="scrapyd")


def _page(title: str, head: Markup, rows: Iterable[Markup]) -> Response:
    page = Markup(
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{0}</title></head>\n<body>\n'
        "<h1>{0}</h1>\n<table>\n<thead>{1}</thead>\n<tbody>\n{2}\n</tbody>\n</table>\n</body>\n</html>\n"
    )
    return HTMLResponse(page.format(title, head, Markup("\n").join(rows)), headers=_HEADERS)


def _row(cells: Iterable[str]) -> Markup:
    return Markup("<tr>\n{}\n</tr>").format(_cells(cells))


def _cells(cells: Iterable[str]) -> Markup:
    return Markup("\n").join(Markup("    <td>{}</td>").format(cell) for cell in cells)


def _head(cells: Iterable[str]) -> Markup:
    return Markup("<tr>{}</tr>").format(Markup("").join(Markup("<th>{}</th>").format(cell) for cell in cells))


# ── jobs ──

_COLUMNS: Final = ("Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items")


@ROUTES.add("GET /jobs", "Show pending, running and the last finished jobs of all projects. As in Scrapyd.", _HTML)
async def _jobs(call: Call) -> Response:
    projects = await Projects.of(call)
    rows = [
        _job_row(projects.name(job.key.project), job, call.store.clock())
        for state in SHOWN_STATES
        for job in await listed(call, projects.numbers, state)
    ]
    return _page("Jobs", _head(_COLUMNS), rows)


def _job_row(project: str, job: StoredJob, now: int) -> Markup:
    files = files_of(project, job)
    log, items = (_link(files[name], text) for name, text in (("log_url", "Log"), ("items_url", "Items")))
    start, finish = time_of(job, "running_time"), ""
    if job.state is JobState.FINISHED:
        finish = time_of(job, "finished_time")
        # A job that was cancelled before it began has no start; without one, clients take it for a pending one.
        start = start or finish
    return _row((project, job.spider, id_of(job), "", start, _runtime(job, now), finish, log, items))


def _runtime(job: StoredJob, now: int) -> str:
    ran = ran_for(job, now)
    if job.state is JobState.PENDING or ran is None:
        return ""
    seconds = ran // 1000
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _link(address: str | None, text: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(quote(address), text) if address else Markup("")


# ── lists of files ──


class _Kind(NamedTuple):
    """A kind of records: the resource, and the suffix and type of its files."""

    name: str
    suffix: str
    media_type: str

    def has(self, job: StoredJob) -> bool:
        return bool(getattr(job.counts, self.name))


_KINDS: Final = (_Kind("logs", ".log", TEXT), _Kind("items", ".jl", "application/x-jsonlines; charset=UTF-8"))


def _listing(path: str, entries: Iterable[tuple[str, str]]) -> Response:
    """Return a list of folders and files in the form of Scrapyd; entries have name and time."""
    head = _head(("Filename", "Size", "Last modified", "Content type", "Content encoding"))
    rows = []
    for number, (name, modified) in enumerate(entries):
        kind = "[Directory]" if name.endswith("/") else f"[{TEXT.partition(';')[0]}]"
        link = Markup('<a href="{}">{}</a>').format(quote(name), name)
        parity = "even" if number % 2 else "odd"
        cells = _cells((link, "", modified, kind, ""))
        rows.append(Markup('<tr class="{}">\n{}\n</tr>').format(parity, cells))
    return _page(f"Directory listing for {path}", head, rows)


async def _projects(kind: _Kind, call: Call) -> Response:
    projects = await Projects.of(call)
    return _listing(f"/{kind.name}/", [(f"{name}/", "") for name in projects.names])


async def _named(call: Call) -> int:
    """Return the project of a path. Where there is none, the path is that of records, with a number that is none."""
    name = call.part("project_name")
    try:
        return (await Projects.of(call)).find(call, name)
    except ContractError:
        return path_number(name, "project")


async def _spiders(kind: _Kind, call: Call) -> Response:
    project = await _named(call)
    spiders = await call.store.spiders.listed(project)
    return _listing(f"/{kind.name}/{call.part('project_name')}/", [(f"{spider.name}/", "") for spider in spiders])


async def _files(kind: _Kind, call: Call) -> Response:
    project = await _named(call)
    which = JobFilter(spider=call.part("spider_name"), states=SHOWN_STATES)
    jobs = await call.store.jobs.listed(project, which, JobPage(_MOST_FILES), counts=True)
    entries = [(f"{id_of(job)}{kind.suffix}", _minute(job.updated)) for job in jobs if kind.has(job)]
    return _listing(f"/{kind.name}/{call.part('project_name')}/{call.part('spider_name')}/", entries)


def _minute(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, timezone.utc).strftime("%Y-%m-%d %H:%M")


# ── files ──


async def _file(kind: _Kind, call: Call) -> Response:
    name = call.part("file_name")
    if not name.endswith(kind.suffix):
        raise not_found(f"There is no file {name[:60]}. Follow a link of /logs/ or /items/.")
    project = (await Projects.of(call)).find(call, call.part("owner"))
    found = await jobs_of(call, project, name.removesuffix(kind.suffix))
    job = next((each for each in found if each.spider == call.part("spider_name")), None)
    if job is None:
        raise not_found(f"There is no job {name.removesuffix(kind.suffix)[:60]}. Follow a link of /jobs.")
    moved = call.moved(f"/{kind.name}/{job.key}", [("format", "jl")])
    if kind.name == "items":
        return await call.service(Router).answer(moved)
    answer = await result(moved, _log(call, job.key))
    answer.headers["content-type"] = kind.media_type
    return answer


async def _log(call: Call, key: JobKey) -> AsyncIterator[Page]:
    """Yield the log of a job as Scrapy writes it, but for the names of loggers, which are not stored."""
    async for part in call.store.logs.scan(Span(*key), (key.spider, key.job, 0)):
        # A thread leaves the event loop to other requests.
        yield Text([await in_data_thread(_lines, part)])


_decode: Final = msgspec.json.Decoder(LogRecord).decode


def _lines(part: Slice) -> bytes:
    return "".join(map(_line, map(_decode, part.lines))).encode()


def _line(record: LogRecord) -> str:
    return f"{utc_time(record.time) or _NO_TIME} [scrapy] {logging.getLevelName(record.level)}: {record.message}\n"


for _kind in _KINDS:
    _root = f"GET /{_kind.name}"
    for _path, _summary, _answer in (
        ("", "Show the projects as folders.", _projects),
        ("/{project_name:name}", "Show the spiders of a project as folders.", _spiders),
        ("/{project_name:name}/{spider_name}", f"Show the {_kind.name} of a spider as files.", _files),
    ):
        ROUTES.add(f"{_root}{_path}", f"{_summary} As in Scrapyd.", _HTML)(partial(_answer, _kind))
    ROUTES.add(
        f"{_root}/{{owner}}/{{spider_name}}/{{file_name:name}}",
        f"Read the {_kind.name} of a job as a file: <ID>{_kind.suffix}. As in Scrapyd.",
        schemas.AnswerShape("The file.", {_kind.media_type.partition(";")[0]: schemas.STRING}),
    )(partial(_file, _kind))
