"""Records and rules of the platform's contract."""

import re
from datetime import datetime, timezone

import pytest

from scrapy_ext.api.platform import (
    EntityKey,
    JobKey,
    collections,
    feeding,
    formats,
    frontier,
    jobs,
    projects,
    records,
    versions,
)
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.violations import ContractError


def test_keys_read_what_they_write():
    assert JobKey.parse("1/2/3") == (1, 2, 3)
    assert str(JobKey(1, 2, 3).entity(4)) == "1/2/3/4"
    assert EntityKey.parse("1/2/3/4").job_key == JobKey(1, 2, 3)


@pytest.mark.parametrize(
    "text", ["", "1/2", "1/2/3/4", "1/2/x", "1/2/-3", "01/2/3", "1/2/٣", "1/2/99999999999999999999"]
)
def test_a_malformed_job_key_is_refused_with_its_form(text):
    with pytest.raises(ContractError, match="job"):
        JobKey.parse(text)


def test_content_range_reads_what_it_writes():
    assert records.parse_content_range(records.content_range(17)) == 17


@pytest.mark.parametrize("value", ["items 1-2/3", "bytes 0-/*", "items -/*", "items -1-/*", ""])
def test_another_content_range_is_refused(value):
    with pytest.raises(ContractError, match="Content-Range"):
        records.parse_content_range(value)


@pytest.mark.parametrize("text", ["0 0 * * *", "59 23 31 12 6", "* * * * *"])
def test_cron_of_values_and_stars_is_read(text):
    assert len(Cron.parse(text)) == 5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("* * * *", "five"),
        ("*/5 * * * *", "ranges, steps and lists"),
        ("1-5 * * * *", "ranges"),
        ("1,2 * * * *", "lists"),
        ("60 * * * *", "0 to 59"),
        ("* * 0 * *", "1 to 31"),
        ("* * * * 7", "0 to 6"),
        ("@daily", "five"),
    ],
)
def test_other_cron_is_refused_with_the_reason(text, word):
    with pytest.raises(ContractError, match=word):
        Cron.parse(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0 0 30 2 *", "February has no day 30"),
        ("0 0 31 2 *", "February has no day 31"),
        ("* * 31 4 *", "April has no day 31"),
        ("5 * 31 11 *", "November has no day 31"),
    ],
)
def test_cron_that_never_runs_is_refused_for_a_new_schedule(text, rule):
    with pytest.raises(ContractError, match=f"never runs: {rule}. Write a day up to"):
        Cron.parse_new(text)
    assert Cron.parse(text).next_after(datetime(2026, 1, 1, tzinfo=timezone.utc)) is None


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 30 2 1", "0 0 31 * *", "0 0 31 12 *", "* * * * *", "* * 30 4 *"])
def test_cron_that_runs_some_day_is_accepted(text):
    assert Cron.parse_new(text).next_after(datetime(2026, 1, 1, tzinfo=timezone.utc)) is not None


def faults(record, size=10):
    return list(collections.record_faults(record, size))


def test_collection_records_need_a_key():
    assert faults({"_key": "a"}) == []
    assert "_key" in faults({"a": 1})[0].rule
    assert "_key" in faults({"_key": ""})[0].rule
    assert "_key" in faults({"_key": 5})[0].rule


@pytest.mark.parametrize("number", [2**64, -(2**64), float("inf"), float("nan"), 1e300])
def test_collection_records_hold_no_number_out_of_range_at_any_depth(number):
    assert faults({"_key": "a", "x": [{"y": number}]})
    assert not faults({"_key": "a", "x": [{"y": 2**64 - 1}], "b": True})


def test_a_record_over_1_mib_is_too_large():
    assert faults({"_key": "a"}, 2**20 + 1)[0].status == 413


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 256, "a-b"])
def test_collection_names_are_words(name):
    with pytest.raises(ContractError):
        collections.check_name(name)


@pytest.mark.parametrize("name", [".", ".."])
def test_nothing_is_named_after_a_step_of_a_path(name):
    assert not jobs.is_name(name)
    assert versions.version_faults(name)
    assert re.fullmatch(feeding.PUSH_PATTERN, name) is None
    assert re.search(projects.NAME_PATTERN, name) is None
    with pytest.raises(ContractError, match="a step of a path"):
        projects.name_of_project(name)
    with pytest.raises(ContractError):
        frontier.check_name(name, "slot")
    for other in (f"{name}a", "...", "a.b"):
        frontier.check_name(other, "slot")
        assert jobs.is_name(other)
        assert projects.name_of_project(other) == other
        assert re.search(projects.NAME_PATTERN, other)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "x" * 256])
def test_frontier_names_fit_in_a_path(name):
    with pytest.raises(ContractError):
        frontier.check_name(name, "frontier")


def test_format_parameter_goes_before_accept():
    assert formats.choose("csv", "application/json") is formats.Format.CSV
    with pytest.raises(ContractError, match="format"):
        formats.choose("yaml", "")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("application/json;q=1", "json"),
        ("text/html, */*", "jl"),
        ("application/json;q=0.5, text/plain, text/csv; Q=0.9", "text"),
        ("application/json;q=0, text/csv;q=0.001", "csv"),
        ("application/json;q=0", "jl"),
        ("text/plain;charset=utf-8;q=nan, application/json", "text"),
        ("application/xml;q=0.1, application/json", "json"),
        ("*/*, application/json, text/csv", "json"),
        ("*/*, application/json;q=0.9", "jl"),
        ("text/csv; Q=0.5, application/xml;q=0.5, image/png", "csv"),
        ("application/xml;q=0, text/csv;q=0.0", "jl"),
        ("application/xml;q=0.9, */*", "jl"),
    ],
)
def test_accept_chooses_the_format_by_its_weights(accept, chosen):
    assert formats.choose(None, accept) is formats.Format(chosen)


def test_csv_needs_its_fields():
    with pytest.raises(ContractError, match="fields"):
        formats.csv_options({})
    options = formats.csv_options({"fields": "a, b", "include_headers": "Y", "sep": ";"})
    assert (options.fields, options.include_headers, options.sep) == (("a", "b"), True, ";")


def test_quotes_in_a_csv_are_doubled_unless_another_escape_is_chosen():
    assert formats.csv_options({"fields": "a", "quote": "'"}).escape == "'"
    assert formats.csv_options({"fields": "a", "quote": "'", "escape": "\\"}).escape == "\\"


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "9" * 19, "", "٣"])
def test_a_count_that_is_no_number_is_refused(text):
    with pytest.raises(ContractError, match="count"):
        formats.whole_number({"count": text}, "count")
