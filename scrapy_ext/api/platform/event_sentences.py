"""Sentences of activity messages: subject, verb and object in place of the event's name and fields.

Each event has a label and sentences with fields in braces. The first sentence whose fields the message has is used, so
the longest comes first. An event that is not here, or has none of the fields, has no sentence: clients post any object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform import monitors, webhooks
from scrapy_ext.api.platform.alerts import GIVEN_UP_EVENT
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.deliveries import DELIVERED_EVENT
from scrapy_ext.api.platform.imports import JOB_IMPORTED
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.retention import REMOVED_EVENT
from scrapy_ext.api.platform.users import USER_CHANGED, USER_CREATED, USER_REMOVED

_FIELD: Final = re.compile(r"\{(\w+)(?:=(\w+))?\}")


class EventKind(NamedTuple):
    """An event as a person reads it; ``{name=value}`` in a sentence is a condition and is not shown."""

    label: str
    sentences: Sequence[str]


class Part(NamedTuple):
    """A part of a sentence; ``field`` names the field that it is the value of, "" for the words between."""

    text: str
    field: str = ""


def _changes(noun: str, *numbers: str) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return the sentences of a creation, a change and a removal of something that one of these fields numbers."""
    created, changed, removed = (
        [f"{{user}} {verb} {noun} {{{number}}}" for number in numbers] for verb in ("created", "changed", "removed")
    )
    return created, changed, removed


def _events(label: str, names: Sequence[str], sentences: Sequence[Sequence[str]]) -> dict[str, EventKind]:
    verbs = ("created", "changed", "removed")
    return {name: EventKind(f"{label} {verb}", each) for name, verb, each in zip(names, verbs, sentences, strict=True)}


_SCHEDULES: Final = _changes("periodic job", "id", "schedule")
_RULES: Final = _changes("{purpose} rule", "id", "rule")
_TARGETS: Final = _changes("target of alerts", "id", "target")
_WEBHOOKS: Final = _changes("webhook", "id", "webhook")

