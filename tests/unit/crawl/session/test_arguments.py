"""Marks of spider arguments, and the report of those that differ."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session.arguments import given_arguments, marks_of, report_other_arguments
from scrapy_ext.crawl.session.job import CrawlJob

JOB = CrawlJob(JobKey(1, 2, 3), resumed=True)


def test_arguments_are_read_as_scrapy_reads_them():
    words = ["crawl", "books", "-a", "page=1", "-s", "JOBDIR=a", "-apage=2", "-a", "text=a=b", "-o", "x.json"]
    assert given_arguments(words) == {"page": "2", "text": "a=b"}


def test_a_mark_is_too_short_to_find_the_value_by_it():
    assert marks_of({"password": "a"}).keys() == {"password"}
    assert len(marks_of({"password": "a"})["password"]) == 4


@pytest.mark.parametrize(
    ("former", "own", "named"),
    [
        ({"a": "1"}, {"a": "1"}, None),
        ({}, {}, None),
        ({"a": "1"}, {"a": "2"}, "a has another value"),
        ({"a": "1"}, {}, "a is missing"),
        ({}, {"a": "1"}, "a is new"),
        ({str(n): "1" for n in range(7)}, {}, "4 is missing and 2 more"),
    ],
)
def test_the_arguments_that_differ_are_named(caplog, former, own, named):
    rows = [{"arguments": marks_of(former)}, {"items": 3}]
    report_other_arguments(JOB, rows, marks_of(own))
    assert (named is None) == (not caplog.messages)
    if named is not None:
        assert f"{named}. Requests" in caplog.text


def test_runs_without_marks_are_not_compared(caplog):
    report_other_arguments(JOB, [{"items": 3}], marks_of({"a": "1"}))
    report_other_arguments(JOB, [{"arguments": marks_of({"a": "1"})}], None)
    assert not caplog.messages


def test_values_of_scripts_have_the_marks_of_the_command_line_and_objects_have_none():
    assert marks_of({"page": 1, "tags": ["a"]}) == marks_of({"page": "1", "tags": '["a"]'})
    assert marks_of({"log": print, "page": 1}).keys() == {"page"}


@pytest.mark.parametrize(
    ("times", "named"),
    [((1, 2), "a has another value"), ((2, 1), None), ((1, None), "a has another value"), ((None, 1), None)],
    ids=["group last", "single worker last", "no group", "no other run"],
)
def test_the_last_run_counts_whether_it_was_of_a_group_or_not(caplog, times, named):
    single, group = (
        None if began is None else {"start_time": began, "arguments": marks_of({"a": str(number)})}
        for number, began in enumerate(times)
    )
    former = {} if group is None else {"group_arguments": group}
    own = {"a": "1"} if group is None else {"a": "0"}
    job = CrawlJob(JobKey(1, 2, 3), resumed=True, former=former)
    report_other_arguments(job, [] if single is None else [single], marks_of(own if single is not None else {"a": "1"}))
    assert (named is None) == (not caplog.messages)
