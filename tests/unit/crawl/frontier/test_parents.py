"""The parent of a request is known wherever the request goes, and spiders do not see it."""

from __future__ import annotations

import gc

from scrapy import Request

from scrapy_ext.crawl.frontier import marks
from scrapy_ext.crawl.frontier.marks import (
    Parent,
    from_meta,
    hand_on,
    mark,
    note_record,
    parent_of,
    record_of,
    to_meta,
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


def test_a_meta_key_of_a_user_is_left_as_it_is():
    request = Request(URL, meta={"_parent": [5, "7/1/2"]})
    from_meta(request)
    assert (parent_of(request), request.meta) == (None, {"_parent": [5, "7/1/2"]})
