"""Checks that the version of a new job has its spider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from scrapy_ext.api.platform.jobs import SCRIPT
from scrapy_ext.api.violations import refused
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments
from scrapy_ext.server.store import Store

#: Maximum names of spiders in an error.
_NAMED: Final = 20


async def check_spider(store: Store, project: int, spider: str, version: Any = None, field: str = "spider") -> None:
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


async def check_local_spider(store: Store, environments: Environments, project: int, spider: str) -> None:
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
        raise refused("spider", rule, f"Use one of {_listed(spider, names)}.")


def _listed(spider: str, names: Sequence[str]) -> str:
    """Return the first names, most similar ones first."""
    from difflib import get_close_matches

    listed = list(dict.fromkeys([*get_close_matches(spider, names, 3), *names]))
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"{', '.join(listed[:_NAMED])}{more}"
