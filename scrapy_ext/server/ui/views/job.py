"""``/ui/<project>/<spider>/<job>``: the overview of a job, with a form for its tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.violations import refused
from scrapy_ext.server.ui import shapes, timeline
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_context import JOB_PARTS, PATH, job_context
from scrapy_ext.server.ui.views.run import tags_of_text

#: Metadata with a place of its own on this page or another.
_PLACED: Final = frozenset(("tags", "spider", "project", "state", CRAWL_STATS, "scrapystats"))
#: Maximum number of item fields listed.
_FIELDS: Final = 100


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "overview")
    job = context["job"]
    stats = await visit.store.items.stats(visit.key)
    groups = _groups(job.metadata)
    return visit.rendered(
        "job.html",
        **context,
        fields=sorted(stats.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_FIELDS],
        total=stats.totals.input_values,
        item_bytes=stats.totals.input_bytes,
        metadata=_plain(job.metadata),
        groups=groups,
        charts=[await timeline.throughput(visit.store, job), await timeline.memory(visit.store, visit.key)],
        errors=(await visit.store.logs.stats(visit.key)).counts,
    )


def _plain(metadata: Mapping[str, Any]) -> list[tuple[str, Any]]:
    plain = {name: value for name, value in metadata.items() if not isinstance(value, dict) and name not in _PLACED}
    return list(shapes.hidden(plain).items())


def _groups(metadata: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the groups of names and values: arguments, settings and others. Values of the environment are hidden."""
    groups = {
        name: shapes.hidden(value)
        for name, value in metadata.items()
        if isinstance(value, dict) and value and name not in _PLACED
    }
    if "environment" in groups:
        groups["environment"] = dict.fromkeys(groups["environment"], shapes.HIDDEN)
    return list(groups.items())


async def _head(visit: Visit) -> Response:
    """Render the heading and the tabs alone, which a page of a part refreshes while the part is read."""
    part = visit.text("part")
    return visit.rendered("job_base.html", **await job_context(visit, part if part in JOB_PARTS else "overview"))


async def _tag(visit: Visit) -> Response:
    """Add tags, or remove one."""
    add, remove = tags_of_text(visit.form.get("add") or ""), visit.form.all("remove")
    if not add and not remove:
        raise refused("add", "must have a tag", "Type one tag, or several separated by commas.")
    await visit.store.jobs.tag([visit.key], add, remove)
    return visit.redirect(f"/ui/{visit.key}", "tagged")


PAGES: Final = (
    UiPage(PATH, "jobs", _show),
    UiPage(PATH + "/head", "jobs", _head),
    UiPage(PATH + "/tags", "jobs", None, _tag),
)
