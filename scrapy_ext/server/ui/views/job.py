"""``/ui/<project>/<spider>/<job>``: the overview of a job, with a form for its tags; below it, ``/stats``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.violations import refused
from scrapy_ext.server.ui import shapes, timeline
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_records import JOB_PARTS, PATH, job_context
from scrapy_ext.server.ui.views.run import tags_of_text

#: Metadata with a place of its own on this page or another.
_PLACED: Final = frozenset(("tags", "spider", "project", "state", CRAWL_STATS, "scrapystats"))
#: Maximum number of item fields listed.
_FIELDS: Final = 100
#: Times: Scrapy's datetimes, which the platform stores as milliseconds.
_TIMES: Final = ("start_time", "finish_time")
#: Maximum number of stats on one page; the search finds others.
_MOST_STATS: Final = 2000


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
        monitors=await visit.store.monitors.of_job(visit.key),
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


async def _stats(visit: Visit) -> Response:
    context = await job_context(visit, "stats")
    stats: dict[str, Any] = {}
    for group in ("scrapystats", CRAWL_STATS):
        found = context["job"].metadata.get(group)
        stats |= found if isinstance(found, dict) else {}
    text = visit.text("q")
    chosen = sorted(name for name in stats if text.lower() in name.lower())
    shown = [(name, _stat(name, stats[name])) for name in chosen[:_MOST_STATS]]
    return visit.rendered("stats.html", **context, text=text, stats=shown, found=len(chosen), all=len(stats))


def _stat(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return shapes.cell(value)
    return f"{shapes.when(value)} UTC" if name in _TIMES else shapes.number(value)


PAGES: Final = (
    UiPage(PATH, "jobs", _show),
    UiPage(PATH + "/head", "jobs", _head),
    UiPage(PATH + "/tags", "jobs", None, _tag),
    UiPage(PATH + "/stats", "jobs", _stats),
)
