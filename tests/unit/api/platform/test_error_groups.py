"""Error lines as Scrapy, Python and other libraries write them, and the groups that they make."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.error_groups import (
    MOST_GROUPS,
    ErrorGroup,
    group_errors,
    parse_error,
    recurring_errors,
    title_of,
)

SITE = "/srv/env/lib/python3.12/site-packages"

KEY_ERROR = f"""Spider error processing <GET https://shop.example/page/7> (referer: None)
Traceback (most recent call last):
  File "{SITE}/twisted/internet/defer.py", line 1253, in adapt
    extracted: _SelfResultT | Failure = result.result()
                                        ~~~~~~~~~~~~~^^
  File "{SITE}/scrapy/core/spidermw.py", line 167, in process_sync
    for r in iterable:
             ^^^^^^^^
  File "/srv/shop/spiders/shop.py", line 30, in parse
    yield from self.books(response)
  File "/srv/shop/spiders/shop.py", line 34, in books
    yield {{"title": data["headline"]}}
                    ~~~~^^^^^^^^^^^^
KeyError: 'headline'
"""
CHAINED = f"""Error processing {{'name': 'x'}}
Traceback (most recent call last):
  File "/srv/shop/pipelines.py", line 9, in process_item
    float(item["price"])
ValueError: could not convert string to float: 'free'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{SITE}/scrapy/pipelines/__init__.py", line 3, in run
    x()
  File "/srv/shop/pipelines.py", line 11, in process_item
    raise DropError(f"no price: {{item}}")
shop.pipelines.DropError: no price: 17
second line of the message
"""
INSTALLED = f"""Traceback (most recent call last):
  File "/usr/lib/python3.12/asyncio/events.py", line 84, in _run
    self._context.run(self._callback, *self._args)
  File "{SITE}/scrapy/core/scraper.py", line 3, in run
    x()
  File "{SITE}/shop/spiders/a.py", line 5, in parse
    1 / 0
