"""Activity messages about changes that people and programs make by the API or in the pages: who changed what.

Messages about jobs, users, webhooks and rules that were applied are written with the change itself; these follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

#: Maximum characters of a text in a message, and of elements of a list.
_LONGEST: Final = 200
_MOST: Final = 50


class ChangeEvents:
    """The events, by what changed."""

    SCHEDULE_CREATED: Final = "periodicjob:created"
    SCHEDULE_CHANGED: Final = "periodicjob:changed"
    SCHEDULE_REMOVED: Final = "periodicjob:removed"
    TAGS_CHANGED: Final = "job:tagged"
    SETTINGS_CHANGED: Final = "project:changed"
    SPIDER_CHANGED: Final = "spider:changed"
    VERSION_DEPLOYED: Final = "version:deployed"
    VERSION_CHOSEN: Final = "version:chosen"
    VERSION_REMOVED: Final = "version:removed"
    RULE_CREATED: Final = "rule:created"
    RULE_CHANGED: Final = "rule:changed"
    RULE_REMOVED: Final = "rule:removed"
    TARGET_CREATED: Final = "alert-target:created"
    TARGET_CHANGED: Final = "alert-target:changed"
    TARGET_REMOVED: Final = "alert-target:removed"
    WEBHOOK_CREATED: Final = "webhook:created"
    WEBHOOK_CHANGED: Final = "webhook:changed"
    WEBHOOK_REMOVED: Final = "webhook:removed"
    COLLECTION_RENAMED: Final = "collection:renamed"
    COLLECTION_REMOVED: Final = "collection:removed"
    COLLECTION_RECORD_CHANGED: Final = "collection:record-changed"
    FRONTIER_CHANGED: Final = "frontier:changed"
    COMMENT_CHANGED: Final = "comment:changed"
    KEY_CREATED: Final = "key:created"
    KEY_CHANGED: Final = "key:changed"
    KEY_REMOVED: Final = "key:removed"


def change_event(event: str, user: str, fields: Mapping[str, Any]) -> bytes:
    """Return the message of a change by a user."""
    shown = {name: _bounded(value) for name, value in fields.items()}
    return msgspec.json.encode({"event": event, "user": user, **shown})


def _bounded(value: object) -> Any:
    if isinstance(value, str):
        return value[:_LONGEST]
    return [_bounded(each) for each in value[:_MOST]] if isinstance(value, list) else value
