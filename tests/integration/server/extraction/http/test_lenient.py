"""Answers that are put right before they are parsed, however their bytes are cut into pieces."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ext.server.extraction.http.lenient_answers import LenientResponse
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

HEAD = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\n"


def parsed(data: bytes, size: int, *, has_body: bool = True) -> tuple[bytes, bool]:
    """Return the parsed part of an answer that arrives in pieces of a size, and whether more than the answer came."""
    answer = LenientResponse(has_body=has_body)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join([*(answer.feed(piece) for piece in pieces), answer.rest()]), answer.is_overrun


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (HEAD + b"ok", HEAD + b"ok"),
        (HEAD.replace(b"X-A: 1", b"X-A: 1\r\nno colon\r\n folded") + b"ok", HEAD + b"ok"),
        (HEAD.replace(b"X-A: 1", b"X-A: 1\r\nContent-length:2") + b"ok", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"ok", None),
        # What the parser is to refuse, or has to find out by itself.
        (HEAD.replace(b"X-A: 1", b"Content-Length: 3") + b"oko", None),
        (HEAD.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"0\r\n\r\n", None),
        (HEAD.replace(b"Content-Length: 2", b"Content-Length: x") + b"okok", None),
        (HEAD.replace(b"Content-Length: 2\r\n", b"") + b"to the end\r\n\r\n", None),
        (HEAD.replace(b"Content-Length: 2", b"Content-Length: " + b"9" * 5000) + b"ok", None),
        (b"HTTP/1.1 200 OK\r\nX-A: never ends", None),
        (b"SSH-2.0-OpenSSH\r\n\r\nno colon\r\n\r\n", None),
        (b"\r\n" + HEAD + b"ok", None),
        (b"", None),
    ],
)
def test_only_what_the_parser_need_not_mind_is_changed(sent: bytes, expected: bytes | None, size: int) -> None:
    if b"Content-length:2" in sent:
        expected = sent.replace(b"Content-Length: 2\r\n", b"")
    assert parsed(sent, size) == (sent if expected is None else expected, False)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_what_follows_a_body_is_thrown_away(size: int) -> None:
    assert parsed(HEAD + b"okmore", size) == (HEAD + b"ok", True)
    assert parsed(HEAD + b"ok", size, has_body=False) == (HEAD, True)
    nothing = HEAD.replace(b"200 OK", b"304 Not Modified")
    assert parsed(nothing + b"ok", size) == (nothing, True)


def test_what_is_no_http_is_passed_on_at_once() -> None:
    assert LenientResponse().feed(b"SSH-2.0") == b"SSH-2.0"
    assert LenientResponse().feed(b"HTT") == b""


def test_a_head_without_end_is_not_held() -> None:
    answer = LenientResponse()
    line = b"X: " + b"x" * 60_000 + b"\r\n"
    fed = answer.feed(b"HTTP/1.1 200 OK\r\n") + b"".join(answer.feed(line) for _ in range(6))
    assert len(fed) > 300_000


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_interim_answers_without_end_are_dropped(size: int) -> None:
    assert parsed(INTERIM * 100 + HEAD + b"ok", size) == (INTERIM * 100 + HEAD + b"ok", False)
    assert parsed(INTERIM * 300 + HEAD + b"ok", size) == (INTERIM * 101, True)


def test_the_time_of_a_head_grows_with_its_length() -> None:
    # With the square of it, either takes minutes.
    LenientResponse().feed(INTERIM * 400_000)
    lengths = b"".join(b"Content-Length: %d\r\n" % number for number in range(200_000))
    LenientResponse().feed(b"HTTP/1.1 200 OK\r\n" + lengths + b"\r\n")


def test_a_site_that_sends_interim_answers_for_ever_is_given_up() -> None:
    async def interim(call: object, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(INTERIM * 1000)
            await writer.drain()

    site = Target().start()
    try:
        with Service(allow_hosts=(site.host,)) as service:
            service.problem(
                520, "/download/temporary-error", url=site.handle("/interim", interim), httpResponseBody=True
            )
    finally:
        site.stop()


@pytest.mark.parametrize(("rest", "connections"), [(b"", 1), (b"more", 2)])
def test_a_connection_is_not_used_again_after_more_than_its_answer(rest: bytes, connections: int) -> None:
    site = Target().start()
    try:
        with Service(allow_hosts=(site.host,)) as service:
            for url in (site.raw("/longer", HEAD + b"ok" + rest), site.raw("/after", HEAD + b"ok")):
                assert service.result(url=url, httpResponseBody=True)["statusCode"] == 200
        assert site.connections == connections
    finally:
        site.stop()