ZeroDivisionError: division by zero
"""


@pytest.mark.parametrize(
    ("message", "title", "callback", "place"),
    [
        (KEY_ERROR, "KeyError: 'headline'", "parse", "shop.py:34"),
        (CHAINED, "shop.pipelines.DropError: no price: N", "process_item", "pipelines.py:11"),
        (INSTALLED, "ZeroDivisionError: division by zero", "parse", "a.py:5"),
        (INSTALLED.replace("/", "\\").replace("\\usr\\lib", "C:\\Lib"), "ZeroDivisionError: division by zero", "", ""),
        (
            "Gave up retrying <GET https://a.example/?page=3> (failed 3 times): 503 Service Unavailable",
            "Gave up retrying <request> (failed N times): 503 Service Unavailable",
            "",
            "",
        ),
        ("Row 404 of 503: Service Unavailable", "Row N of N: Service Unavailable", "", ""),
        ("Error downloading https://a.example/1: 0x7f3a refused", "Error downloading URL N refused", "", ""),
        ("", "", "", ""),
        ("Traceback (most recent call last): in the text of a page", "Traceback (most recent call last): in", "", ""),
    ],
)
def test_an_error_has_the_title_and_the_place_that_a_person_would_give_it(
    message: str, title: str, callback: str, place: str
) -> None:
    error = parse_error(message)
    own = error.own_frames
    assert title_of(error).startswith(title.split(" in", maxsplit=1)[0] if "text of a page" in message else title)
    if "Lib" not in message:
        assert (own[0].function if own else "", own[-1].place if own else "") == (callback, place)


def test_the_own_frames_have_their_code() -> None:
    error = parse_error(KEY_ERROR)
    assert [(frame.line, frame.code) for frame in error.own_frames] == [
        (30, "yield from self.books(response)"),
        (34, 'yield {"title": data["headline"]}'),
    ]
    assert error.lead == "Spider error processing <GET https://shop.example/page/7> (referer: None)"


def test_lines_with_the_same_exception_and_place_are_one_group() -> None:
    lines = [(number, 1000 + number, KEY_ERROR.replace("page/7", f"page/{number}")) for number in range(5)]
    lines.append((9, 1, "Gave up retrying <GET https://a.example/> (failed 3 times): 503"))
    first, second = group_errors(lines)
    assert (first.title, first.count, first.first, first.last, first.line) == ("KeyError: 'headline'", 5, 1000, 1004, 0)
    assert first.example == KEY_ERROR.replace("page/7", "page/0")
    assert second.count == 1


def test_more_sorts_than_are_kept_are_counted_together() -> None:
    names = [f"{first}{second}" for first in "abcdefghij" for second in "abcdefghij"]
    groups = group_errors((number, number, f"sort {name}") for number, name in enumerate(names))
    assert len(groups) == MOST_GROUPS + 1
    assert groups[0].title == f"further errors, of more than {MOST_GROUPS} sorts"
    assert sum(group.count for group in groups) == len(names)


def test_an_error_of_several_jobs_has_the_numbers_of_all_and_the_example_of_the_newest() -> None:
    def group(title: str, count: int, time: int, place: str = "") -> ErrorGroup:
        return ErrorGroup(title, count, time, time + 9, time % 7, f"{title} at {time}", "parse", place)

    newest = [group("KeyError: 'b'", 1, 300, "shop.py:4"), group("KeyError: 'b'", 2, 300, "shop.py:9")]
    older = [group("timeout", 50, 200), group("KeyError: 'b'", 4, 200, "shop.py:4")]
    found = recurring_errors([(9, newest), (7, older)])
    assert [(error.group.title, error.group.count, error.jobs) for error in found] == [
        ("KeyError: 'b'", 5, [9, 7]),
        ("KeyError: 'b'", 2, [9]),
        ("timeout", 50, [7]),
    ]
    first = found[0].group
    assert (first.first, first.last, first.line, first.example) == (200, 309, 300 % 7, "KeyError: 'b' at 300")
    assert first.in_a_line == "KeyError: 'b' × 5 (parse, shop.py:4)"
    assert newest[0].count == 1


def test_of_a_long_traceback_the_frames_at_both_ends_are_parsed() -> None:
    # A page with 60 lines of 460 KB kept the server from other work for two seconds.
    frames = "".join(f'  File "/srv/shop/deep.py", line {number}, in step\n    step()\n' for number in range(20_000))
    error = parse_error(f"failed\nTraceback (most recent call last):\n{frames}RecursionError: too deep")
    lines = [frame.line for frame in error.frames]
    assert len(lines) < 1000
    assert (lines[0], lines[-1], lines) == (0, 19_999, sorted(lines))
    assert (error.lead, error.exception) == ("failed", "RecursionError: too deep")
    long = parse_error(KEY_ERROR + "x" * 100_000)
    assert [frame.line for frame in long.frames] == [frame.line for frame in parse_error(KEY_ERROR).frames]


@pytest.mark.parametrize(
    "message", ["ValueError: wrong row " + "x" * 100_000, "ValueError: wrong row\n" + "r\n" * 50_000]
)
def test_of_a_long_traceback_with_a_long_message_the_message_is_kept_from_its_begin(message: str) -> None:
    frames = "".join(f'  File "/srv/shop/deep.py", line {number}, in step\n    step()\n' for number in range(1000))
    error = parse_error(f"failed\nTraceback (most recent call last):\n{frames}{message}")
    assert error.frames[-1].line == 999
    assert error.exception.startswith("ValueError: wrong row")


def titles(*lines: str) -> list[str]:
    return [group.title for group in group_errors((number, number, line) for number, line in enumerate(lines))]


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (
            ["No such file: '/data2/run7/x.json'", "No such file: '/data2/run7/x.json'"],
            "No such file: '/data2/run7/x.json'",
        ),
        (["row 7 of /data2/x", "row 8 of /data2/x", "row 7 of /data2/x"], "row N of /data2/x"),
        (["'utf8' codec fails at 17"], "'utf8' codec fails at 17"),
        (["'utf8' codec fails at 17", "'utf8' codec fails at 9"], "'utf8' codec fails at N"),
        (["<GET https://a.example/1> at 0x7f", "<GET https://a.example/2> at 0x7e"], "<request> at N"),
        (["at https://a.example/1: 3", "at https://a.example/1: 4"], "at https://a.example/1: N"),
        (
            ["key 3f2a9c00-aaaa-4bbb-8ccc-0123456789ab", "key 11111111-2222-4333-8444-555555555555"],
            "key N",
        ),
        (
            ["key 3F2A9C00-AAAA-4BBB-8CCC-0123456789AB", "key 11111111-2222-4333-8444-555555555555"],
            "key N",
        ),
        (["object 5f3c9ab2d1 at 10:20:31", "object e4d5a60b17 at 10:20:32"], "object N at N"),
        (["N of 5", "N of 6"], "N of N"),
        (
            ["got 503 Service Unavailable from 1", "got 503 Service Unavailable from 2"],
            "got 503 Service Unavailable from N",
        ),
    ],
)
def test_only_values_that_differ_between_the_lines_are_taken_out_of_the_title(lines: list[str], title: str) -> None:
    assert titles(*lines) == [title]


def test_an_error_of_several_jobs_has_the_values_that_all_share() -> None:
    def groups(*lines: str) -> list[ErrorGroup]:
        return group_errors((number, number, line) for number, line in enumerate(lines))

    newest, older = groups("row 1 of /data2/x"), groups("row 2 of /data2/x", "row 3 of /data2/x")
    (found,) = recurring_errors([(9, newest), (7, older)])
    assert (found.group.title, found.group.count, found.jobs) == ("row N of /data2/x", 3, [9, 7])
    assert newest[0].title == "row 1 of /data2/x"
    # As an older version has stored it.
    stored = ErrorGroup("row N of /dataN/x", 4, 1, 2, 0, "row 5 of /data2/x")
    (found,) = recurring_errors([(9, newest), (7, [stored])])
    assert (found.group.title, found.group.count, found.jobs) == ("row N of /dataN/x", 5, [9, 7])