_JOBS: Final[Mapping[str, EventKind]] = {
    webhooks.STATE_EVENTS[JobState.PENDING]: EventKind("scheduled", ["{user} scheduled {job}"]),
    webhooks.STATE_EVENTS[JobState.RUNNING]: EventKind(
        "started", ["{user=runner}{job} started", "{user} started {job}"]
    ),
    webhooks.JOB_COMPLETED: EventKind(
        "ended", ["{close_reason=finished}{job} finished", "{job} ended: {close_reason}", "{job} ended"]
    ),
    webhooks.JOB_CANCELLED: EventKind("cancelled", ["{user} cancelled {job}"]),
    webhooks.JOB_INTERRUPTED: EventKind("interrupted", ["{job} was interrupted and waits to run again"]),
    webhooks.STATE_EVENTS[JobState.DELETED]: EventKind("deleted", ["{user} deleted {job}"]),
    ChangeEvents.TAGS_CHANGED: EventKind(
        "tagged",
        [
            f"{{user}} {change} {what}"
            for what in ("{job}", "{jobs}", "jobs of {spider}")
            for change in (
                "added tags {add} and removed tags {remove} of",
                "added tags {add} to",
                "removed tags {remove} of",
            )
        ],
    ),
    JOB_IMPORTED: EventKind("imported", ["{user} imported {job} from {source}"]),
}
_PERIODIC: Final[Mapping[str, EventKind]] = {
    **_events(
        "periodic job",
        (ChangeEvents.SCHEDULE_CREATED, ChangeEvents.SCHEDULE_CHANGED, ChangeEvents.SCHEDULE_REMOVED),
        (
            _SCHEDULES[0],
            [
                "{disabled=True}{user} paused periodic job {schedule}",
                "{disabled=False}{user} resumed periodic job {schedule}",
                *_SCHEDULES[1],
            ],
            _SCHEDULES[2],
        ),
    ),
    webhooks.PERIODIC_ACTIVE: EventKind("the last run is active", ["Periodic job {periodic_job_id}: {message}"]),
    webhooks.PERIODIC_MISSED: EventKind("missed runs", ["Periodic job {periodic_job_id}: {message}"]),
    webhooks.PERIODIC_REFUSED: EventKind("refused", ["Periodic job {periodic_job_id} could not run: {message}"]),
}
_OF_JOB: Final = ("{job}: {message}", "{spider}: {message}", "{message}")
_MONITORS: Final[Mapping[str, EventKind]] = {
    monitors.RESULT_EVENTS[monitors.PASSED]: EventKind("monitors passed", _OF_JOB),
    monitors.RESULT_EVENTS[monitors.FAILED]: EventKind("a monitor failed", _OF_JOB),
    monitors.RESULT_EVENTS[monitors.NOT_APPLICABLE]: EventKind("monitors not applicable", _OF_JOB),
    monitors.MISSED_EVENT: EventKind("a run is missing", _OF_JOB),
    monitors.RECOVERED_EVENT: EventKind("recovered", ["{message}"]),
    GIVEN_UP_EVENT: EventKind("an alert was not accepted", ["{user}: {message}"]),
    **_events(
        "target of alerts",
        (ChangeEvents.TARGET_CREATED, ChangeEvents.TARGET_CHANGED, ChangeEvents.TARGET_REMOVED),
        _TARGETS,
    ),
}
_OF_RULES: Final[Mapping[str, EventKind]] = {
    REMOVED_EVENT: EventKind("data removed by retention", ["{user}: {message}"]),
    DELIVERED_EVENT: EventKind("data delivered", ["{user}: {message}"]),
    **_events("rule", (ChangeEvents.RULE_CREATED, ChangeEvents.RULE_CHANGED, ChangeEvents.RULE_REMOVED), _RULES),
    webhooks.WEBHOOK_GIVEN_UP: EventKind("a webhook gave up", ["Webhook {webhook}: {message}"]),
    webhooks.WEBHOOK_DISABLED: EventKind("a webhook was disabled", ["Webhook {webhook}: {message}"]),
    webhooks.WEBHOOK_FULL: EventKind("a webhook is full", ["Webhook {webhook}: {message}"]),
    **_events(
        "webhook",
        (ChangeEvents.WEBHOOK_CREATED, ChangeEvents.WEBHOOK_CHANGED, ChangeEvents.WEBHOOK_REMOVED),
        _WEBHOOKS,
    ),
}
_DATA: Final[Mapping[str, EventKind]] = {
    ChangeEvents.COLLECTION_RENAMED: EventKind(
        "collection renamed", ["{user} renamed collection {before} to {collection}"]
    ),
    ChangeEvents.COLLECTION_REMOVED: EventKind("collection removed", ["{user} removed collection {collection}"]),
    ChangeEvents.COLLECTION_RECORD_CHANGED: EventKind(
        "record changed",
        [
            "{removed=True}{user} removed record {key} of collection {collection}",
            "{user} changed record {key} of collection {collection}",
        ],
    ),
    ChangeEvents.FRONTIER_CHANGED: EventKind(
        "frontier changed",
        [
            "{user} pushed {pushed} new requests into frontier {frontier}",
            "{user} queued {queued_again} dead letters of frontier {frontier} again",
            "{user} removed {removed_slots} slots of frontier {frontier}",
            "{user} removed slot {removed_slot} of frontier {frontier}",
        ],
    ),
    ChangeEvents.COMMENT_CHANGED: EventKind("comments", ["{user} changed comments"]),
}
_PROJECT: Final[Mapping[str, EventKind]] = {
    ChangeEvents.VERSION_DEPLOYED: EventKind("version deployed", ["{user} deployed version {version}"]),
    ChangeEvents.VERSION_CHOSEN: EventKind("version chosen", ["{user} made version {version} the current one"]),
    ChangeEvents.VERSION_REMOVED: EventKind(
        "version removed", ["{user} removed version {version}", "{user} removed versions {versions}"]
    ),
    ChangeEvents.SETTINGS_CHANGED: EventKind(
        "settings changed",
        [
            "{user} changed settings {settings}",
            "{user} named the project {name}",
            "{user} changed the project",
        ],
    ),
    ChangeEvents.SPIDER_CHANGED: EventKind("tags of a spider", ["{user} changed the tags of spider {spider}"]),
}
_ACCESS: Final[Mapping[str, EventKind]] = {
    USER_CREATED: EventKind("user created", ["User {of} logged in for the first time"]),
    USER_CHANGED: EventKind(
        "user changed",
        [
            "{disabled=True}{user} disabled user {of}",
            "{disabled=False}{user} enabled user {of}",
            "{user} gave user {of} the role {role}",
            "{user} removed the role {before} of user {of}",
        ],
    ),
    USER_REMOVED: EventKind("user removed", ["{user} removed user {of}"]),
    ChangeEvents.KEY_CREATED: EventKind("key created", ["{user} created key {key}"]),
    ChangeEvents.KEY_CHANGED: EventKind(
        "key changed",
        [
            *(f"{{done={done}}}{{user}} suspended key {{key}}" for done in ("suspend", "suspended")),
            *(f"{{done={done}}}{{user}} resumed key {{key}}" for done in ("resume", "resumed")),
        ],
    ),
    ChangeEvents.KEY_REMOVED: EventKind("key removed", ["{user} removed key {key}"]),
}
#: Events by the group of a menu.
GROUPS: Final[Mapping[str, Mapping[str, EventKind]]] = {
    "Jobs": _JOBS,
    "Periodic jobs": _PERIODIC,
    "Monitors and alerts": _MONITORS,
    "Rules and webhooks": _OF_RULES,
    "Data": _DATA,
    "Project": _PROJECT,
    "Users and keys": _ACCESS,
}
KINDS: Final[Mapping[str, EventKind]] = {name: kind for group in GROUPS.values() for name, kind in group.items()}


