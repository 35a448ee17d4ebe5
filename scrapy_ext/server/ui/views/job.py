"""``/ui/<project>/<spider>/<job>``: one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.server.ui.frame import Page, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "overview")
    stats = await visit.store.items.stats(visit.key)
    metadata: Mapping[str, Any] = context["job"].metadata
    return visit.rendered(
        "job.html",
        **context,
        fields=sorted(stats.counts.items(), key=lambda pair: (-pair[1], pair[0])),
        total=stats.totals.input_values,
        item_bytes=stats.totals.input_bytes,
        metadata=[pair for pair in metadata.items() if not isinstance(pair[1], dict)],
        groups=[pair for pair in metadata.items() if isinstance(pair[1], dict) and pair[1]],
    )


PAGES: Final = (Page(PATH, "jobs", _show),)
