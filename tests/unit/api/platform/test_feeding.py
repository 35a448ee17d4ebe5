"""Lines of pushed requests: Scrapy's fingerprints, the crawl's slots, and errors that name the line and the member."""

from __future__ import annotations

import base64
import contextlib
import json
from encodings.aliases import aliases
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import JsonRequest
from scrapy.utils.request import fingerprint

from scrapy_ext.api.platform.feeding import FORM_VERSION, REQUEST_CLASSES, fed, parsed
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, slot_of_url
from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.frontier import serialize
from scrapy_ext.crawl.frontier.identity import slot_of
from scrapy_ext.crawl.frontier.serialize import request_from_json, request_to_json


class Shop(Spider):
    name = "shop"

    def parse_product(self, response: Any) -> None:
        pass


URLS = [
    "https://example.com",
    "HTTP://Example.COM:80/a/../b?b=2&a=1&a=0#part",
    "https://example.com/ä ö?q=ü&leer=",
    "https://user:pass@example.com/%7Euser/%zz",
    "https://bücher.example/straße",
    "https://[::1]:8080/x",
    "data:,text",
    "https://example.com/?a=%C3%A4&b=a+b",
    "ftp://example.com/file",
    "https://example.com/\u202e",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("slots", [1, 8, 1000])
def test_a_url_has_the_fingerprint_and_the_slot_of_a_request_of_a_crawl(url: str, slots: int) -> None:
    request, pushed = Request(url), parsed(url, "line 1")
    assert pushed.form == {"v": FORM_VERSION, "url": request.url}
    assert pushed.fp == fingerprint(request).hex()
    assert slot_of_url(pushed.form["url"], pushed.chosen_slot, slots) == slot_of(request, slots)


REQUESTS: list[dict[str, Any]] = [
    {"method": "POST", "body": "a=1&ä=2"},
    {"method": "put", "body": b"\xff\x00"},
    {"method": "POST"},
    {"headers": {"Accept-Language": "de", "X-Many": ["1", "2"]}},
    {"cookies": {"a": "1"}, "meta": {"frontier_slot": "group", "depth": 3}},
    {"meta": {"frontier_slot": 5}, "cb_kwargs": {"page": 2}, "flags": ["fed"]},
    {"encoding": "latin-1", "priority": -5, "dont_filter": True},
    {"callback": "parse_product", "errback": "parse_product"},
]


@pytest.mark.parametrize("attributes", REQUESTS, ids=",".join)
def test_an_object_becomes_the_form_and_the_fingerprint_of_the_same_request_in_a_crawl(
    attributes: dict[str, Any],
) -> None:
    spider, url = Shop(), "https://example.com/ä?b=1&a=2"
    methods = {name: getattr(spider, attributes[name]) for name in ("callback", "errback") if name in attributes}
    request = Request(url, **{**attributes, **methods})
    line = dict(attributes)
    if isinstance(line.get("body"), bytes):
        line["body"] = {"$type": "bytes", "value": base64.b64encode(line["body"]).decode()}
    pushed = parsed(json.dumps({"url": url, **line}), "line 1")
    assert pushed.form == json.loads(json.dumps(request_to_json(request, spider)))
    assert pushed.fp == fingerprint(request).hex()
    assert slot_of_url(pushed.form["url"], pushed.chosen_slot, 8) == slot_of(request, 8)
    again = request_from_json(pushed.form, spider)
    assert again.to_dict(spider=spider) == request.to_dict(spider=spider)


def test_the_stored_form_of_a_crawl_is_a_valid_line() -> None:
    spider = Shop()
    form = request_to_json(
        JsonRequest("https://example.com/", data={"a": [1, 2]}, callback=spider.parse_product), spider
    )
    assert fed(json.loads(json.dumps(form)), "line 1").form == form


def test_the_classes_and_the_version_are_those_that_crawls_read() -> None:
    assert set(REQUEST_CLASSES) == set(serialize._CLASSES)
    assert FORM_VERSION == serialize.VERSION


def test_a_url_may_be_plain_or_a_json_string() -> None:
    assert parsed(b"  https://example.com/ \r\n", "line 1") == parsed('"https://example.com/"', "line 1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("example.com/a", "line 3.url: cannot be requested: it has no scheme"),
        ('{"url": "https://example.com/"', "line 3: is not a URL or a JSON object"),
        ("[" * 5000, "line 3: is not a URL or a JSON object"),
        ("[1]", "line 3: must be a URL or a JSON object"),
        (b"\xff\xfe", "line 3: is not a URL or a JSON object"),
        ("{}", "line 3.url: is missing"),
        ('{"url": 1}', "line 3.url: must be the URL of a page"),
        ('{"url": "https://a/", "prioritty": 1}', "line 3: has an unknown member 'prioritty'. Known are url, class,"),
        ('{"url": "https://a/", "priority": "high"}', "line 3.priority: must be a whole number"),
        ('{"url": "https://a/", "priority": true}', "line 3.priority: must be a whole number"),
        ('{"url": "https://a/", "dont_filter": 1}', "line 3.dont_filter: must be true or false"),
        ('{"url": "https://a/", "callback": "self.parse"}', "line 3.callback: must be the name of a method"),
        ('{"url": "https://a/", "headers": {"X": "a\\nb"}}', "line 3.headers: must be an object of names with text"),
        ('{"url": "https://a/", "headers": {"X": "\\u20ac"}}', "line 3.headers: must be an object"),
        ('{"url": "https://a/", "headers": {"X:": "a"}}', "line 3.headers: must be an object"),
        ('{"url": "https://a/", "body": {"$type": "bytes", "value": "?"}}', "line 3.body: must be text, or"),
        ('{"url": "https://a/", "body": {"$type": "set", "value": []}}', "line 3.body: must be text, or"),
        ('{"url": "https://a/", "meta": []}', "line 3.meta: must be an object"),
        ('{"url": "https://a/", "meta": {"frontier_slot": [1]}}', "line 3.meta: must be an object, frontier_slot"),
        ('{"url": "https://a/", "encoding": "klingon"}', "line 3.encoding: must be an encoding of text"),
        ('{"url": "https://a/", "encoding": "base64"}', "line 3.encoding: must be an encoding of text"),
        ('{"url": "https://a/", "encoding": "PunyCode"}', "line 3.encoding: must be an encoding of text"),
        ('{"url": "https://a/", "encoding": "idna"}', "line 3.encoding: must be an encoding of text"),
        ('{"url": "https://a/", "class": "os.system"}', "line 3.class: must be one of Request, FormRequest"),
        ('{"url": "https://a/", "v": 2}', "line 3.v: must be 1"),
        ('{"url": "https://a/", "fp": "XYZ"}', "line 3.fp: must be a fingerprint in lower-case hexadecimal digits"),
        ('{"url": "https://a/", "flags": ["a", 1]}', "line 3.flags: must be an array of text"),
        ('{"url": "https://a/", "method": "GET /"}', "line 3.method: must be a method of HTTP"),
        ('{"url": "https://[::1/"}', "line 3.url: cannot be requested"),
        ("https://a/" + "x" * MAX_REQUEST_BYTES, "line 3: must be at most 1048576 bytes of JSON"),
    ],
)
def test_an_invalid_line_is_refused_by_its_place_with_the_rule(line: str | bytes, message: str) -> None:
    with pytest.raises(ContractError) as refused:
        parsed(line, "line 3")
    assert str(refused.value).startswith(message)


