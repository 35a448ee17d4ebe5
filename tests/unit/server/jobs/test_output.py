"""Output of a job's process that becomes lines of its log."""

from __future__ import annotations

import logging
import traceback

import pytest

from scrapy_ext.api.platform.error_groups import group_errors
from scrapy_ext.server.jobs.attempts.output import LONGEST, OutputLine, with_whole_tracebacks

CAUSES = """
def f():
    {}["a"]
try:
    f()
except KeyError as error:
    raise ValueError("b") from error
"""
CODE = {
    "one exception": ("import no.such", "ModuleNotFoundError: No module named 'no'"),
    "with its cause": (CAUSES, "ValueError: b"),
    "while another is handled": (CAUSES.replace(" from error", ""), "ValueError: b"),
}


def whole(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n") if line.rstrip()]
    return [line.text for line in with_whole_tracebacks(OutputLine(logging.ERROR, line) for line in lines)]


@pytest.mark.parametrize("case", CODE)
def test_a_traceback_is_one_line_of_the_log_whose_title_is_the_exception(case):
    code, exception = CODE[case]
    with pytest.raises(Exception, match=exception.partition(": ")[2]) as raised:
        exec(code, {})
    printed = "".join(traceback.format_exception(raised.value))
    before, line = whole(f"before\n{printed}")
    assert before == "before"
    assert [group.title for group in group_errors([(0, 0, line)])] == [exception]


RECORD = "2026-12-01 08:16:17,008 ERROR asyncio: Task exception was never retrieved"
FUTURE = "future: <Task finished name='Task-1' coro=<crawl()> exception=ValueError('b')>"
ERROR = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: b'


@pytest.mark.parametrize("message", [[RECORD], [RECORD, FUTURE], [RECORD, FUTURE, "more", "and more"]])
def test_a_log_record_is_one_line_with_its_traceback_whose_title_is_the_exception(message):
    record = "\n".join([*message, ERROR])
    lines = whole(f"before\n{record}\nthe end\n{RECORD}\n{record}")
    assert lines == ["before", record, "the end", RECORD, record]
    assert [group.title for group in group_errors([(0, 0, record)])] == ["ValueError: b"]


@pytest.mark.parametrize(
    "lines",
    [
        [RECORD],
        [RECORD, FUTURE],
        [RECORD, RECORD, FUTURE],
        [RECORD.replace("ERROR", "WARNING"), ERROR],
        ["08:16:17 ERROR of a program", ERROR],
        [RECORD, *map(str, range(4)), ERROR],
        [RECORD, "x" * 5000, ERROR],
    ],
)
def test_lines_before_a_traceback_that_are_not_its_record_stay_apart(lines):
    assert whole("\n".join(lines)) == lines


def test_what_follows_a_traceback_is_not_of_it():
    head = "Traceback (most recent call last):"
    error = f'{head}\n  File "a.py", line 1, in f\n    g()\nKeyError: 1'
    assert whole(f"{error}\nthe end\n{error}\n{error}") == [error, "the end", error, error]


def test_a_traceback_without_an_end_keeps_its_bound():
    lines = whole("Traceback (most recent call last):\n" + "\n".join(" " * 9 + "x" * 990 for _ in range(200)))
    assert LONGEST / 2 < len(lines[0]) <= LONGEST
    assert sum(line.count("\n") + 1 for line in lines) == 201
