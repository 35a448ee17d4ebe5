"""A request has the same fingerprint when whatever made it runs again."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter, fingerprint

from scrapy_ext.api.platform.frontier import next_fingerprint
from scrapy_ext.crawl.commit.tracking import Entry, current
from scrapy_ext.crawl.frontier.identity import SlotFingerprints, fingerprint_by, slot_of
from scrapy_ext.crawl.frontier.marks import Parent, mark

URL = "http://a.example/"


class Fingerprints:
    """Those of a process."""

    def __init__(self):
        self._slots = SlotFingerprints(RequestFingerprinter())

    def of(self, request, origin):
        plain = self._slots.plain(request)
        return self._slots.of(request, plain, origin, is_filtered=not request.dont_filter)


@pytest.fixture
def fingerprints():
    """Makes those of a process."""
    return Fingerprints


def parent(fp="parent"):
    return Entry(fp, Request(URL), "a.example", None, None)


def unfiltered(name, **more):
    return Request(URL + name, dont_filter=True, **more)


def start(name, **more):
    return Request(URL + name, dont_filter=True, meta={"is_start_request": True}, **more)


@pytest.mark.parametrize("origin", [None, parent()], ids=["no parent", "a parent"])
def test_what_scrapy_filters_has_scrapys_fingerprint(fingerprints, origin):
    request = Request(URL, method="POST", body=b"x")
    of = fingerprints().of
    assert of(request, origin) == of(request, origin) == fingerprint(request).hex()


def test_children_with_dont_filter_have_the_same_fingerprints_in_any_order(fingerprints):
    names = ["a", "b", "b", "c", "c", "c"]
    seen = set()
    for order in sorted(set(itertools.permutations(names))):
        of, entry = fingerprints().of, parent()
        fps = [of(unfiltered(name), entry) for name in order]
        assert len(set(fps)) == len(names)
        seen.add(tuple(sorted(fps)))
    assert len(seen) == 1


def test_they_differ_from_the_filtered_one_and_by_parent_and_by_kind(fingerprints):
    of = fingerprints().of
    fps = [
        of(Request(URL), parent("one")),
        of(unfiltered(""), parent("one")),
        of(unfiltered(""), parent("two")),
        of(unfiltered("", method="POST"), parent("one")),
    ]
    assert len(set(fps)) == len(fps)


def test_what_a_callback_and_an_errback_yield_counts_together(fingerprints):
    """They run for the same request, in turn: what the errback yields is not taken for what the callback did."""
    of, entry = fingerprints().of, parent()
    callback, errback = of(unfiltered("", callback=print), entry), of(unfiltered("", errback=print), entry)
    assert callback != errback
    again = parent()
    of = fingerprints().of
    assert {of(unfiltered(""), again), of(unfiltered(""), again)} == {callback, errback}


def test_an_attempt_that_stopped_half_way_and_the_next_one_agree(fingerprints):
    of, entry = fingerprints().of, parent()
    first = [of(unfiltered(name), entry) for name in ("a", "a")]
    entry.children.clear()  # As when it is tried again.
    assert [of(unfiltered(name), entry) for name in ("a", "a", "a")][:2] == first


def test_start_requests_have_the_same_fingerprints_in_each_run_and_equal_ones_a_number(fingerprints):
    runs = []
    for _ in range(2):
        of = fingerprints().of
        runs.append([of(start(name), None) for name in ("a", "b", "a", "a", "b")])
    a, b = (fingerprint(Request(URL + name)).hex() for name in "ab")
    assert runs[0] == runs[1] == [f"{a}#1", f"{b}#1", f"{a}#2", f"{a}#3", f"{b}#2"]


def test_a_start_request_does_not_make_a_later_request_for_its_page_a_duplicate(fingerprints):
    of = fingerprints().of
    first = of(start("a"), None)
    assert of(Request(URL + "a"), parent()) not in (first, of(start("a"), None))


class Broken:
    def fingerprint(self, request):
        raise ValueError("no fingerprint")


def test_a_fingerprinter_that_raises_stops_only_requests_that_scrapy_would_ask_it_for():
    fingerprints = SlotFingerprints(Broken())
    assert fingerprints.plain(unfiltered("a")) == fingerprint(unfiltered("a"))
    with pytest.raises(ValueError, match="no fingerprint"):
        fingerprints.plain(Request(URL))


def test_a_child_that_copied_the_meta_of_a_start_request_is_no_start_request(fingerprints):
    request = start("a")
    mark(request, Parent(0, "1/1/1"))
    entry = parent()
    token = current.set(entry)
    try:
        assert fingerprints().of(request, entry) == fingerprints().of(unfiltered("a"), parent())
    finally:
        current.reset(token)


def test_what_is_made_for_no_request_is_never_filtered(fingerprints):
    of = fingerprints().of
    assert max(Counter(of(unfiltered(""), None) for _ in range(100)).values()) == 1


def test_a_request_that_is_put_back_has_a_new_name_each_time():
    names = ["ab12"]
    for _ in range(11):
        names.append(next_fingerprint(names[-1]))
    assert names[:3] == ["ab12", "ab12~1", "ab12~2"]
    assert names[-1] == "ab12~11"
    assert next_fingerprint("odd~name") == "odd~name~1"
    assert next_fingerprint("odd~²") == "odd~²~1"
    assert next_fingerprint("ab12#2") == "ab12#2~1"


class _Prints:
    def __init__(self, value: object) -> None:
        self.value = value

    def fingerprint(self, request: Request) -> object:
        return self.value


@pytest.mark.parametrize("value", ["", "https://a.example/", "ü", 5, 1.5, None, (1, "a"), b""])
def test_a_fingerprint_of_any_plain_type_is_one(value):
    made = [fingerprint_by(_Prints(each), Request("https://a.example/")) for each in (value, value, "other")]
    assert made[0] == made[1] != made[2]
    assert len(made[0]) == 20


def test_bytes_are_kept_and_so_is_the_text_of_scrapys_former_fingerprints():
    digest = bytes(range(20))
    for value in (digest, digest.hex()):
        assert fingerprint_by(_Prints(value), Request("https://a.example/")) == digest


def test_an_object_is_no_fingerprint():
    with pytest.raises(TypeError, match=r"_Prints \(REQUEST_FINGERPRINTER_CLASS\) returned object"):
        fingerprint_by(_Prints(object()), Request("https://a.example/"))


def test_a_spread_host_has_one_slot_for_each_page_and_for_each_jar() -> None:
    pages = [Request(f"https://a.example/{number}") for number in range(50)]
    slots = [slot_of(page, 8, fingerprint(page)) for page in pages]
    assert set(slots) == set(range(8))
    assert slots == [slot_of(page.replace(priority=1), 8, fingerprint(page)) for page in pages]
    in_jar = [page.replace(meta={"cookiejar": 7}) for page in pages]
    assert len({slot_of(page, 8, fingerprint(page)) for page in in_jar}) == 1
    chosen = Request("https://a.example/", meta={"frontier_slot": 3, "cookiejar": 7})
    assert slot_of(chosen, 8, fingerprint(chosen)) == 3
