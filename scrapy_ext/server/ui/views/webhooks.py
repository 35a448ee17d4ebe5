"""``/ui/<project>/webhooks``: the webhooks of a project, with a form for a new one; ``/<number>``: one with its
deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.masking import without_secrets
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.webhooks import Delivery, NewWebhook, Webhook, webhook_of
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit, field_errors
from scrapy_ext.server.ui.record_form import controls, default_texts, given_fields, texts_of

_DELIVERIES: Final = 100
#: Texts of the form for a new webhook.
_DEFAULTS: Final[Mapping[str, str]] = {**default_texts(NewWebhook), "events": "job:completed"}


class _Row(NamedTuple):
    webhook: Webhook
    url: str
    #: The newest delivery.
    last: Delivery | None


async def _list(visit: Visit) -> Response:
    return await _listed(visit, _DEFAULTS, {})


async def _listed(
    visit: Visit,
    given: Mapping[str, str],
    errors: Mapping[str, str],
    *,
    status: int = 200,
    made: Webhook | None = None,
) -> Response:
    """Render the list; ``made`` is a new webhook, whose secret is shown only once."""
    store, project = visit.store.webhooks, visit.project
    rows = []
    for webhook in await store.listed(project):
        newest = await store.rows(project, webhook.id, 1)
        rows.append(_Row(webhook, without_secrets(webhook.url), newest[0] if newest else None))
    return visit.rendered(
        "webhooks.html",
        status,
        rows=rows,
        controls=controls(NewWebhook),
        given=given,
        errors=errors,
        made=made,
        now=visit.store.clock(),
    )


async def _add(visit: Visit) -> Response:
    given = texts_of(NewWebhook, visit.form)
    try:
        new = webhook_of({"events": [], "url": "", **given_fields(NewWebhook, given)})
        made = await visit.store.webhooks.create(visit.project, new)
    except ContractError as error:
        return await _listed(visit, given, field_errors(error), status=error.status)
    await visit.note(ChangeEvents.WEBHOOK_CREATED, id=made.id)
    # No URL shows the secret again: a reload must not reveal it.
    return await _listed(visit, _DEFAULTS, {}, made=made)


async def _one(visit: Visit) -> Response:
    webhook = await visit.store.webhooks.get(visit.project, _number(visit))
    if webhook is None:
        raise MissingError
    deliveries = await visit.store.webhooks.rows(visit.project, webhook.id, _DELIVERIES)
    return visit.rendered(
        "webhook.html",
        webhook=webhook,
        url=without_secrets(webhook.url),
        deliveries=deliveries,
        pending=any(each.state == "pending" for each in deliveries),
        most=_DELIVERIES,
        now=visit.store.clock(),
    )


def _number(visit: Visit) -> int:
    number: int = visit.request.path_params["webhook"]
    return number


async def _act(visit: Visit) -> Response:
    """Test, enable, disable or remove a webhook, or send a delivery again."""
    store, project, number = visit.store.webhooks, visit.project, _number(visit)
    event, done, fields = ChangeEvents.WEBHOOK_CHANGED, "saved", {"webhook": number}
    match visit.form.get("action"):
        case "test":
            found: object = await store.test(project, number)
            event, done = "", "webhook-test"
        case "resend":
            found = await store.resend(project, number, number_of(visit.form.get("delivery") or "", "delivery"))
            event, done = "", "resent"
        case "enable" | "disable" as action:
            found = await store.disable(project, number, action == "disable")
        case "remove":
            found = await store.remove(project, number)
            event, done = ChangeEvents.WEBHOOK_REMOVED, "removed"
        case _:
            raise refused("action", "must be test, resend, enable, disable or remove", "Use the buttons of the page.")
    if not found:
        raise MissingError
    if event:
        await visit.note(event, **fields)
    every = f"/ui/{project}/webhooks"
    return visit.redirect(every if done == "removed" else f"{every}/{number}", done)


_PATH: Final = "/ui/{project:number}/webhooks"
PAGES: Final = (
    UiPage(_PATH, "webhooks", _list, _add),
    UiPage(f"{_PATH}/{{webhook:number}}", "webhooks", _one, _act),
)
LINKS: Final = (Link("webhooks", "Webhooks", "/ui/{project}/webhooks", under="settings"),)