def sentence_of(message: Mapping[str, Any]) -> list[Part]:
    """Return the sentence of an activity message in parts; [] for one that has none."""
    event = message.get("event")
    kind = KINDS.get(event) if isinstance(event, str) else None
    fields = {name: text for name, value in message.items() if (text := _text(value))}
    for sentence in kind.sentences if kind else ():
        if all(_has(fields, *found) for found in _FIELD.findall(sentence)):
            return [part for part in _parts(sentence, fields) if part.text]
    return []


def parts_of(message: Mapping[str, Any]) -> list[Part]:
    """Return the sentence of an activity message in parts; of one that has none, its event and its fields."""
    return sentence_of(message) or list(_listed(message))


def _listed(message: Mapping[str, Any]) -> Iterator[Part]:
    named = {name: value for name in ("event", "job", "user") if isinstance(value := message.get(name), str) and value}
    yield Part(named["event"], "event") if "event" in named else Part("An event without a name")
    for name, words in (("job", " of "), ("user", ", by ")):
        if name in named:
            yield Part(words)
            yield Part(named[name], name)
    rest = {name: value for name, value in message.items() if name not in named}
    for place, (name, value) in enumerate(rest.items()):
        yield Part(", " if place else ": ")
        if name:
            yield Part(name, "name")
            yield Part(" ")
        yield Part(value if isinstance(value, str) else msgspec.json.encode(value).decode(), name or "value")


def _has(fields: Mapping[str, str], name: str, value: str) -> bool:
    return name in fields and value in ("", fields[name])


def _parts(sentence: str, fields: Mapping[str, str]) -> Iterator[Part]:
    place = 0
    for found in _FIELD.finditer(sentence):
        yield Part(sentence[place : found.start()])
        if found[2] is None:
            yield Part(fields[found[1]], found[1])
        place = found.end()
    yield Part(sentence[place:])


def _text(value: object) -> str:
    """Return a value as a sentence has it; "" for one that no sentence has."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    return str(value) if isinstance(value, str | int) else ""
