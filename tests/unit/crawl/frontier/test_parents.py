"""The parent of a request is known wherever the request goes, and spiders do not see it."""

from __future__ import annotations

import gc

import msgspec
import pytest
from scrapy import Request

from scrapy_ext.crawl.frontier import marks
from scrapy_ext.crawl.frontier.marks import (
    Parent,
    from_meta,
    from_stored,
    hand_on,
    mark,
    note_record,
    parent_of,
    record_of,
    to_meta,
    to_stored,
)

URL = "http://a.example/"
PARENT = Parent(5, "7/1/2")


def test_a_mark_is_not_in_the_meta_and_goes_with_the_request():
    before = len(marks._parents)
    request = Request(URL)
    mark(request, PARENT)
    assert (parent_of(request), request.meta) == (PARENT, {})
    del request
    gc.collect()
    assert len(marks._parents) == before


def test_what_stands_in_the_place_of_a_request_has_its_parent_and_its_record():
    request, retry = Request(URL), Request(URL)
    mark(request, PARENT)
    note_record(request, 6)
    hand_on(request, retry)
    assert (parent_of(retry), record_of(retry)) == (PARENT, 6)


def test_what_has_its_own_keeps_it():
    request, other = Request(URL), Request(URL)
    mark(request, PARENT)
    note_record(request, 6)
    mark(other, Parent(8, "7/1/2"))
    note_record(other, 9)
    hand_on(request, other)
    assert (parent_of(other), record_of(other)) == (Parent(8, "7/1/2"), 9)


def test_a_queue_on_disk_has_the_parent_in_the_meta_until_it_is_taken_out():
    request = Request(URL, meta={"a": 1})
    mark(request, PARENT)
    to_meta(request)
    read = Request(URL, meta=request.meta)
    assert parent_of(read) == PARENT
    from_meta(read)
    assert (parent_of(read), read.meta) == (PARENT, {"a": 1})


@pytest.mark.parametrize(
    ("parent", "job", "writer", "named"),
    [
        (Parent(5, "7/1/2"), "7/1/2", None, 5),
        (Parent(5, "7/1/2"), "7/1/3", None, None),
        (Parent(5, "7/1/2", 3), "7/1/2", 3, "3:5"),
        (Parent(5, "7/1/2", 3), "7/1/2", 4, "3:5"),
        (Parent(5, "7/1/2", 3), "7/1/3", 1, None),
        # The job was begun, or is continued, by one worker.
        (Parent(5, "7/1/2"), "7/1/2", 3, 5),
        (Parent(5, "7/1/2", 3), "7/1/2", None, None),
    ],
)
def test_a_record_names_its_parent_by_the_stream_that_has_it(parent, job, writer, named):
    assert parent.named_by(job, writer) == named


@pytest.mark.parametrize("parent", [PARENT, Parent(5, "7/1/2", 3)], ids=["of the job", "of a stream"])
def test_a_stored_request_keeps_the_stream_of_its_parent(parent):
    request, read = Request(URL), Request(URL)
    mark(request, parent)
    stored = to_stored(request, {})
    assert stored == {"parent": [value for value in msgspec.to_builtins(parent) if value is not None]}
    from_stored(read, stored)
    assert parent_of(read) == parent


def test_a_meta_key_of_a_user_is_left_as_it_is():
    request = Request(URL, meta={"_parent": [5, "7/1/2"]})
    from_meta(request)
    assert (parent_of(request), request.meta) == (None, {"_parent": [5, "7/1/2"]})
