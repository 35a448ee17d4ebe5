"""Lines of input: how they are cut, what they ask for, and how little of them is held."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.commands.extraction.execute import check_lines
from scrapy_ext.commands.extraction.input_lines import (
    MAX_LINE_BYTES,
    InputLine,
    LineParser,
    LineRequest,
    LineSplitter,
    Source,
    read_lines,
)
from scrapy_ext.commands.extraction.resume import Done
from scrapy_ext.commands.extraction.run import MOST, MOST_BYTES, RequestWindow


def parsed(text: str, params: dict[str, Any] | None = None, given: dict[str, Any] | None = None) -> LineRequest:
    return LineParser(params or {}, given or {}).parse(InputLine(1, text.encode()))


def cut(data: bytes, size: int) -> list[tuple[int, bytes]]:
    splitter = LineSplitter()
    lines = [line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])]
    return [(line.number, line.text) for line in [*lines, *splitter.end()]]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    data = b"\xef\xbb\xbfhttp://a/\r\n\n  http://b/ \n\t\n{}\nhttp://c/"
    assert cut(data, size) == [(1, b"http://a/"), (3, b"http://b/"), (5, b"{}"), (6, b"http://c/")]
    assert cut(data + b"\n", size) == cut(data, size)
    assert cut(b"", size) == []


def test_a_line_that_never_ends_is_reported_and_not_held() -> None:
    pieces = [b"http://a/\n", *[b"x" * 2**20] * (MAX_LINE_BYTES // 2**20 + 5), b"\nhttp://b/\n"]
    lines = [line for batch in read_lines(reader(pieces)) for line in batch]
    assert [(line.number, line.is_too_long) for line in lines] == [(1, False), (2, True), (3, False)]
    assert len(lines[1].text) < 2**17
    (fault,) = LineParser({}, {}).parse(lines[1]).violations(())
    assert "must be at most" in str(fault)


def reader(pieces: list[bytes]) -> Callable[[int], bytes]:
    left = iter([*pieces, b""])
    return lambda _size: next(left)


def test_a_url_alone_asks_for_the_page_as_a_request_of_a_crawl_does() -> None:
    wanted = parsed("https://example.com/a")
    assert wanted.url == "https://example.com/a"
    assert wanted.fields == {
        "url": "https://example.com/a", "httpResponseBody": True, "httpResponseHeaders": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ({"browserHtml": True}, {"browserHtml"}),
        ({"httpResponseBody": True}, {"httpResponseBody", "httpResponseHeaders"}),
        ({"httpResponseBody": True, "httpResponseHeaders": False}, {"httpResponseBody"}),
        ({"httpResponseHeaders": True}, {"httpResponseHeaders"}),
        ({"serp": True}, {"serp"}),
    ],
)
def test_a_line_that_asks_for_something_gets_that(line: dict[str, Any], asked: set[str]) -> None:
    fields = parsed(json.dumps({"url": "https://example.com/", **line})).fields
    assert {name for name, value in fields.items() if value is True} == asked


def test_a_lines_own_fields_win_over_the_command_line_and_those_over_the_settings() -> None:
    settings = {"geolocation": "US", "ipType": "datacenter", "tags": {"a": "1"}}
    line = '{"url": "https://example.com/", "geolocation": "DE", "tags": null}'
    fields = parsed(line, settings, {"geolocation": "FR", "ipType": "residential"}).fields
    assert fields["geolocation"] == "DE"
    assert fields["ipType"] == "residential"
    assert "tags" not in fields


def test_serp_is_sent_without_what_the_settings_add_to_every_request() -> None:
    fields = parsed('{"url": "https://example.com/", "serp": true}', {"geolocation": "US"}).fields
    assert fields == {"url": "https://example.com/", "serp": True}


def test_a_url_as_people_write_it_is_sent_as_scrapy_would_send_it() -> None:
    wanted = parsed("https://example.com/a b/ü")
    assert wanted.url == "https://example.com/a b/ü"
    assert wanted.fields["url"] == "https://example.com/a%20b/%C3%BC"
    assert wanted.violations(()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"example.com", "must be an absolute http or https URL"),
        (b"http://[::1", "is not a URL"),
        (b"http://127.0.0.1/", "must name a domain"),
        (b'{"url": "https://example.com/"', "is not JSON"),
        (b'{"a": ' * 100_000, "is not JSON"),
        (b'{"url": 5}', "must be a string"),
        (b'{"browserHtml": true}', "url: is required"),
        (b'{"url": "https://example.com/", "browserHtm": true}', "Did you mean browserHtml?"),
        (b'{"url": "https://example.com/", "product": true, "product": false}', "product: is given more than once"),
        (b"https://example.com/\xff", "must be UTF-8, and byte 21 is not"),
        (b'{"url": "https://example.com/", "echoData": "%s"}' % (b"x" * 6 * 2**20), "at most 5242880 bytes"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_line_is_told(line: bytes, message: str) -> None:
    wanted = LineParser({}, {}).parse(InputLine(1, line))
    assert any(message in str(violation) for violation in wanted.violations(()))
    assert isinstance(wanted.domain, str)


def test_extra_fields_are_let_through() -> None:
    wanted = parsed('{"url": "https://example.com/", "newField": 1}')
    assert wanted.violations(()) != []
    assert wanted.violations(["newField"]) == []


def test_lines_that_ask_for_other_content_have_other_fingerprints() -> None:
    plain = parsed("https://example.com/a").fingerprint
    assert parsed('{"url": "https://example.com/a", "httpResponseBody": true}').fingerprint == plain
    assert parsed('{"url": "https://example.com/a", "tags": {"run": "2"}}').fingerprint == plain
    assert parsed("https://example.com/b").fingerprint != plain
    assert parsed("https://example.com/a", {}, {"browserHtml": True}).fingerprint != plain
    assert parsed("{").fingerprint != parsed("{{").fingerprint


def test_lines_that_are_done_are_known_however_far_apart_they_are() -> None:
    done = Done()
    numbers = [1, 2, 16_383, 16_384, 1_000_000, 2**47]
    assert [done.add(number, f"{number % 2**32:08x}", failed=number == 2) for number in numbers] == [True] * 6
    assert done.add(2, "00000000", failed=False) is False
    assert [number in done for number in (0, 1, 2, 3, 2**47 - 1, 2**47)] == [False, True, True, False, False, True]
    assert done.is_same(1_000_000, "000f4240")
    assert not done.is_same(1_000_000, "000f4241")
    assert (done.answered, done.failed, done.last) == (5, 1, 2**47)


# ── how little is held ──


def wanted_of(domain: str, number: int = 1, size: int = 100) -> LineRequest:
    url = f"http://{domain}/{number}"
    return LineRequest(number, url, {"url": url}, "00000000", size)


def test_the_window_has_a_bound_of_lines_and_of_bytes() -> None:
    window = RequestWindow()
    while not window.is_full:
        window.add(wanted_of("a"))
    assert len(window) == MOST
    window.clear()
    assert not window.is_full
    window.add(wanted_of("a", size=MOST_BYTES))
    assert window.is_full


def test_domains_take_turns_and_one_without_room_is_passed_over() -> None:
    window = RequestWindow()
    for number in range(3):
        for domain in ("a", "b", "c"):
            window.add(wanted_of(domain, number))
    taken = [window.take(lambda domain: domain != "b") for _ in range(7)]
    assert [wanted and wanted.url for wanted in taken] == [
        "http://a/0", "http://c/0", "http://a/1", "http://c/1", "http://a/2", "http://c/2", None,
    ]  # fmt: skip
    assert len(window) == 3


def peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_five_times_the_lines_need_no_more_memory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def checked(count: int) -> Callable[[], None]:
        path = tmp_path / f"{count}.txt"
        path.write_text("".join(f"https://shop.example/product/{number}\n" for number in range(count)))
        return lambda: counts.append(check_lines(Source((), str(path)), LineParser({}, {}), ()))

    counts: list[tuple[int, int]] = []
    few, many = (peak(checked(count)) for count in (4_000, 20_000))
    assert counts == [(4_000, 0), (20_000, 0)]
    assert many < 1.2 * few
    assert capfd.readouterr().out == ""


def test_very_many_lines_are_read_a_few_at_a_time() -> None:
    data = b"https://shop.example/product/1234567\n" * 200_000
    position = 0

    def read(size: int) -> bytes:
        nonlocal position
        piece = data[position : position + size]
        position += size
        return piece

    number, longest = 0, 0
    for lines in read_lines(read):
        longest = max(longest, len(lines))
        number = lines[-1].number
    assert number == 200_000
    assert longest < 3000


def test_a_pipe_is_read_line_by_line_as_they_come() -> None:
    ours, theirs = os.pipe()
    lines: Iterator[list[InputLine]] = read_lines(lambda size: os.read(ours, size))
    for number in range(3):
        os.write(theirs, b"http://a/%d\n" % number)
        assert [line.text for line in next(lines)] == [b"http://a/%d" % number]
    os.close(theirs)
    assert next(lines, None) is None
    os.close(ours)
