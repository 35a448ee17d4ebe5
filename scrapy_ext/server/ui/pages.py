"""The pages: ``/`` lists a project's jobs, ``/ui/<project>/<spider>/<job>`` shows one and what it stored.

``/p/<project>/<spider>/<job>``, which clients of the hosted platform print, leads there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey, is_number
from scrapy_ext.server.auth import basic_credentials
from scrapy_ext.server.keyring import Grant
from scrapy_ext.server.platform.answers import refusal_of
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.errors import StoreAwayError
from scrapy_ext.server.store.job_queries import JobFilter, Page
from scrapy_ext.server.store.job_rows import StoredJob
from scrapy_ext.server.store.records import RecordStore, Slice, Span
from scrapy_ext.server.ui import shapes

_JOBS_PER_PAGE: Final = 50
_RECORDS_PER_PAGE: Final = 50
_LINES_PER_PAGE: Final = 200
#: Columns of the table of items: the fields that most of them have.
_COLUMNS: Final = 8
_SHOWN: Final = (JobState.PENDING, JobState.RUNNING, JobState.FINISHED)
#: What a job's page has beside its overview.
_PARTS: Final = ("items", "requests", "log")
#: Seconds between reloads, for who asks for them.
_REFRESH: Final = 5

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_UNAUTHORIZED: Final = "The user name is the platform's API key; the password stays empty.\n"

View = Callable[[Request], Awaitable[Response]]


class _Number(IntegerConvertor):
    """A number that the store can hold; every other address is that of no page."""

    regex = "[0-9]{1,18}|[1-8][0-9]{18}"


register_url_convertor("number", _Number())


class _MissingError(Exception):
    """There is no such page."""


class _WrongError(Exception):
    """The address breaks a rule; the message says which."""


class Pages:
    """The pages over a store; ``routes`` are to be mounted at the root."""

    def __init__(self, store: Store, grant_of: Callable[[str], Awaitable[Grant | None]]) -> None:
        self._store = store
        self._grant_of = grant_of
        self._templates = Environment(
            loader=PackageLoader("scrapy_ext.server.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(shapes.FILTERS)
        self._style = files("scrapy_ext.server.ui").joinpath("static", "style.css").read_bytes()
        job = "/ui/{project:number}/{spider:number}/{job:number}"
        self.routes: list[BaseRoute] = [
            Route("/", self._guarded(self._jobs)),
            Route("/p/{project:number}/{spider:number}/{job:number}", _moved),
            Route("/p/{project:number}/{spider:number}/{job:number}/{part}", _moved),
            Route("/ui/static/style.css", self._stylesheet),
            Route(job, self._guarded(self._job)),
            Route(job + "/items", self._guarded(self._items)),
            Route(job + "/items/{number:number}", self._guarded(self._item)),
            Route(job + "/requests", self._guarded(self._requests)),
            Route(job + "/log", self._guarded(self._log)),
        ]

    def _guarded(self, view: View) -> View:
        async def page(request: Request) -> Response:
            name, _ = basic_credentials(request.headers.get("authorization", "")) or ("", "")
            grant: Grant | None = None
            try:
                grant = await self._grant_of(name) if name else None
                if grant is None:
                    challenge = {"WWW-Authenticate": 'Basic realm="platform API key as user name"', **_HEADERS}
                    return PlainTextResponse(_UNAUTHORIZED, 401, challenge)
                request.state.grant = grant
                if "project" in request.path_params and not grant.may_read(request.path_params["project"]):
                    raise _MissingError
                return await view(request)
            except _MissingError:
                return self._rendered("message.html", 404, title="Not found", text="There is nothing at this address.")
            except _WrongError as error:
                return self._rendered("message.html", 400, title="Not an address", text=str(error))
            except StoreError as error:
                return self._failed(error, trusted=grant is not None and grant.all_projects)

        return page

    def _failed(self, error: StoreError, *, trusted: bool) -> Response:
        """What is wrong with the store, as much of it as the platform tells its own clients."""
        refusal = refusal_of(error, trusted=trusted)
        title = "The store is away" if isinstance(error, StoreAwayError) else "The store failed"
        answer = self._rendered("message.html", refusal.status, title=title, text=refusal.message)
        answer.headers.update(refusal.headers)
        return answer

    async def _stylesheet(self, _request: Request) -> Response:
        return Response(self._style, media_type="text/css", headers={"Cache-Control": "max-age=300"})

    def _rendered(self, template: str, status: int = 200, /, **context: Any) -> Response:
        context = {"refresh": None, "project": None, **context}
        text = self._templates.get_template(template).render(context)
        return Response(text, status, _HEADERS, media_type="text/html; charset=UTF-8")

    async def _jobs(self, request: Request) -> Response:
        grant: Grant = request.state.grant
        projects = [project for project in await self._store.jobs.projects() if grant.may_read(project)]
        asked = request.query_params.get("project")
        if asked and not is_number(asked):
            raise _WrongError(f"project must be a number, got {asked[:60]!r}. Correct the address.")
        project = int(asked) if asked else projects[0] if projects else min(grant.projects or (0,))
        if not grant.may_read(project):
            raise _MissingError
        state = request.query_params.get("state")
        states = tuple(each for each in _SHOWN if each.value == state) or _SHOWN
        counts = {each.value: await self._store.jobs.count(project, JobFilter(states=(each,))) for each in _SHOWN}
        offset = _number(request, "offset", 0)
        which = JobFilter(states=states)
        jobs = await self._store.jobs.listed(project, which, Page(_JOBS_PER_PAGE + 1, offset), counts=True)
        return self._rendered(
            "jobs.html",
            projects=projects,
            project=project,
            state=states[0].value if len(states) == 1 else None,
            state_counts=counts,
            jobs=[shapes.summary(job, self._store.clock()) for job in jobs[:_JOBS_PER_PAGE]],
            offset=offset,
            newer=max(offset - _JOBS_PER_PAGE, 0) if offset else None,
            older=offset + _JOBS_PER_PAGE if len(jobs) > _JOBS_PER_PAGE else None,
            refresh=_refresh(request),
        )

    async def _job(self, request: Request) -> Response:
        key = _key(request)
        context = await self._context(key, "overview")
        stats = await self._store.items.stats(key)
        total = stats.totals.input_values
        metadata: Mapping[str, Any] = context["job"].metadata
        return self._rendered(
            "job.html",
            **context,
            fields=sorted(stats.counts.items(), key=lambda pair: (-pair[1], pair[0])),
            total=total,
            item_bytes=stats.totals.input_bytes,
            metadata=[pair for pair in metadata.items() if not isinstance(pair[1], dict)],
            groups=[pair for pair in metadata.items() if isinstance(pair[1], dict) and pair[1]],
            refresh=_refresh(request),
        )

    async def _items(self, request: Request) -> Response:
        key = _key(request)
        stats = await self._store.items.stats(key)
        records, paging = await self._records(request, self._store.items, key, _RECORDS_PER_PAGE)
        columns = shapes.columns(stats.counts, [record for _, record in records], _COLUMNS)
        context = await self._context(key, "items")
        return self._rendered("items.html", **context, columns=columns, records=records, paging=paging)

    async def _item(self, request: Request) -> Response:
        key, number = _key(request), request.path_params["number"]
        found = await self._store.items.at(key, [number])
        if not found:
            raise _MissingError
        decoded = msgspec.json.decode(found[0].lines[0])  # shows letters where the bytes may have escapes
        text = msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()
        last = (await self._store.items.stats(key)).totals.input_values - 1
        context = await self._context(key, "items")
        return self._rendered("item.html", **context, number=number, last=last, text=text, stored=found[0].ts)

    async def _requests(self, request: Request) -> Response:
        key = _key(request)
        records, paging = await self._records(request, self._store.requests, key, _RECORDS_PER_PAGE)
        return self._rendered("requests.html", **await self._context(key, "requests"), records=records, paging=paging)

    async def _log(self, request: Request) -> Response:
        key = _key(request)
        records, paging = await self._records(request, self._store.logs, key, _LINES_PER_PAGE)
        return self._rendered("log.html", **await self._context(key, "log"), records=records, paging=paging)

    async def _context(self, key: JobKey, tab: str) -> dict[str, Any]:
        """What every page of a job shows. Data may be there although the job itself was never created."""
        found = await self._store.jobs.get(key)
        job = found or StoredJob(key, "", JobState.FINISHED, 0, 0, {})
        totals = {
            store.kind.name: (await store.stats(key)).totals.input_values
            for store in (self._store.items, self._store.requests, self._store.logs)
        }
        if found is None and not any(totals.values()):
            raise _MissingError
        summary = shapes.summary(job, self._store.clock())
        return {
            "job": job,
            "summary": summary,
            "known": found is not None,
            "tab": tab,
            "totals": totals,
            "project": key.project,
            "path": f"/ui/{key}",
        }

    async def _records(
        self, request: Request, store: RecordStore, key: JobKey, size: int
    ) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
        """A page of records with their indexes, and where the other pages are."""
        total = (await store.stats(key)).totals.input_values
        start = _number(request, "start", 0)
        span = Span(key.project, key.spider, key.job)
        slices: list[Slice] = [part async for part in store.scan(span, (key.spider, key.job, start), size)]
        records = [
            (number, msgspec.json.decode(line)) for part in slices for number, line in enumerate(part.lines, part.start)
        ]
        return records, shapes.paging(start, size, total)


async def _moved(request: Request) -> Response:
    """Where a job's page is whose address was printed by the tools of the hosted platform."""
    part = request.path_params.get("part")
    path = f"/ui/{_key(request)}" + (f"/{part}" if part in _PARTS else "")
    return RedirectResponse(path, 307)


def _key(request: Request) -> JobKey:
    return JobKey(*(request.path_params[name] for name in ("project", "spider", "job")))


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else default


def _refresh(request: Request) -> int | None:
    return _REFRESH if request.query_params.get("refresh") else None
