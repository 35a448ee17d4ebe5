"""Copies of a whole project, part by part."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.imports import MAX_SPIDERS, ImportedSpider
from scrapy_ext.api.platform.periodic import MAX_PER_PAGE, PeriodicJob
from scrapy_ext.client.platform.errors import BadRequest
from scrapy_ext.client.platform.periodic import Periodic
from scrapy_ext.client.platform.projects import ListedSpider
from scrapy_ext.commands.importing.collections import CollectionsImport
from scrapy_ext.commands.importing.context import (
    ABSENT,
    COLLECTIONS,
    JOBS,
    PARTS,
    PERIODIC,
    PROGRESS,
    SETTINGS,
    SPIDERS,
    Progress,
    ProjectImport,
)
from scrapy_ext.commands.importing.jobs import JobsImport

#: Periodic jobs that a project can have.
_MOST_PERIODIC: Final = 10_000
#: Parts that no API offers in a form that could be stored again, with what to do instead.
_NEVER = (
    ("deployed versions", "deploy the project to the target: scrapy platform deploy"),
    ("webhooks and API keys", "their secrets cannot be read: add new ones with scrapy platform webhooks and keys"),
    ("activity", "the messages of the target begin with the import"),
)


async def import_project(project: ProjectImport) -> None:
    """Copy what the options name, and report what was not copied."""
    progress = await project.progress()
    if project.wants(SETTINGS):
        await _settings(project)
    # Spiders first, so that those whose number is known get it before others take it.
    later = await _spiders(project) if project.wants(SPIDERS) else []
    if project.wants(JOBS):
        await JobsImport(project).run()
    if later:
        await _add_spiders(project, [ImportedSpider(spider.id, None, spider.tags) for spider in later])
    if project.wants(COLLECTIONS):
        await CollectionsImport(project, progress).run()
    if project.wants(PERIODIC):
        await _periodic(project, progress)
    await _note_frontiers(project)
    if project.options.dry_run:
        await _note_size(project)
    if _is_empty(project):
        project.note("project", "the source has nothing in it: check its number", number=0)
    for part, reason in _NEVER:
        project.note(part, reason, number=0)


def _is_empty(project: ProjectImport) -> bool:
    """Return true if an import of everything has found nothing in the source. A server of this package has all
    projects, also those that nobody has used."""
    options = project.options
    found = [row.copied_before or row.copied or row.would_copy for row in project.rows.values()]
    found += [note.not_copied for note in project.notes]
    return options.since is None and options.parts.issuperset(PARTS) and not any(found)


async def _settings(project: ProjectImport) -> None:
    try:
        given = await project.source.projects.settings(project.old)
    except ABSENT:
        project.absent(SETTINGS)
        return
    present = await project.target.projects.settings(project.new)
    row = project.row(SETTINGS)
    for name, value in given.items():
        if name.startswith(PROGRESS):
            continue
        if name in present:
            row.copied_before += present[name] == value
            if present[name] != value:
                project.note(f"setting {name}", "it has another value in the target")
        elif project.options.dry_run:
            row.would_copy += 1
        else:
            try:
                await project.target.projects.update_settings(project.new, {name: value})
                row.copied += 1
            except BadRequest as error:
                project.note(f"setting {name}", f"the target refuses it: {error.message}", failed=True)


async def _spiders(project: ProjectImport) -> list[ListedSpider]:
    """Add the spiders whose numbers the source reports; return the others."""
    try:
        listed = await project.source.projects.spiders(project.old)
    except ABSENT:
        project.absent(SPIDERS)
        return []
    known, others = [], []
    for spider in listed:
        number = None
        with contextlib.suppress(*ABSENT):
            number = await project.source.projects.spider_number(project.old, spider.id)
        if number is None:
            others.append(spider)
        else:
            known.append(ImportedSpider(spider.id, number, spider.tags))
    await _add_spiders(project, known)
    return others


async def _add_spiders(project: ProjectImport, spiders: list[ImportedSpider]) -> None:
    row = project.row(SPIDERS)
    if project.options.dry_run:
        known = [await project.target.projects.spider_number(project.new, spider.name) for spider in spiders]
        row.would_copy += known.count(None)
        row.copied_before += len(known) - known.count(None)
        return
    try:
        for first in range(0, len(spiders), MAX_SPIDERS):
            some = spiders[first : first + MAX_SPIDERS]
            there = [await project.target.projects.spider_number(project.new, spider.name) for spider in some]
            await project.target.imports.spiders(project.new, some)
            row.copied += there.count(None)
            row.copied_before += len(there) - there.count(None)
    except BadRequest as error:
        project.note(SPIDERS, f"the target refuses them: {error.message}", failed=True, number=len(spiders))


async def _periodic(project: ProjectImport, progress: Progress) -> None:
    """Copy the periodic jobs that no earlier run has copied; they are paused, so that they run in one place only."""
    try:
        given = await _schedules(project.source.periodic, project.old)
    except ABSENT:
        project.absent(PERIODIC)
        return
    if len(given) > _MOST_PERIODIC:
        reason = f"the source lists over {_MOST_PERIODIC} of them, which no project can have"
        project.note("periodic jobs", reason, failed=True)
        return
    row, used = project.row(PERIODIC), {*progress.periodic.values()}
    present = {schedule.id: schedule for schedule in await _schedules(project.target.periodic, project.new)}
    for schedule in given:
        if str(schedule.id) in progress.periodic:
            row.copied_before += 1
            continue
        if project.options.dry_run:
            row.would_copy += 1
            continue
        fields = _fields(project, schedule)
        # An import that was killed here may have added it, and not have noted it.
        added = next(
            (number for number, each in present.items() if number not in used and _fields(project, each) == fields),
            None,
        )
        try:
            if added is None:
                added = (await project.target.periodic.create(project.new, fields)).id
        except BadRequest as error:
            project.note(f"periodic job {schedule.id}", f"the target refuses it: {error.message}", failed=True)
            continue
        used.add(added)
        progress.periodic[str(schedule.id)] = added
        await project.save(progress)
        row.copied += 1
    if row.copied and not project.options.resume_periodic:
        project.note(
            "runs of periodic jobs", "they are paused in the target: scrapy platform schedule resume ID", number=0
        )


async def _schedules(periodic: Periodic, project: int) -> list[PeriodicJob]:
    found: list[PeriodicJob] = []
    while True:
        page = await periodic.list(project, count=MAX_PER_PAGE, offset=len(found))
        found += page.results
        if not page.results or len(found) >= page.count or len(found) > _MOST_PERIODIC:
            return found


def _fields(project: ProjectImport, schedule: PeriodicJob) -> dict[str, Any]:
    tasks = [msgspec.to_builtins(task) for task in schedule.tasks]
    for task in tasks:
        task.pop("jobq_id")
    return {
        "cron": schedule.cron,
        "tasks": tasks,
        "addtags": schedule.addtags,
        "description": schedule.description,
        "disabled": schedule.disabled if project.options.resume_periodic else True,
    }


async def _note_size(project: ProjectImport) -> None:
    """Report the size of the project in the source, if it has this call."""
    with contextlib.suppress(*ABSENT):
        usage = await project.source.usage.of_project(project.old)
        row = project.row("size in the source")
        row.bytes, row.reason = usage.bytes, "of all its stored data, compressed"


async def _note_frontiers(project: ProjectImport) -> None:
    try:
        frontiers = await project.source.frontier.frontiers(project.old)
    except ABSENT:
        return
    for frontier in frontiers:
        reason = "let its crawl end in the source, or move its requests: scrapy platform frontier dump"
        project.note(f"frontier {frontier}", reason)
