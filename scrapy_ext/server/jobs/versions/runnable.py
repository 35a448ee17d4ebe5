"""Checks that the version of a new job has its spider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scrapy_ext.api.platform.jobs import SCRIPT, violations_of_job
from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.api.platform.versions import left_out
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments
from scrapy_ext.server.store import Store

#: Maximum names of spiders in an error.
_NAMED: Final = 20


async def check_spider(store: Store, project: int, spider: str, version: object = None, field: str = "spider") -> None:
    """Raise :class:`ContractError` if the version (None: the current one, if any) has no such spider."""
    named = version if isinstance(version, str) else None
    names = await store.versions.refuses(project, spider, named)
    if names is None:
        return
    chosen = named or await store.versions.current(project)
    raise refused(
        field,
        f"{spider[:60]!r} is no spider of version {chosen} of project {project}",
        f"Use one of {_listed(spider, names)}, or deploy a version that has it.",
    )


async def check_new_job(
    store: Store, environments: Environments | None, project: int, spider: str, metadata: Mapping[str, Any]
) -> None:
    """Raise :class:`ContractError` for a job to be scheduled that could not run; without ``environments``, the spiders
    of the server's own project are not known."""
    if faults := list(violations_of_job(spider, metadata)):
        raise ContractError(faults)
    await check_spider(store, project, spider, metadata.get("version"))
    if environments is not None:
        await check_local_spider(store, environments, project, spider)


async def check_tasks(
    store: Store, environments: Environments | None, schedule: PeriodicJob, before: PeriodicJob | None = None
) -> None:
    """Raise :class:`ContractError` if a periodic job names a spider that cannot run, as the run of one would.

    A paused one runs nothing, and is checked when it is resumed. Names that it has had ``before`` stay: its cron
    expression can be changed while a version without them is current.
    """
    if schedule.disabled:
        return
    known = {task.name for task in before.tasks} if before is not None and not before.disabled else set()
    for spider in dict.fromkeys(task.name for task in schedule.tasks if task.name not in known):
        await check_spider(store, schedule.project, spider, field="tasks.name")
        if environments is not None:
            await check_local_spider(store, environments, schedule.project, spider, "tasks.name")


async def check_local_spider(
    store: Store, environments: Environments, project: int, spider: str, field: str = "spider"
) -> None:
    """Raise :class:`ContractError` if the local project, when it runs, has no such spider.

    Scripts are not checked, and the jobs of an unreadable project report that themselves.
    """
    if not environments.has_read_local or spider.startswith(SCRIPT) or await store.versions.current(project):
        return
    try:
        names = [each.name for each in await environments.spiders(project, spider)]
    except BuildError:
        return
    if names and spider not in names:
        rule = f"{spider[:60]!r} is no spider of project {project}, which is in the server's own folder"
        unreadable = left_out(environments.unreadable_local)
        raise refused(field, f"{rule}; {unreadable}".rstrip("; ."), f"Use one of {_listed(spider, names)}.")


def _listed(spider: str, names: Sequence[str]) -> str:
    """Return the first names, most similar ones first."""
    from difflib import get_close_matches

    listed = list(dict.fromkeys([*get_close_matches(spider, names, 3), *names]))
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"{', '.join(listed[:_NAMED])}{more}"
