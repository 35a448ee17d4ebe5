"""A request survives its way through the frontier."""

from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.utils.request import fingerprint

from scrapy_ext.api.platform.frontier import FrontierRequest
from scrapy_ext.crawl.frontier.marks import AddedValue, Parent, mark, note_record, parent_of, record_of
from scrapy_ext.crawl.frontier.serialize import (
    LOCAL_META,
    NotSerializableError,
    UnreadableRequestError,
    request_from_json,
    request_to_json,
)
from scrapy_ext.crawl.session.scrapy_engine import values_of


class Books(Spider):
    name = "books"

    def parse(self, response):
        pass

    def failed(self, failure):
        pass

    def __private(self, response):
        pass

    alias = Spider.parse

    def requests(self):
        return [Request(URL, self.__private), Request(URL, self.alias)]


spider = Books()
URL = "https://example.com/a?b=c"


def through_json(request):
    stored = msgspec.json.decode(msgspec.json.encode(request_to_json(request, spider)))
    return request_from_json(stored, spider)


def same(one, other):
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in one.attributes)


@pytest.mark.parametrize(
    "request_",
    [
        Request(URL),
        Request(URL, callback=spider.parse, errback=spider.failed, priority=-3, dont_filter=True, flags=["x"]),
        Request(URL, method="PUT", body=b"\xff\x00\xfe", encoding="latin-1"),
        Request(URL, body="größe"),
        Request(URL, headers={"Caf\xe9": b"x"}),
        Request(URL, headers={"A": [b"caf\xe9", b"x"], "B": b""}, cookies=[{"name": "a", "value": "b"}]),
        Request(URL, cookies={"a": "b"}),
        FormRequest(URL, formdata={"a": "ü"}),
        JsonRequest(URL, data={"a": [1]}),
        JsonRequest(URL, data={"b": 1, "a": "ü"}, dumps_kwargs={"sort_keys": False, "separators": (",", ":")}),
        Request(
            URL,
            meta={
                "tuple": (1, (2,)),
                "set": {1, 2},
                "frozenset": frozenset("a"),
                "bytes": b"\x00",
                "datetime": datetime(2026, 1, 2, tzinfo=timezone.utc),
                "date": date(2026, 1, 2),
                "decimal": Decimal("1.10"),
                "uuid": UUID(int=5, is_safe=SafeUUID.unsafe),
                "spans": [timedelta.min, timedelta(microseconds=-1), timedelta.max],
                "paths": [Path("a/ü"), PurePosixPath("/"), PureWindowsPath("C:\\a")],
                "keys": {1: "a", None: "b", (1, 2): "c"},
                "tagged": {"$type": "tuple", "value": []},
                "big": 2**70,
                "infinite": float("inf"),
                "nested": [{"a": [None, True, 1.5]}],
            },
            cb_kwargs={"page": 2, "tags": ("a",)},
        ),
    ],
    ids=lambda request: request.method,
)
def test_every_attribute_comes_back(request_):
    assert same(request_, through_json(request_))


def test_a_json_request_whose_options_hold_a_function_stays_in_the_process():
    with pytest.raises(NotSerializableError, match="dumps_kwargs"):
        request_to_json(JsonRequest(URL, data={}, dumps_kwargs={"default": repr}), spider)


@pytest.mark.parametrize("request_", spider.requests(), ids=["private", "alias"])
def test_a_callback_comes_back_under_whatever_name_the_spider_has_it(request_):
    assert through_json(request_).callback == request_.callback


class Text(str):
    """As the texts that lxml makes."""


def test_a_text_of_another_class_comes_back_as_its_characters():
    back = through_json(Request(URL, meta={"link_text": Text("more")}))
    assert back.meta["link_text"] == "more"
    assert type(back.meta["link_text"]) is str


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 3, 1, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        datetime(2026, 10, 25, 2, 30, fold=1),  # noqa: DTZ001 - spiders have those without a zone
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45, microseconds=1))),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-5), "EST")),
    ],
    ids=str,
)
def test_a_time_comes_back_in_its_zone(moment):
    """A fixed offset would make another time of it when days are added."""
    back = through_json(Request(URL, meta={"at": moment, "zone": moment.tzinfo})).meta
    assert repr(back["at"]) == repr(moment)
    assert back["at"] + timedelta(days=180) == moment + timedelta(days=180)
    assert repr(back["zone"]) == repr(moment.tzinfo)


