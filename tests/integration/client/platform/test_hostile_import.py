"""An import from a server that sends what no platform sends: it ends, and holds little of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.commands.importing.context import PARTS, ImportOptions, ProjectImport
from scrapy_ext.commands.importing.project import import_project
from scrapy_ext.commands.importing.records import NotCopied, RecordsImport
from tests.support.played_server import PlayedServer, Reply, Request, json_reply, lines_reply

KEY = JobKey(7, 1, 5)


class Silent:
    """No display."""

    def show(self, project: int, rows: Sequence[Any]) -> None: ...

    def jobs(self, project: int, number: int, total: int | None) -> None: ...


@pytest.fixture
async def project(server: PlayedServer) -> AsyncIterator[ProjectImport]:
    """The import of project 7, whose target is the same server."""
    options = ImportOptions(frozenset(PARTS), None, 0, resume_periodic=False, dry_run=True)
    async with PlatformClient(PlatformUrls.single(server.url), "key", attempts=1) as client:
        yield ProjectImport(client, client, (7, 7), options, Silent())


@pytest.mark.parametrize("numbers", [(0, 0), (0, 1, 1), (3, 2), (10**15, 4)])
async def test_records_with_a_number_again_or_out_of_order_end_the_kind(
    server: PlayedServer, project: ProjectImport, numbers: tuple[int, ...]
) -> None:
    # Records with one number were held together: a source that repeated one took 579 MiB in 25 seconds.
    server.script = [lines_reply(*({"_key": f"{KEY}/{number}", "_ts": 1, "n": 1} for number in numbers))]
    read: list[int] = []

    async def read_all() -> None:
        async with aclosing(RecordsImport(project)._read("items", KEY, 0, 0)) as lines:
            async for line in lines:
                read.append(line.number)  # noqa: PERF401 - those before the error are wanted

    with pytest.raises(NotCopied, match=f"has sent record {numbers[-1]} after record {numbers[-2]}"):
        await read_all()
    assert read == [*numbers[:-1]]


async def test_a_list_of_periodic_jobs_without_an_end_is_not_read_on(
    server: PlayedServer, project: ProjectImport
) -> None:
    schedule = {"project": 7, "disabled": False, "type": "job", "description": "", "cron": "0 0 * * *"}
    page = [{**schedule, "id": number, "addtags": [], "tasks": []} for number in range(1000)]

    def answer(request: Request) -> Reply:
        if "periodicjobs" in request.path:
            return json_reply({"count": 10**12, "next": None, "previous": None, "results": page, "meta": {}})
        return json_reply({}) if "settings" in request.path else json_reply({"message": "unknown"}, 404)

    server.script = answer
    await import_project(only(project, "periodic"))
    assert sum("periodicjobs" in request.path for request in server.requests) == 11
    (note,) = [row for row in project.notes if row.failed]
    assert note.reason == "the source lists over 10000 of them, which no project can have"


def only(project: ProjectImport, part: str) -> ProjectImport:
    """Leave out the other parts."""
    for each in PARTS:
        if each != part:
            project.absent(each)
    return project
