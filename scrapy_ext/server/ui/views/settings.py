"""``/ui/<project>/settings``: the name of a project, and its settings.

A value is JSON. Values that look secret are hidden; a hidden value that is sent back keeps the stored one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api import masking
from scrapy_ext.api.platform.alerts import DEFAULT_REMINDER, DEFAULT_WINDOW, REMINDER_SETTING, WINDOW_SETTING
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.jobs import MAX_RUNNING, PROJECT_SETTINGS, SPIDER_SETTINGS
from scrapy_ext.api.platform.projects import MAX_PROJECT_NAME, name_of_project
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import json_bodies
from scrapy_ext.server.http.forms import check_name, check_project_settings
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import Link, UiPage, Visit, field_errors

#: Meanings of the settings that the server reads, and their values where they are not set.
_KNOWN: Final[Mapping[str, tuple[str, str]]] = {
    MAX_RUNNING: ("number of jobs that run at once; others wait", "no limit"),
    PROJECT_SETTINGS: ("Scrapy settings of all jobs, which those of a job override", ""),
    SPIDER_SETTINGS: ("Scrapy settings of the jobs of a spider, by its name", ""),
    WINDOW_SETTING: ("seconds within which failures of monitors become one message", f"{DEFAULT_WINDOW:g}"),
    REMINDER_SETTING: ("hours between two reminders of a monitor that fails", f"{DEFAULT_REMINDER:g}"),
}
#: Other settings that are shown.
_MOST: Final = 200


class _Row(NamedTuple):
    name: str
    meaning: str
    #: JSON, without secrets; "" where it is not set.
    value: str
    default: str


async def _show(visit: Visit) -> Response:
    name = visit.text("setting")
    stored = (await _stored(visit)).get(name)
    value = "" if stored is None else _text(_masked({name: stored})[name])
    return await _rendered(visit, {"name": visit.names.get(visit.project, ""), "setting": name, "value": value}, {})


async def _stored(visit: Visit) -> dict[str, Any]:
    stored = await visit.store.projects.settings(visit.project)
    return {name: msgspec.json.decode(value) for name, value in stored.items()}


async def _rendered(visit: Visit, given: Mapping[str, str], errors: Mapping[str, str], status: int = 200) -> Response:
    values = _masked(await _stored(visit))
    others = [name for name in values if name not in _KNOWN]
    rows = [_row(name, values, *_KNOWN[name]) for name in _KNOWN] + [_row(name, values) for name in others[:_MOST]]
    return visit.rendered(
        "settings.html",
        status,
        rows=rows,
        more=len(others[_MOST:]),
        given=given,
        errors=errors,
        longest=MAX_PROJECT_NAME,
        hidden=shapes.HIDDEN,
    )


def _row(name: str, values: Mapping[str, Any], meaning: str = "", default: str = "") -> _Row:
    return _Row(name, meaning, _text(values[name]) if name in values else "", default)


def _text(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _masked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with secret values hidden, at every level."""
    return {
        name: _masked(value) if _is_open(name, value) else shapes.hidden({name: value})[name]
        for name, value in values.items()
    }


def _is_open(name: str, value: object) -> bool:
    """Return true for an object whose members are shown: neither its name nor theirs have a secret in their text."""
    if not isinstance(value, dict) or masking.is_secret(name):
        return False
    # As a list, names like API_KEY count as texts, whose values alone are hidden.
    names = {"": list(value)}
    return shapes.hidden(names) == names


def _restored(value: Any, stored: Any) -> Any:
    """Return a value with those that a form showed hidden; raise :class:`ContractError` for one to keep that is not
    stored."""
    if value == shapes.HIDDEN:
        if stored is None:
            raise refused("value", "has a hidden value that is not stored", "Write the value.")
        return stored
    if not isinstance(value, dict):
        return value
    before = stored if isinstance(stored, dict) else {}
    return {name: _restored(each, before.get(name)) for name, each in value.items()}


async def _act(visit: Visit) -> Response:
    given = {name: (visit.form.get(name) or "").strip() for name in ("name", "setting", "value")}
    action = visit.form.get("action")
    try:
        match action:
            case "name":
                await _rename(visit, given["name"])
            case "set":
                await _set(visit, given["setting"], given["value"])
            case "remove":
                await visit.store.projects.remove(visit.project, given["setting"])
                await visit.note(ChangeEvents.SETTINGS_CHANGED, settings=[given["setting"]])
            case _:
                raise refused("action", "must be name, set or remove", "Use the buttons of the page.")
    except ContractError as error:
        if action == "set":
            given["name"] = visit.names.get(visit.project, "")
        return await _rendered(visit, given, _placed(error), error.status)
    return visit.redirect(f"/ui/{visit.project}/settings", "removed" if action == "remove" else "saved")


async def _rename(visit: Visit, name: str) -> None:
    """Name the project; an empty name removes it."""
    await visit.store.projects.name(visit.project, name_of_project(name) if name else None)
    await visit.note(ChangeEvents.SETTINGS_CHANGED, name=name or None)


async def _set(visit: Visit, name: str, text: str) -> None:
    check_name("setting", name)
    value = _restored(json_bodies.given(text.encode(), "value"), (await _stored(visit)).get(name))
    check_project_settings({name: value})
    await visit.store.projects.merge(visit.project, {name: msgspec.json.encode(value)})
    await visit.note(ChangeEvents.SETTINGS_CHANGED, settings=[name])


def _placed(error: ContractError) -> Mapping[str, str]:
    """Return the errors by control: those about a part of a value belong to the value."""
    found: dict[str, str] = {}
    for field, text in field_errors(error).items():
        control = field if field in ("name", "setting", "value") else "value"
        found.setdefault(control, text if field == control else f"{field} {text}")
    return found


_PATH: Final = "/ui/{project:number}/settings"
PAGES: Final = (UiPage(_PATH, "settings", _show, _act),)
LINKS: Final = (Link("settings", "Settings", "/ui/{project}/settings"),)
