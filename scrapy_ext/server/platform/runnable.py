"""Whether a job can be added: where a version is deployed, it must have the spider."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from scrapy_ext.server.platform.answers import refused
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
    close = get_close_matches(spider, names, 3)
    listed = list(dict.fromkeys([*close, *names]))
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    raise refused(
        field,
        f"{spider[:60]!r} is no spider of version {chosen} of project {project}",
        f"Use one of {', '.join(listed[:_NAMED])}{more}, or deploy a version that has it.",
    )
