"""Requests that come back are the objects that were sent, and run at once only where they are known to be new."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier import sent as module
from scrapy_ext.crawl.frontier.sent import MARK, Kept, SentRequests

URL = "http://a.example/"
KEY = (0, "fp")


@pytest.fixture
def sent():
    return SentRequests(exclusive=True)


@pytest.fixture
def shared():
    """Of a frontier that others write to."""
    return SentRequests(exclusive=False)


def direct(fp="fp"):
    return Entry(fp, Request(URL), "a.example", None, None, slot=0)


def keep(sent, key=KEY):
    mark, request = sent.mark(), Request(URL)
    sent.keep(key, Kept(mark, request, None, 1))
    return request, {"url": URL, MARK: mark}


def copied(sent, name, request, size):
    """Keep a request; return those that were dropped for it."""
    return [kept.request for kept in sent.keep((0, name), Kept(sent.mark(), request, None, size))]


def test_a_request_that_was_kept_comes_back_as_itself_once(sent):
    request, form = keep(sent)
    assert sent.take_kept(KEY, form) is request
    assert sent.take_kept(KEY, form) is None


@pytest.mark.parametrize("form", [{"url": URL}, {"url": URL, MARK: "other.1"}, None, []], ids=str)
def test_what_another_process_sent_under_the_same_fingerprint_is_not_taken_for_it(shared, form):
    keep(shared)
    assert shared.take_kept(KEY, form) is None


def test_the_same_fingerprint_in_another_slot_is_another_request(sent):
    _, form = keep(sent)
    assert sent.take_kept((1, "fp"), form) is None


def test_nothing_is_direct_where_others_write(shared):
    assert not shared.takes_direct
    assert not shared.in_memory


def test_nothing_is_direct_while_older_requests_are_unread(sent):
    assert sent.takes_direct
    _, form = keep(sent)
    assert not sent.takes_direct
    sent.take_kept(KEY, form)
    assert sent.takes_direct


def test_what_never_comes_back_as_it_was_a_duplicate_does_not_count_for_ever(sent):
    keep(sent)
    sent.nothing_is_behind()
    assert sent.takes_direct
    assert list(sent.kept()) == []


def test_a_direct_request_is_expected_until_its_batch_is_read(sent):
    entry = direct()
    sent.add_direct(KEY, entry)
    assert sent.has_direct
    assert sent.take_direct(KEY) is entry
    assert sent.take_direct(KEY) is None
    assert not sent.has_direct


def test_direct_requests_are_bounded(sent, monkeypatch):
    monkeypatch.setattr(module, "MAX_DIRECT", 2)
    for number in range(2):
        assert sent.takes_direct
        sent.add_direct((0, str(number)), direct(str(number)))
    assert not sent.takes_direct


def test_when_not_every_fingerprint_is_known_any_more_nothing_is_direct(sent, monkeypatch):
    monkeypatch.setattr(module, "_MAX_KNOWN", 3)
    fps = [bytes([number]) * 20 for number in range(5)]
    for fp in fps:
        assert not sent.knows(fp)
        sent.remember(fp)
        assert sent.takes_direct == (fp in fps[:2])
    assert all(map(sent.knows, fps))


def test_kept_requests_are_bounded_and_the_oldest_is_reported(sent, monkeypatch):
    monkeypatch.setattr(module, "_MAX_KEPT", 2)
    kept = [keep(sent, (0, str(number))) for number in range(2)]
    assert copied(sent, "2", Request(URL), 1) == [kept[0][0]]
    assert sent.take_kept((0, "0"), kept[0][1]) is None
    assert sent.take_kept((0, "1"), kept[1][1]) is kept[1][0]


def test_kept_requests_are_bounded_in_bytes(sent, monkeypatch):
    monkeypatch.setattr(module, "_MAX_KEPT_BYTES", 10_000)
    requests = [Request(URL) for _ in range(4)]
    sizes = (4000, 4000, 100, 4000)
    dropped = [copied(sent, str(number), requests[number], size) for number, size in enumerate(sizes)]
    assert dropped == [[], [], [], requests[:1]]
    assert copied(sent, "1", requests[1], 1000) == []
    assert copied(sent, "4", requests[0], 4000) == [], "a request that is sent again counts once"
    sent.nothing_is_behind()
    assert copied(sent, "5", requests[0], 10_000) == [], "and what was read or forgotten counts no more"


def test_direct_requests_are_bounded_in_bytes(sent, monkeypatch):
    monkeypatch.setattr(module, "MAX_DIRECT_BYTES", 10_000)
    for number in range(2):
        assert sent.takes_direct
        entry = direct(str(number))
        entry.request_bytes = 6000
        sent.add_direct((0, str(number)), entry)
    assert not sent.takes_direct
    sent.take_direct((0, "0"))
    assert sent.takes_direct


def test_what_is_kept_can_be_listed(sent):
    request, form = keep(sent)
    assert list(sent.kept()) == [request]
    sent.take_kept(KEY, form)
    assert list(sent.kept()) == []


def test_once_a_request_had_to_be_read_back_only_reads_show_that_nothing_is_left(sent, shared):
    sent.add_direct(KEY, direct())
    assert sent.only_direct
    _, form = keep(sent, (0, "other"))
    sent.take_kept((0, "other"), form)
    sent.take_direct(KEY)
    assert sent.in_memory
    assert not sent.only_direct
    assert not shared.only_direct
