"""``/ui/<project>/search``: jobs, spiders, items and requests by one text, which the head of each page asks for.

A key or a number is looked up; names of spiders contain the text; a URL is searched in the requests of the newest jobs,
within the bounds below. A single answer is opened at once, unless a search ended before all was searched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import EntityKey, JobKey, is_number
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.record_search import MOST_SECONDS, Wanted, search_records
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.queries import JobPage as Page
from scrapy_ext.server.store.spiders import Spider
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_summary import Summary, summary

#: Maximum characters of a text.
_MOST_TEXT: Final = 2000
#: Maximum answers of each kind.
_SHOWN: Final = 20
#: Spiders among whose jobs one is looked up by its number alone.
_SPIDERS: Final = 500
#: Newest jobs whose requests are searched; after the time of one search, no further job is.
_JOBS: Final = 50


class _Request(msgspec.Struct):
    """The members of a request record that are searched or shown."""

    url: str
    status: int


_read: Final[Callable[[bytes], _Request]] = decoder(_Request)


class _FoundRequest(NamedTuple):
    key: EntityKey
    spider: str
    url: str
    status: int


class _Answers(NamedTuple):
    """Everything found. ``searched``: sentences about what was searched. ``complete``: false if a search had bounds."""

    jobs: Sequence[Summary] = ()
    spiders: Sequence[Spider] = ()
    items: Sequence[EntityKey] = ()
    requests: Sequence[_FoundRequest] = ()
    searched: Sequence[str] = ()
    complete: bool = True

    def only(self, project: int) -> str | None:
        """Return the path of the page of a single answer."""
        paths = [
            *(f"/ui/{job.key}" for job in self.jobs),
            *(f"/ui/{project}/spiders/{spider.number}" for spider in self.spiders),
            *(f"/ui/{item.job_key}/items/{item.number}" for item in self.items),
            *(f"/ui/{request.key.job_key}/requests/{request.key.number}" for request in self.requests),
        ]
        return paths[0] if self.complete and len(paths) == 1 else None


async def _show(visit: Visit) -> Response:
    text = visit.request.query_params.get("q", "").strip()
    if len(text) > _MOST_TEXT or "\0" in text:
        raise refused("q", f"must be {_MOST_TEXT} characters at most, none of them NUL", "Search for a shorter text.")
    answers = await _answers(visit, text) if text else _Answers()
    if (path := answers.only(visit.project)) is not None:
        return visit.redirect(path)
    return visit.rendered("search.html", text=text, answers=answers, most=_SHOWN, now=visit.store.clock())


async def _answers(visit: Visit, text: str) -> _Answers:
    parts = text.strip("/").split("/")
    if all(map(is_number, parts)) and len(parts) <= len(EntityKey._fields):
        numbers = [int(part) for part in parts]
        match len(numbers):
            case 4:
                return await _item(visit, EntityKey(*numbers))
            case 3:
                return await _job(visit, JobKey(*numbers))
            case 2:
                return await _job(visit, JobKey(visit.project, *numbers))
            case _:
                return await _numbered(visit, text, numbers[0])
    named = await _named(visit, text)
    # A name may look like the host of a URL.
    is_name = any(spider.name == text for spider in named.spiders)
    return await _requested(visit, text, named) if any(mark in text for mark in "/.:") and not is_name else named


async def _job(visit: Visit, key: JobKey) -> _Answers:
    job = await visit.store.jobs.get(key) if visit.grant.may_read(key.project) else None
    jobs = [] if job is None else [summary(job, visit.store.clock())]
    return _Answers(jobs, searched=[f"There is {'a' if jobs else 'no'} job {key}."])


async def _item(visit: Visit, key: EntityKey) -> _Answers:
    has_it = visit.grant.may_read(key.project) and bool(await visit.store.items.at(key.job_key, [key.number]))
    job = await _job(visit, key.job_key)
    if has_it:
        return _Answers(items=[key])
    return job._replace(searched=[f"There is no item {key}.", *job.searched], complete=False)


async def _numbered(visit: Visit, text: str, number: int) -> _Answers:
    """Return the jobs of all spiders with a number, and spiders with it in their names."""
    named = await _named(visit, text)
    spiders = await visit.store.spiders.listed(visit.project, limit=_SPIDERS)
    keys = tuple(JobKey(visit.project, spider.number, number) for spider in spiders)
    which = JobFilter(keys=keys, states=SHOWN_STATES)
    jobs = await visit.store.jobs.listed(visit.project, which, Page(_SHOWN), counts=True) if keys else []
    now = visit.store.clock()
    searched = f"Jobs with the number {number} of {_count(len(spiders), 'spider')}."
    return named._replace(jobs=[summary(job, now) for job in jobs], searched=[searched, *named.searched])


async def _named(visit: Visit, text: str) -> _Answers:
    spiders = await visit.store.spiders.listed(visit.project)
    found = [spider for spider in spiders if text.lower() in spider.name.lower()]
    exact = [spider for spider in found if spider.name == text]
    return _Answers(spiders=(exact or found)[:_SHOWN], searched=[f"Names of {_count(len(spiders), 'spider')}."])


async def _requested(visit: Visit, text: str, named: _Answers) -> _Answers:
    """Add the requests whose URLs contain the text, those of the newest jobs."""
    if wait := visit.searches.take(visit.grant.name):
        message = f"Too many searches for URLs. Try again in {wait} s."
        raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, message, {"Retry-After": str(wait)})
    states = (JobState.RUNNING, JobState.FINISHED)
    jobs = await visit.store.jobs.listed(visit.project, JobFilter(states=states), Page(_JOBS + 1), counts=True)
    until, found, looked = time.monotonic() + MOST_SECONDS, list[_FoundRequest](), 0
    complete, number = len(jobs) <= _JOBS, 0
    for number, job in enumerate(jobs[:_JOBS], 1):
        if not job.counts.requests:
            continue
        part = await search_records(visit.store.requests, job.key, 0, _of_url(text), _SHOWN - len(found))
        looked += len(part.looked)
        found += [_found(job.key.entity(index), job.spider, line) for index, line in part.records]
        complete = complete and part.ended
        if len(found) >= _SHOWN or time.monotonic() > until:
            complete = complete and number == len(jobs)
            break
    which_jobs = _count(number, "job") if complete else f"{shapes.number(number)} newest {shapes.plural(number, 'job')}"
    sentence = f"URLs of {_count(looked, 'request')} of {which_jobs}."
    rest = [] if complete else ["Older jobs and further requests were not searched: each job's page of requests can."]
    return named._replace(requests=found, searched=[*named.searched, sentence, *rest], complete=complete)


def _of_url(text: str) -> Wanted:
    lowered = text.lower()
    return lambda line: lowered in _read(line).url.lower()


def _found(key: EntityKey, spider: str, line: bytes) -> _FoundRequest:
    request = _read(line)
    return _FoundRequest(key, spider, request.url, request.status)


def _count(count: int, noun: str) -> str:
    return f"{shapes.number(count)} {shapes.plural(count, noun)}"


PAGES: Final = (UiPage("/ui/{project:number}/search", "", _show, action=Action.RUN),)
