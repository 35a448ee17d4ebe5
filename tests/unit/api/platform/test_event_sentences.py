"""Sentences of activity messages."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform import alerts, deliveries, monitors, retention, webhooks
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.event_sentences import KINDS, Part, parts_of, sentence_of


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"event": "job:started", "job": "1/2/3", "user": "runner"}, "1/2/3 started"),
        ({"event": "job:started", "job": "1/2/3", "user": "anna"}, "anna started 1/2/3"),
        ({"event": "job:completed", "job": "1/2/3", "user": "runner", "close_reason": "finished"}, "1/2/3 finished"),
        ({"event": "job:tagged", "user": "anna", "jobs": ["1/2/3", "1/2/4"], "add": [], "remove": ["a"]},
         "anna removed tags a of 1/2/3, 1/2/4"),
        ({"event": "frontier:changed", "user": "anna", "frontier": "feed", "pushed": 0},
         "anna pushed 0 new requests into frontier feed"),
        ({"event": "user:changed", "user": "anna", "of": "ben", "role": None, "before": "run"},
         "anna removed the role run of user ben"),
        ({"event": "key:changed", "user": "anna", "key": "reports", "done": "suspended"}, "anna suspended key reports"),
        ({"event": "rule:created", "user": "anna", "purpose": "monitor", "id": 3}, "anna created monitor rule 3"),
        ({"event": "job:deleted", "user": "anna"}, ""),
        ({"event": ["job:deleted"], "job": "1/2/3", "user": "anna"}, ""),
        ({"event": "deploy:done", "user": "anna"}, ""),
    ],
)  # fmt: skip
def test_a_change_is_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert "".join(part.text for part in sentence_of(fields)) == sentence


def test_the_values_of_fields_are_parts_of_their_own() -> None:
    parts = sentence_of({"event": "job:deleted", "job": "1/2/3", "user": "{job}"})
    assert parts == [Part("{job}", "user"), Part(" deleted "), Part("1/2/3", "job")]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"event": "job:started", "job": "1/2/3", "user": "anna"}, "anna started 1/2/3"),
        ({"event": "deploy:done", "job": "1/2/3", "user": "anna"}, "deploy:done of 1/2/3, by anna"),
        ({"event": "deploy:done", "n": 3, "why": {"a": "b"}}, 'deploy:done: n 3, why {"a":"b"}'),
        ({"": [1]}, "An event without a name: [1]"),
        ({"event": 5, "user": ["anna"]}, 'An event without a name: event 5, user ["anna"]'),
        ({}, "An event without a name"),
    ],
)
def test_an_event_of_a_client_is_listed_with_its_fields(fields: dict[str, Any], text: str) -> None:
    assert "".join(part.text for part in parts_of(fields)) == text


def test_each_event_of_the_platform_has_a_sentence() -> None:
    events = {value for name, value in vars(ChangeEvents).items() if name.isupper()}
    events |= {*webhooks.STATE_EVENTS.values(), *monitors.EVENTS, alerts.GIVEN_UP_EVENT}
    events |= {deliveries.DELIVERED_EVENT, retention.REMOVED_EVENT}
    events |= {value for name, value in vars(webhooks).items() if name.startswith(("JOB_", "PERIODIC_"))}
    assert events - set(KINDS) == set()
