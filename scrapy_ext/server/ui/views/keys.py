"""``/ui/keys``: named API keys. Only the platform's own key has access (``Grant.may_manage_keys``)."""

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
_FORBIDDEN: Final = "Only the platform's own key manages keys. Log in with it."


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
    """Render the page; ``made`` is the name of a new key and the key, shown only once."""
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
        raise Refusal(404, "The key does not exist any more.")
    return visit.redirect(_PATH, done, project=visit.project)


async def _add(visit: Visit, name: str) -> Response:
    form = visit.form
    try:
        opens = form.get("opens") or "platform"
        if opens not in _OPENS:
            raise refused("opens", f"must be one of {', '.join(_OPENS)}", "Choose one of them.")
        projects = frozenset[int]() if opens == "extraction" else _projects(form.get("projects") or "")
        organisation = (form.get("organisation") or "").strip()
        if organisation and opens == "platform":
            raise refused(
                "organisation", "requires access to extraction", "Give the key that access too, or leave this out."
            )
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
    # No URL shows the key again: a reload must not reveal it.
    return await _rendered(visit, Form(()), made=(name, key))


def _projects(text: str) -> frozenset[int] | None:
    """Return the projects of the form; None for all of them."""
    numbers = [
        number_of(piece, "projects", "Write numbers separated by spaces.")
        for piece in re.split(r"[\s,]+", text)
        if piece
    ]
    return frozenset(numbers) or None


PAGES: Final = (UiPage(_PATH, "keys", _show, _change),)
LINKS: Final = (Link("keys", "Keys", _PATH + "?project={project}", _may),)