@pytest.mark.parametrize(
    "moment",
    [
        time(23, 59, 59, 999999),
        time(1, 30, fold=1),
        time(5, tzinfo=timezone.utc),
        time(5, tzinfo=timezone(timedelta(hours=5, minutes=45), "NPT")),
        time(5, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
    ids=str,
)
def test_a_time_of_day_comes_back_with_its_zone(moment):
    back = through_json(Request(URL, meta={"at": moment})).meta["at"]
    assert repr(back) == repr(moment)


@pytest.mark.parametrize("path", [Path("a"), PureWindowsPath("C:/a")], ids=str)
def test_a_path_comes_back_as_one_of_its_system(path):
    assert type(through_json(Request(URL, meta={"path": path})).meta["path"]) is type(path)


class Fixed(tzinfo):
    """As UTC of pytz and dateutil, and the zones of dateparser."""

    def utcoffset(self, _at):
        return timedelta(hours=2)

    def tzname(self, _at):
        return "CEST"


def test_a_zone_of_another_library_with_one_offset_comes_back_as_that_offset():
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=Fixed())
    back = through_json(Request(URL, meta={"at": moment})).meta["at"]
    assert (back.isoformat(), back.tzname()) == ("2026-01-02T03:04:00+02:00", "CEST")


class Zone(tzinfo):
    """As those of pytz and dateutil: the offset depends on the time."""

    def utcoffset(self, at):
        return None if at is None else timedelta(hours=1)


def test_a_time_in_a_zone_of_another_class_stays_in_the_process():
    with pytest.raises(NotSerializableError, match=r"holds a .*Zone"):
        request_to_json(Request(URL, meta={"at": datetime(2026, 1, 1, tzinfo=Zone())}), spider)


def test_a_typical_request_is_small():
    """The line that goes to the frontier: fingerprint, priority, parent and all."""
    url = "https://www.example.com/products/category/12345?page=2"
    request = Request(url, spider.parse, priority=10, meta={"depth": 3})
    mark(request, Parent(123_456, "12345/12/345"))
    record = FrontierRequest(fingerprint(request).hex(), request_to_json(request, spider), p=-request.priority)
    assert len(msgspec.json.encode(record)) <= 250


def test_only_values_that_json_has_as_they_are_go_without_a_copy():
    plain = {"text": "a", "whole": -(2**63), "none": None, "flag": True}
    assert request_to_json(Request(URL, cb_kwargs=plain), spider)["cb_kwargs"] == plain
    others = ("ü", 2**63, float("nan"), b"x", (1,), Text("a"))
    for member in others:
        back = through_json(Request(URL, meta={"member": member})).meta["member"]
        assert back == member or member != member, member
    assert through_json(Request(URL, meta={"$type": "int"})).meta == {"$type": "int"}
    assert through_json(Request(URL, meta={5: 6, "ü": 7})).meta == {5: 6, "ü": 7}


def test_a_waiting_request_gets_no_empty_headers_or_cookies():
    request = Request(URL)
    before = values_of(request)[:3]
    request_to_json(request, spider)
    assert all(value is other for value, other in zip(values_of(request), before, strict=False))


def test_what_belongs_to_one_process_stays_there_and_the_parent_goes_along():
    request = Request(URL, meta=dict.fromkeys(LOCAL_META, 1) | {"depth": 1})
    mark(request, Parent(5, "7/1/2"))
    note_record(request, 6)
    back = through_json(request)
    assert back.meta == {"depth": 1}
    assert (parent_of(back), record_of(back)) == (Parent(5, "7/1/2"), None)


@pytest.mark.parametrize("parent", [5, [5], ["7/1/2", 5], {}], ids=repr)
def test_a_parent_that_cannot_be_read_is_none(parent):
    assert parent_of(request_from_json({"v": 1, "url": URL, "parent": parent}, spider)) is None


def test_headers_that_scrapy_added_are_not_stored_for_it_adds_them_again():
    request = Request(URL, headers={"Accept": AddedValue(b"text/html"), "X-Own": "1"}, meta={"a": AddedValue(b"x")})
    back = through_json(request)
    assert back.headers == {b"X-Own": [b"1"]}
    assert back.meta == {"a": b"x"}


@pytest.mark.parametrize("cls", [Request, FormRequest, JsonRequest, XmlRpcRequest], ids=lambda cls: cls.__name__)
def test_scrapys_own_classes_come_back_as_they_were(cls):
    request = cls(URL)
    assert same(request, through_json(request))


@pytest.mark.parametrize("cls", ["Response", "scrapy.Request", "builtins.eval", "", None, ["Request"]], ids=repr)
def test_a_class_that_is_not_among_them_is_never_looked_up(cls):
    with pytest.raises(UnreadableRequestError):
        request_from_json({"v": 1, "url": URL, "class": cls}, spider)


def test_a_class_of_the_same_name_is_not_taken_for_scrapys():
    imitation = type("FormRequest", (Request,), {})
    with pytest.raises(NotSerializableError, match="FormRequest is not one of Scrapy's own"):
        request_to_json(imitation(URL), spider)


def test_a_derived_request_class_is_not_guessed():
    class Special(Request):
        pass

    with pytest.raises(NotSerializableError, match="Special"):
        request_to_json(Special(URL), spider)


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Request(URL, callback=lambda response: None), "callback"),
        (Request(URL, callback=Books().parse), "callback"),
        (Request(URL, meta={"a": [object()]}), "meta"),
        (Request(URL, cb_kwargs={"spider": spider}), "cb_kwargs"),
        (Request(URL, meta={"a": "\ud800"}), "Unicode"),
    ],
    ids=["lambda", "other spider", "object", "spider", "surrogate"],
)
def test_what_json_cannot_hold_is_refused_with_the_place(request_, word):
    with pytest.raises(NotSerializableError, match=word):
        request_to_json(request_, spider)


def test_meta_that_contains_itself_is_refused():
    meta = {}
    meta["self"] = meta
    with pytest.raises(NotSerializableError, match="deep"):
        request_to_json(Request(URL, meta=meta), spider)


@pytest.mark.parametrize(
    ("stored", "word"),
    [
        (None, "version"),
        ({"v": 99, "url": URL}, "99"),
        ({"v": 1}, "url"),
        ({"v": 1, "url": URL, "callback": "gone"}, "gone"),
        ({"v": 1, "url": URL, "class": "os.system"}, "os.system"),
        ({"v": 1, "url": "no-url"}, "no-url"),
        ({"v": 1, "url": URL, "meta": {"a": {"$type": "object"}}}, "object"),
    ],
)
def test_a_stored_request_that_cannot_be_run_says_why(stored, word):
    with pytest.raises(UnreadableRequestError, match=word):
        request_from_json(stored, spider)
