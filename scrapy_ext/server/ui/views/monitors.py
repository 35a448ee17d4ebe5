"""``/ui/<project>/monitors``: the monitors that cover a project, what fails now, results, and the targets of alerts;
``/new``: a form with a preview; ``/<number>``: one monitor with its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform import alerts
from scrapy_ext.api.platform.alerts import DEFAULT_REMINDER, DEFAULT_WINDOW, NewTarget, target_of
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.monitors import (
    Incident,
    Monitor,
    MonitorPreview,
    NewMonitor,
    conditions_in_words,
    jobs_in_words,
    monitor_of,
)
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.monitors.previews import preview
from scrapy_ext.server.monitors.sending import check_installed
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit, field_errors
from scrapy_ext.server.ui.record_form import controls, default_texts, given_fields, texts_of

#: Results on a page, and messages of a target.
_RESULTS: Final = 50
_MESSAGES: Final = 5
#: Confirmations of actions; others are saved.
_DONE: Final[Mapping[str, str]] = {
    "remove": "removed",
    "target-remove": "removed",
    "target-test": "alert-test",
    "target-resend": "resent",
}
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
#: Tabs of the page by the value of ``part``.
_PARTS: Final[Mapping[str, str]] = {"rules": "rules", "results": "results", "alerts": "alerts"}


class _Failing(NamedTuple):
    """A monitor that fails for a spider: its incidents, one for each set of arguments, the last one first."""

    name: str
    spider: str
    since: int
    jobs: int
    incidents: list[Incident]


def _failing(incidents: Sequence[Incident]) -> list[_Failing]:
    """Return what fails now by monitor and spider, the longest first."""
    groups: dict[tuple[bool, int, str], list[Incident]] = {}
    for each in incidents:
        groups.setdefault((each.of_server, each.monitor, each.spider), []).append(each)
    found = []
    for some in groups.values():
        some.sort(key=lambda each: -each.last)
        since, jobs = min(each.since for each in some), sum(each.jobs for each in some)
        found.append(_Failing(some[0].name, some[0].spider, since, jobs, some))
    return sorted(found, key=lambda each: each.since)


async def _list(visit: Visit) -> Response:
    return await _listed(visit, {}, {})


async def _listed(visit: Visit, errors: Mapping[str, str], target: Mapping[str, str], status: int = 200) -> Response:
    store, project = visit.store, visit.project
    asked = "alerts" if errors else visit.text("part")
    part = asked if asked in _PARTS else "rules"
    targets = await store.alerts.listed(project)
    settings = await store.projects.settings(project)
    return visit.rendered(
        "monitors.html",
        status,
        monitors=await store.monitors.in_force(project),
        part=part,
        parts=_PARTS,
        failing=_failing(await store.monitors.incidents(project)),
        results=await store.monitors.results(project, None, _RESULTS, False) if part == "results" else [],
        reached=any(not each.disabled for each in targets),
        targets=[(each, await store.alerts.rows(project, each.id, _MESSAGES)) for each in targets],
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
    """Enable, disable or remove a monitor; add, try, enable, disable or remove a target of alerts; resend a message."""
    action, store, project = visit.form.get("action"), visit.store, visit.project
    number = _form_number(visit.form)
    page = f"/ui/{project}/monitors"
    match action:
        case "enable" | "disable":
            done: object = await store.monitors.enable(project, number, action == "enable")
        case "remove":
            done = await store.monitors.remove(project, number)
        case "target-enable" | "target-disable":
            done = await store.alerts.disable(project, number, action == "target-disable")
        case "target-remove":
            done = await store.alerts.remove(project, number)
        case "target-test":
            found = await store.alerts.get(project, number)
            done = found and await store.alerts.test(project, number, visit.services.messages.test(found))
        case "target-resend":
            done = await store.alerts.resend(project, number, number_of(visit.form.get("message") or "", "message"))
        case "target-add":
            return await _add_target(visit)
        case _:
            raise MissingError
    if not done:
        raise MissingError
    if event := _EVENTS.get(action):
        await visit.note(event, **({"target": number} if "-" in action else {"rule": number, **_PURPOSE}))
    return visit.redirect(page, _DONE.get(action, "saved"), part="alerts" if action.startswith("target-") else None)


async def _add_target(visit: Visit) -> Response:
    fields = {name: (visit.form.get(name) or "").strip() for name in fields_of(NewTarget)}
    try:
        new = target_of(fields)
        check_installed()
        added = await visit.store.alerts.add(visit.project, new)
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
    return await preview(visit.store, monitor, [visit.project], visit.services.schemas)


# ── a new monitor ──


async def _form(visit: Visit) -> Response:
    visit.require_write()
    given = {**default_texts(NewMonitor), "spider": visit.text("spider")}
    return await _rendered_form(visit, given, {}, None)


async def _save(visit: Visit) -> Response:
    """Add a monitor, or show its preview beside the form."""
    given = texts_of(NewMonitor, visit.form)
    try:
        new = monitor_of(_fields_of(given))
        if new.schema is not None:
            await visit.services.schemas.check(new.schema, visit.project)
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
        controls=controls(NewMonitor),
        given=given,
        errors=errors,
        # Groups of fields with an error, or with another text than in a new form, are shown unfolded.
        opened=[name for name, text in default_texts(NewMonitor).items() if name in errors or given[name] != text],
        preview=found,
        spiders=spiders,
    )


def _fields_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that a form gives; the number of items, which has a default, only with a schema."""
    fields = given_fields(NewMonitor, texts)
    if "schema" not in fields:
        fields.pop("sample", None)
    return fields


_PATH: Final = "/ui/{project:number}/monitors"
PAGES: Final = (
    UiPage(_PATH, "monitors", _list, _act),
    UiPage(f"{_PATH}/new", "monitors", _form, _save),
    UiPage(f"{_PATH}/{{rule:number}}", "monitors", _one),
)
LINKS: Final = (Link("monitors", "Monitors", "/ui/{project}/monitors"),)
