"""Marks of feeds: no item is appended to a file twice."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session.feed_marks import FeedMarks

KEY = JobKey(1, 2, 3)
URI = "ftp://user:password@host/items.csv"


class Metadata:
    """The metadata of a job."""

    def __init__(self) -> None:
        self.fields: dict = {}

    async def update(self, _key, fields) -> None:
        self.fields |= fields

    def marks(self) -> FeedMarks:
        return FeedMarks(SimpleNamespace(jobs=self), KEY, self.fields)


@pytest.fixture
def metadata() -> Metadata:
    return Metadata()


async def test_a_feed_continues_behind_the_items_that_it_has(metadata):
    await metadata.marks().begin([URI], 0)
    marks = metadata.marks()
    assert marks.start(URI) == 0
    await marks.before([URI], 10)
    await marks.after([URI], 10)
    assert metadata.marks().start(URI) == 10
    assert not metadata.marks().missing(URI)


async def test_items_of_an_append_that_did_not_end_are_known_and_not_appended_again(metadata):
    await metadata.marks().before([URI], 10)
    assert metadata.marks().start(URI) == 10
    assert metadata.marks().missing(URI) == range(10)


async def test_a_feed_begins_behind_items_of_runs_without_it(metadata):
    await metadata.marks().begin([URI], 7)
    await metadata.marks().begin([URI, "items.jsonl"], 9)
    assert metadata.marks().start(URI) == 7
    assert metadata.marks().start("items.jsonl") == 9


async def test_the_metadata_has_no_password(metadata):
    await metadata.marks().begin([URI], 0)
    assert "password" not in str(metadata.fields)


def test_marks_that_are_none_are_ignored(metadata):
    for stored in (None, [], {"a": 1}, {"a": ["b", "c"]}):
        metadata.fields = {"feeds": stored}
        assert metadata.marks().start(URI) == 0
