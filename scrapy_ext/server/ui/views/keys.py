"""``/ui/keys``: API keys that have names. Only the platform's own key opens it (``Grant.may_manage_keys``)."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.keyring import Grant, add_key
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui.frame import Link, UiPage, Visit, field_errors

_PATH: Final = "/ui/keys"
_OPENS: Final = ("platform", "extraction", "both")
_FORBIDDEN: Final = "Keys are made and removed with the platform's own key only. Log in with that one."


def _may(grant: Grant) -> bool:
    return grant.may_manage_keys


async def _show(visit: Visit) -> Response:
    _check(visit)
    return await _rendered(visit, Form(()))


def _check(visit: Visit) -> None:
    if not visit.grant.may_manage_keys:
        raise Refusal(403, _FORBIDDEN)


async def _rendered(
    visit: Visit, form: Form, *, made: tuple[str, str] | None = None, error: ContractError | None = None
) -> Response:
    """The page; ``made`` is the name of a new key and the key, which is never shown again."""
    return visit.rendered(
        "keys.html",
        error.status if error else 200,
        keys=await visit.store.keys.named(),
        form={name: form.get(name) or "" for name in ("name", "projects", "organisation")},
        opens=form.get("opens") or "platform",
        choices=_OPENS,
        read_only=form.get("read_only") is not None,
        made=made,
        errors=field_errors(error) if error else {},
    )


async def _change(visit: Visit) -> Response:
    _check(visit)
    name = (visit.form.get("name") or "").strip()
    match visit.form.get("action"):
        case "add":
            return await _add(visit, name)
        case "remove":
            found, done = await visit.store.keys.remove(name), "key-removed"
        case "suspend":
            found, done = await visit.store.keys.suspend(name, True), "key-suspended"
        case "resume":
            found, done = await visit.store.keys.suspend(name, False), "key-resumed"
        case _:
            raise refused("action", "must be add, remove, suspend or resume", "Use the buttons of the page.")
    if not found:
        raise Refusal(404, "There is no such key any more.")
    return visit.onward(_PATH, done, project=visit.project)


async def _add(visit: Visit, name: str) -> Response:
    form = visit.form
    try:
        opens = form.get("opens") or "platform"
        if opens not in _OPENS:
            raise refused("opens", f"must be one of {', '.join(_OPENS)}", "Choose one of them.")
        projects = frozenset[int]() if opens == "extraction" else _projects(form.get("projects") or "")
        organisation = (form.get("organisation") or "").strip()
        if organisation and opens == "platform":
            raise refused("organisation", "is about the extraction service", "Let the key open that too.")
        key = await add_key(
            visit.store,
            name,
            projects,
            may_write=form.get("read_only") is None,
            extraction=opens != "platform",
            organisation=organisation,
        )
    except ContractError as error:
        return await _rendered(visit, form, error=error)
    # No address leads here again: what is shown once must not come back with a reload.
    return await _rendered(visit, Form(()), made=(name, key))


def _projects(text: str) -> frozenset[int] | None:
    """The projects that somebody wrote; none are all of them."""
    numbers = [
        number_of(piece, "projects", "Write numbers, apart by spaces.") for piece in re.split(r"[\s,]+", text) if piece
    ]
    return frozenset(numbers) or None


PAGES: Final = (UiPage(_PATH, "keys", _show, _change),)
LINKS: Final = (Link("keys", "Keys", _PATH + "?project={project}", _may),)