def test_all_faults_of_a_line_are_named_at_once() -> None:
    with pytest.raises(ContractError) as refused:
        parsed('{"url": "https://a/", "priority": "1", "flags": 1}', "line 1")
    assert [violation.field for violation in refused.value.violations] == ["line 1.priority", "line 1.flags"]


def test_null_is_no_value_as_in_a_dict_of_scrapy() -> None:
    given = dict.fromkeys(("callback", "errback", "body", "cookies", "meta"))
    assert fed({"url": "https://a/", **given}, "line 1") == parsed("https://a/", "line 1")


def test_a_request_with_dont_filter_is_known_by_its_push_and_line_alone() -> None:
    line = '{"url": "https://a/", "dont_filter": true}'
    records = [parsed(line, "").record(push, index).fp for push in ("monday", "tuesday") for index in (0, 1)]
    assert len({*records, parsed("https://a/", "").fp}) == 5
    assert parsed(line, "").record("monday", 0).fp == records[0]
    assert {parsed("https://a/", "").record(push, index).fp for push in "ab" for index in (0, 1)} == {
        parsed("https://a/", "").fp
    }


def test_a_high_priority_comes_first_within_the_limits_of_the_queue() -> None:
    priorities = [
        parsed(json.dumps({"url": "https://a/", "priority": p}), "").record("p", 0).p for p in (1, -(2**40), 2**40)
    ]
    assert priorities == [-1, 2**31 - 1, -(2**31)]


def test_only_the_crawl_knows_the_fingerprint_of_a_request_with_fields_of_the_extraction() -> None:
    assert parsed('{"url": "https://a/", "meta": {"extract_api": {"browserHtml": true}}}', "").needs_fp
    assert not parsed('{"url": "https://a/", "meta": {"extract_api": true}}', "").needs_fp
    assert not parsed('{"url": "https://a/", "fp": "00", "meta": {"extract_api": {"browserHtml": true}}}', "").needs_fp


@pytest.mark.parametrize("encoding", sorted({*aliases.values(), "idna", "punycode", "utf-8"}))
def test_no_encoding_makes_a_long_url_slow(encoding: str) -> None:
    # With punycode, 2000 characters took half a second, and four times as many 16 times as long.
    text = "".join(chr(0x100 + 37 * number % 3000) for number in range(20_000))
    with contextlib.suppress(ContractError):
        parsed(json.dumps({"url": f"https://a/?q={text}", "encoding": encoding}), "line")
