"""Errors of the extraction service, as its client reads them."""

import msgspec
import pytest

from scrapy_ext.api.extraction import PROBLEM_TYPES, Problem


def test_the_table_has_every_row_of_the_document():
    rows = [row for row in PROBLEM_TYPES.values() if not row.extension]
    statuses = sorted(row.status for row in rows if row.type != "/request/too-large")
    assert statuses == [400, 400, 401, 401, 403, 421, 422, 429, 429, 429, 451, 500, 500, 503, 520, 521]


def test_retry_after_comes_with_limits_and_bans_only():
    with_header = {row.status for row in PROBLEM_TYPES.values() if row.retry_after}
    assert with_header == {429, 503, 520}


def test_blocked_domain_is_written_only_when_there_is_one():
    plain = msgspec.json.decode(msgspec.json.encode(Problem.of("/server/internal", "x")))
    assert set(plain) == {"type", "title", "status", "detail"}
    blocked = Problem.of("/download/domain-forbidden", "x", blocked_domain="example.com")
    assert msgspec.json.decode(msgspec.json.encode(blocked))["blockedDomain"] == "example.com"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"type": 5}', b"\xff", b'"\x9a"', b"[" * 9000])
def test_an_answer_that_is_no_problem_is_read_from_its_status(body):
    problem = Problem.from_answer(502, body)
    assert (problem.status, problem.type, problem.title) == (502, "", "HTTP 502")


def test_a_problem_is_read_whole():
    sent = Problem.of("/download/domain-forbidden", "no", blocked_domain="example.com")
    assert Problem.from_answer(451, msgspec.json.encode(sent)) == sent
