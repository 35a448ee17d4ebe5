"""``/ui/<project>/deliveries/job``: the objects that a job was delivered to, and the restore of its records."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.ui.frame import UiPage, Visit, field_errors

#: States of a job's records, in words.
_STATES: Final = {
    "available": "can be read",
    "archived": "are archived: only the delivery has them",
    "restoring": "are being restored",
    "failed": "were not restored",
    "removed": "were removed, some of them without a delivery",
}


async def _show(visit: Visit) -> Response:
    return await _rendered(visit, visit.text("job"))


async def _rendered(visit: Visit, text: str, error: ContractError | None = None) -> Response:
    key = None
    if text and error is None:
        try:
            key = own_key(text, visit.project, "job")
        except ContractError as found:
            error = found
    return visit.rendered(
        "archived_job.html",
        error.status if error else 200,
        text=text,
        objects=await visit.store.deliveries.of_job(key) if key else [],
        restore=await visit.store.restores.state(key) if key else None,
        states=_STATES,
        errors=field_errors(error) if error else {},
        now=visit.store.clock(),
    )


async def _act(visit: Visit) -> Response:
    """Start the restore of a job's records."""
    text = visit.form.get("job") or ""
    try:
        if visit.form.get("action") != "restore":
            raise refused("action", "must be restore", "Use the button of the page.")
        key: JobKey = own_key(text, visit.project, "job")
        await visit.services.restores.start(key)
    except ContractError as error:
        return await _rendered(visit, text, error)
    return visit.redirect(f"/ui/{visit.project}/deliveries/job", "restoring", job=str(key))


PAGES: Final = (UiPage("/ui/{project:number}/deliveries/job", "deliveries", _show, _act),)
