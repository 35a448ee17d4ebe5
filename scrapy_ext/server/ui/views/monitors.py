"""``/ui/<project>/monitors``: the monitors that cover a project, what fails now, results, and the targets of alerts;
``/new``: a form with a preview; ``/<number>``: one monitor with its results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform import alerts
from scrapy_ext.api.platform.alerts import DEFAULT_REMINDER, DEFAULT_WINDOW, target_of
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.monitors import (
    DEFAULT_SAMPLE,
    Monitor,
    MonitorPreview,
    NewMonitor,
    conditions_in_words,
    jobs_in_words,
    monitor_of,
)
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.monitors.item_schemas import check_schema
from scrapy_ext.server.monitors.previews import preview
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit, field_errors

#: Results on a page, and messages of a target.
_RESULTS: Final = 50
_MESSAGES: Final = 5
#: Events of the activity about the actions of the page; a trial message changes nothing.
_EVENTS: Final = {
    "enable": ChangeEvents.RULE_CHANGED,
    "disable": ChangeEvents.RULE_CHANGED,
    "remove": ChangeEvents.RULE_REMOVED,
    "target-enable": ChangeEvents.TARGET_CHANGED,
    "target-disable": ChangeEvents.TARGET_CHANGED,
    "target-remove": ChangeEvents.TARGET_REMOVED,
}
_PURPOSE: Final = {"purpose": "monitors"}
#: Fields of the form of a new monitor.
_FIELDS: Final = ("name", "spider", "tag", "args", "checks", "schema", "sample", "expect")


async def _list(visit: Visit) -> Response:
    return await _listed(visit, {}, {})


async def _listed(visit: Visit, errors: Mapping[str, str], target: Mapping[str, str], status: int = 200) -> Response:
    store, project = visit.store, visit.project
    targets = await store.alerts.listed(project)
    settings = await store.projects.settings(project)
    return visit.rendered(
        "monitors.html",
        status,
        monitors=await store.monitors.in_force(project),
        incidents=await store.monitors.incidents(project),
        results=await store.monitors.results(project, None, _RESULTS, False),
        targets=[(each, await store.alerts.messages(project, each.id, _MESSAGES)) for each in targets],
        window=_number(settings.get(alerts.WINDOW_SETTING), DEFAULT_WINDOW),
        reminder=_number(settings.get(alerts.REMINDER_SETTING), DEFAULT_REMINDER),
        errors=errors,
        target=target,
        scope=jobs_in_words,
        conditions=conditions_in_words,
        now=store.clock(),
    )


def _number(stored: bytes | None, default: float) -> str:
    return f"{default:g}" if stored is None else stored.decode()


async def _act(visit: Visit) -> Response:
    """Enable, disable or remove a monitor; add, try, enable, disable or remove a target of alerts."""
    action, store, project = visit.form.get("action"), visit.store, visit.project
    number = _form_number(visit.form)
    page = f"/ui/{project}/monitors"
    match action:
        case "enable" | "disable":
            done: Any = await store.monitors.enable(project, number, action == "enable")
        case "remove":
            done = await store.monitors.remove(project, number)
        case "target-enable" | "target-disable":
            done = await store.alerts.disable(project, number, action == "target-disable")
        case "target-remove":
            done = await store.alerts.remove(project, number)
        case "target-test":
            found = await store.alerts.get(project, number)
            done = found and await store.alerts.test(project, number, visit.services.messages.test(found))
        case "target-add":
            return await _add_target(visit)
        case _:
            raise MissingError
    if not done:
        raise MissingError
    if event := _EVENTS.get(action):
        await visit.note(event, **({"target": number} if "-" in action else {"rule": number, **_PURPOSE}))
    name = {"remove": "removed", "target-remove": "removed", "target-test": "alert-test"}.get(action, "saved")
    return visit.redirect(page, name)


async def _add_target(visit: Visit) -> Response:
    fields = {name: (visit.form.get(name) or "").strip() for name in alerts.FIELDS}
    try:
        new = target_of(fields)
        added = await visit.store.alerts.add(visit.project, new.name, new.url)
    except ContractError as error:
        return await _listed(visit, field_errors(error), {"name": fields["name"]}, error.status)
    await visit.note(ChangeEvents.TARGET_CREATED, id=added.id)
    return visit.redirect(f"/ui/{visit.project}/monitors", "saved")


def _form_number(form: Form) -> int:
    text = form.get("number") or "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0


# ── one monitor ──


async def _one(visit: Visit) -> Response:
    of_server = visit.text("of_server") == "1"
    number: int = visit.request.path_params["rule"]
    monitor = await visit.store.monitors.get(None if of_server else visit.project, number)
    if monitor is None:
        raise MissingError
    return visit.rendered(
        "monitor.html",
        monitor=monitor,
        schema=_schema_text(monitor),
        scope=jobs_in_words(monitor),
        conditions=conditions_in_words(monitor),
        results=await visit.store.monitors.results(visit.project, number, _RESULTS, of_server),
        # The results of an enabled monitor are stored.
        preview=None if monitor.enabled else await _preview(visit, monitor),
    )


def _schema_text(monitor: NewMonitor) -> str:
    return "" if monitor.schema is None else json.dumps(monitor.schema, indent=2, ensure_ascii=False)


async def _preview(visit: Visit, monitor: Monitor) -> MonitorPreview:
    return await preview(visit.store, monitor, [visit.project])


# ── a new monitor ──


async def _form(visit: Visit) -> Response:
    visit.require_write()
    given = {"spider": visit.text("spider"), "checks": "", "sample": str(DEFAULT_SAMPLE)}
    return await _rendered_form(visit, given, {}, None)


async def _save(visit: Visit) -> Response:
    """Add a monitor, or show its preview beside the form."""
    given = {name: visit.form.get(name) or "" for name in _FIELDS}
    try:
        new = monitor_of(_fields_of(given))
        if new.schema is not None:
            check_schema(new.schema)
        if visit.form.get("action") == "preview":
            found = await _preview(visit, visit.store.monitors.unstored(visit.project, new))
            return await _rendered_form(visit, given, {}, found)
        added = await visit.store.monitors.add(visit.project, new)
        if visit.form.get("action") == "add":
            await visit.store.monitors.enable(visit.project, added.id, True)
    except ContractError as error:
        errors = {name.partition("[")[0]: text for name, text in reversed([*field_errors(error).items()])}
        return await _rendered_form(visit, given, errors, None, error.status)
    await visit.note(ChangeEvents.RULE_CREATED, id=added.id, **_PURPOSE)
    return visit.redirect(f"/ui/{visit.project}/monitors/{added.id}", "saved")


async def _rendered_form(
    visit: Visit,
    given: Mapping[str, str],
    errors: Mapping[str, str],
    found: MonitorPreview | None,
    status: int = 200,
) -> Response:
    spiders = [each.name for each in (await visit.store.spiders.listed(visit.project))[:500]]
    return visit.rendered(
        "monitor_form.html",
        status,
        given={name: given.get(name, "") for name in _FIELDS},
        errors=errors,
        preview=found,
        spiders=spiders,
    )


def _fields_of(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a monitor, as the texts of the form give them; raise :class:`ContractError`."""
    fields: dict[str, Any] = {name: given[name].strip() for name in ("name", "spider", "tag", "expect")}
    fields["checks"] = [line.strip() for line in given["checks"].splitlines() if line.strip()]
    fields["args"] = dict(_pair(line) for line in given["args"].splitlines() if line.strip())
    if given["schema"].strip():
        try:
            fields["schema"] = json.loads(given["schema"])
        except (ValueError, RecursionError) as error:
            raise ContractError([Violation("schema", f"is not JSON: {error}", "Correct the text.")]) from None
        sample = given["sample"].strip()
        fields["sample"] = int(sample) if sample.isascii() and sample.isdigit() and len(sample) < 10 else sample or None
    return {name: value for name, value in fields.items() if value not in ("", None, [], {})}


def _pair(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise ContractError([Violation("args", f"has the line {line[:60]!r}", "Write one name=value per line.")])
    return name.strip(), value.strip()


_PATH: Final = "/ui/{project:number}/monitors"
PAGES: Final = (
    UiPage(_PATH, "monitors", _list, _act),
    UiPage(f"{_PATH}/new", "monitors", _form, _save),
    UiPage(f"{_PATH}/{{rule:number}}", "monitors", _one),
)
LINKS: Final = (Link("monitors", "Monitors", "/ui/{project}/monitors"),)
