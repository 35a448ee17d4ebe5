"""Whether a job can be added: where a version is deployed, it must have the spider."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from scrapy_ext.api.platform.jobs import SCRIPT
from scrapy_ext.api.violations import refused
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments
from scrapy_ext.server.store import Store

#: Names of spiders in a refusal.
_NAMED: Final = 20


async def check_spider(store: Store, project: int, spider: str, version: Any = None, field: str = "spider") -> None:
    """Refuses a name that the version (None: the current one) does not have; without one, any name is taken."""
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
    """Refuses a name that the project in the server's own folder does not have, where that is what runs. The spiders
    are read again before. A script need not be known, and a project that cannot be read is told of by its jobs."""
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
    """Some names, those first that were probably meant."""
    listed = list(dict.fromkeys([*get_close_matches(spider, names, 3), *names]))
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"{', '.join(listed[:_NAMED])}{more}"
