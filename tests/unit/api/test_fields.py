"""Fields that are described once: the check, the OpenAPI document, the options and the form say the same of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from jsonschema_rs import validator_for

from scrapy_ext.api.fields import Kind, fields_of
from scrapy_ext.api.platform import alerts, deliveries, monitors, periodic, retention, webhooks
from scrapy_ext.api.platform.rules import RuleSort
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.fields import given_fields, options_of
from scrapy_ext.server.ui import record_form

SORTS: dict[str, RuleSort[Any, Any, Any]] = {
    sort.name: sort for sort in (retention.SORT, deliveries.SORT, monitors.SORT)
}


def new_schedule(fields: Mapping[str, Any]) -> msgspec.Struct:
    edited = periodic.edited(periodic.blank(1), fields)
    return msgspec.convert(edited, periodic.NewSchedule, from_attributes=True)


#: A record as it is added, as it is stored, and the function that checks the fields of a new one.
RESOURCES: dict[
    str, tuple[type[msgspec.Struct], type[msgspec.Struct], Callable[[Mapping[str, Any]], msgspec.Struct]]
] = {
    **{name: (sort.new, sort.rule, sort.parse) for name, sort in SORTS.items()},
    "webhooks": (webhooks.NewWebhook, webhooks.Webhook, webhooks.webhook_of),
    "alerts": (alerts.NewTarget, alerts.AlertTarget, alerts.target_of),
    "schedules": (periodic.NewSchedule, periodic.PeriodicJob, new_schedule),
}
#: Fields with which each resource is complete.
LEAST: dict[str, dict[str, Any]] = {
    "retention": {"what": ["items"], "older_than": 1},
    "deliveries": {"target": "s3://bucket"},
    "monitors": {"checks": ["items >= 1"]},
    "webhooks": {"url": "https://hooks.example/", "events": ["*"]},
    "alerts": {"name": "on-call", "url": "json://hooks.example/secret"},
    "schedules": {"cron": "30 4 * * *", "tasks": [{"name": "books"}]},
}
RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("retention", {"spider": "ü" * 255, "tag": "a b", "older_than": 36_500, "keep_last": 1000}),
    ("retention", {"what": ["samples", "logs", "logs"], "only_delivered": True, "enabled": True}),
    ("retention", {"what": ["collections"], "collections": ["*", "prices"]}),
    ("deliveries", {"target": "file:///srv/archive", "what": ["items"], "parquet": True}),
    ("deliveries", {"target": "file:///srv/a.b/c_d/", "compression": "zst"}),
    ("deliveries", {"target": "gs://my.bucket_1/Prefix/~x", "keep_last": 1}),
    ("monitors", {"name": "Prüfung: „genug“?" + "x" * 238, "args": {"country": ["de"]}}),
    ("monitors", {"schema": {"required": ["name"]}, "sample": 0}),
    ("monitors", {"checks": [], "expect": "1000h", "spider": "books"}),
    ("monitors", {"checks": [], "expect": "366d", "spider": "books"}),
    ("monitors", {"checks": [], "expect": "schedule"}),
    ("webhooks", {"url": "http://[::1]:65535?a=(b)#c", "events": ["job:*", "other_1.x"]}),
    ("alerts", {"name": "Bereitschaft: „früh“", "url": "tgram://123:ABC/-100/?format=markdown"}),
    ("schedules", {"cron": "0 0 29 2 *", "tasks": [{"name": "py:report.py", "script_args": "--full"}]}),
    ("schedules", {"tasks": [{"name": "ü", "priority": 4, "spider_args": {"a": [1]}, "jobq_id": None}] * 100}),
    ("schedules", {"addtags": ["ü" * 255] * 100, "description": "ü" * 2000, "disabled": False}),
]
#: A field that is wrong by itself, for the check and for the document.
WRONG: list[tuple[str, dict[str, Any], str]] = [
    *(("retention", {"older_than": value}, "older_than: must be") for value in (0, 36_501, 1.5, True, "1", [1])),
    ("retention", {"spider": ""}, "spider: must be 1 to 255 characters"),
    ("retention", {"tag": "a" * 256}, "tag: must be 1 to 255 characters"),
    ("retention", {"what": ["items\n"]}, "what: must be an array of some of jobs"),
    ("retention", {"collections": ["a"] * 51}, "collections: must be an array of 1 to 50 names"),
    ("retention", {"collections": [1]}, "collections: must be names"),
    ("retention", {"number": 1}, "number: is no field of a rule. The fields are spider, tag"),
    ("deliveries", {"target": "http://host/a"}, "target: must begin with file://, s3://"),
    ("deliveries", {"target": "file://host/a"}, "target: must be file:///"),
    ("deliveries", {"target": "s3://bucket?a=b"}, "target: must have no credentials, query and fragment"),
    ("deliveries", {"target": "s3://bucket/" + "a" * 1000}, "target: must be a URL of at most 1000 characters"),
    ("deliveries", {"compression": "gz\n"}, "compression: must be gz or zst"),
    ("deliveries", {"parquet": 1}, "parquet: must be true or false"),
    ("monitors", {"name": "a" * 256}, "name: must be printable text of at most 255 characters"),
    ("monitors", {"args": {"": 1}}, "args: must be an object of at most 50 arguments"),
    ("monitors", {"checks": ["items >= 1", 1]}, "checks[1]: must be text of 1 to 500 characters"),
    ("monitors", {"checks": ["items >= 1"] * 21}, "checks: must be an array of at most 20 texts"),
    ("monitors", {"schema": []}, "schema: must be a JSON Schema: an object"),
    ("monitors", {"sample": 1_000_001}, "sample: must be a whole number from 0 (all)"),
    ("webhooks", {"url": "ftp://hooks.example/"}, "url: must begin with https:// or http://"),
    ("webhooks", {"url": "http://hooks.example/a b"}, "url: is not a URL"),
    ("webhooks", {"url": "https://me:secret@hooks.example/"}, "url: must have no user name and no password"),
    ("webhooks", {"url": 1}, "url: must be a URL of at most 2000 characters"),
    ("webhooks", {"events": []}, "events: must be an array of 1 to 50 names"),
    ("webhooks", {"events": ["job *"]}, "events: has 'job *', which is not an event"),
    ("webhooks", {"events": None}, "events: must be an array of 1 to 50 names"),
    ("alerts", {"name": ""}, "name: must be printable text of 1 to 255 characters"),
    ("alerts", {"url": "syslog://host"}, "url: has the scheme syslog, which is not supported"),
    ("alerts", {"url": "json://a\nb"}, "url: must be printable text of at most 2000 characters"),
    *(
        ("schedules", {"cron": text}, f"cron: {rule}")
        for text, rule in (
            ("*/5 * * * *", "minute must be a number or *, got '*/5': ranges, steps and lists"),
            ("0 1-5 * * *", "hour must be a number or *, got '1-5'"),
            ("0 1,5 * * *", "hour must be a number or *, got '1,5'"),
            ("@daily", "must have five fields, got 1"),
            (5, "must be text of five fields"),
            (None, "must be text of five fields"),
        )
    ),
    ("schedules", {"tasks": []}, "tasks: must be 1 to 100, got 0"),
    ("schedules", {"tasks": [{}]}, "tasks: must be an array of objects"),
    ("schedules", {"tasks": [{"name": ""}]}, "tasks.name: must be 1 to 255 characters"),
    ("schedules", {"tasks": [{"name": "a", "priority": 5}]}, "tasks.priority: must be 0 to 4, got 5"),
    ("schedules", {"tasks": [{"name": "a", "args": {}}]}, "tasks: have no field 'args'"),
    ("schedules", {"addtags": "t"}, "addtags: must be an array of strings"),
    ("schedules", {"addtags": [""]}, "addtags: must be at most 100 tags"),
    ("schedules", {"disabled": 1}, "disabled: must be true or false"),
    ("schedules", {"description": "x" * 2001}, "description: must be at most 2000 characters"),
    *(("monitors", {"expect": text}, "expect: must be hours") for text in ("0h", "8785h", "999d", "367d", "7w", "d")),
]


def document(record: type[msgspec.Struct]) -> Any:
    """The schema of a record in the OpenAPI document."""
    return validator_for(json.loads(msgspec.json.encode(msgspec.json.schema(record))))


@pytest.mark.parametrize(("name", "fields"), RIGHT)
def test_what_the_document_describes_is_taken_and_kept(name: str, fields: Mapping[str, Any]) -> None:
    (record, stored, parse), given = RESOURCES[name], {**LEAST[name], **fields}
    assert document(record).is_valid(given)
    new = msgspec.to_builtins(parse(given))
    later = {"id": 1, "project": 1, "created": 1, "changed": 1, "field_of_a_later_version": 1}
    state = {"disabled": False, "failing_since": None, "outcome": "", "type": "spider"}
    kept = msgspec.to_builtins(msgspec.convert({**new, **later, **state}, stored))
    assert kept.items() >= new.items()


@pytest.mark.parametrize(("name", "fields", "message"), WRONG)
def test_what_the_document_excludes_is_refused(name: str, fields: Mapping[str, Any], message: str) -> None:
    (record, _, parse), given = RESOURCES[name], {**LEAST[name], **fields}
    assert not document(record).is_valid(given)
    with pytest.raises(ContractError) as error:
        parse(given)
    assert message in str(error.value)
    assert "secret" not in str(error.value)


def test_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(ContractError) as error:
        retention.rule_of({"what": [], "older_than": 0, "enabled": "yes", "other": 1})
    assert [each.field for each in error.value.violations] == ["other", "older_than", "what", "enabled"]


#: Words of a command, and texts of a form, by the kind of a field; the values that they give.
WORDS: dict[Kind, tuple[list[str], str, Any]] = {
    Kind.FLAG: ([], "1", True),
    Kind.NUMBER: (["7"], " 7 ", 7),
    Kind.TEXT: (["a b"], "a b\n", "a b"),
    Kind.TEXTS: (["items"], "\nitems\n", ["items"]),
    Kind.PAIRS: (["a=b=c"], "a = b=c\n\n", {"a": "b=c"}),
}


@pytest.mark.parametrize("sort", SORTS.values(), ids=SORTS)
def test_each_field_with_a_help_has_an_option_and_a_control(sort: RuleSort[Any, Any, Any], tmp_path: Any) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"required": []}')
    samples = {**WORDS, Kind.JSON: ([str(schema)], schema.read_text(), {"required": []})}
    parser = argparse.ArgumentParser()
    for add in options_of(sort.new):
        add(parser)
    shown = {each.name for _, fields in record_form.controls(sort.new) for each in fields}
    for name, each in fields_of(sort.new).items():
        words, text, value = samples[each.kind]
        assert (name in shown) == bool(each.words.help)
        assert record_form.given_fields(sort.new, {name: text}) == {name: value}
        if not each.words.help:
            continue
        words = ["gz"] if each.choices == ["gz", "zst"] else words
        positional = [each for each in fields_of(sort.new).values() if not each.option.startswith("-")]
        rest = [word for other in positional if other.name != name and other.required for word in ("items",)]
        line = [*words, *rest] if each in positional else [*rest, each.option, *words]
        given = given_fields(sort.new, parser.parse_args(line))
        assert given[name] == (words[0] if each.choices and each.kind is Kind.TEXT else value)


def test_a_number_of_zero_and_a_file_that_is_not_json_are_not_lost() -> None:
    parser = argparse.ArgumentParser()
    for add in options_of(monitors.NewMonitor):
        add(parser)
    assert given_fields(monitors.NewMonitor, parser.parse_args(["--sample", "0"])) == {"sample": 0}
    with pytest.raises(Exception, match="cannot be read as JSON"):
        given_fields(monitors.NewMonitor, parser.parse_args(["--schema", __file__]))
