"""The real server against bodies of every kind: made from the contract's table of fields, bent, and broken.

Whatever comes, the answer is a result or a problem, soon, and never a failure of the server (500). Nothing here needs a
browser. The bodies are the same in every run; ``--full`` makes more of them.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from scrapy_ext.api.extraction import FIELDS, MADE_OF_PAGE
from scrapy_ext.api.extraction.fields import (
    CAPTURE_MATCHES,
    CAPTURE_TYPES,
    DEVICES,
    MARKDOWN_CONTENT,
    METHODS,
    JsonType,
    RequestKind,
)
from tests.support.handwritten_site import Target
from tests.support.servers import RunningServer

EXAMPLES, EXAMPLES_IN_FULL = 60, 3000
#: A server that has not answered by then hangs.
TIMEOUT = 180


class Sender:
    """One connection that is used again, as clients do."""

    def __init__(self, server: RunningServer, page: str) -> None:
        self.page = page
        parts = urlsplit(server.url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._authorization = "Basic " + base64.b64encode(f"{server.extract_key}:".encode()).decode()
        self._connection = http.client.HTTPConnection(*self._address, timeout=TIMEOUT)

    def __call__(self, body: Any, **headers: str) -> tuple[int, Any]:
        """Send a body; the status and the decoded answer, which is a result or a whole problem."""
        sent = {"Authorization": self._authorization, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("POST", "/v1/extract", body, sent, encode_chunked=not isinstance(body, bytes))
        answer = self._connection.getresponse()
        content = json.loads(answer.read())
        if answer.status == 200:
            assert answer.headers["Content-Type"] == "application/json"
            assert "url" in content
        else:
            assert answer.headers["Content-Type"] == "application/problem+json", content
            assert set(content) - {"blockedDomain"} == {"type", "title", "status", "detail"}
            assert content["status"] == answer.status
            assert answer.status != 500, content
            assert len(content["detail"]) < 20_000
        return answer.status, content

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def send(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    site = Target().start()
    page = site.page("/", "<title>title</title><h1>title</h1><p>text</p>")
    folder = tmp_path_factory.mktemp("fuzz") / "data"
    with RunningServer(folder, allow_hosts=[site.host]) as server:
        with closing(Sender(server, page)) as sender:
            yield sender
        assert "Traceback" not in server.log()
    site.stop()


def examples(config: pytest.Config) -> settings:
    return settings(
        max_examples=EXAMPLES_IN_FULL if config.getoption("--full") else EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


# ── bodies from the table of fields ──

_TEXT = st.text(max_size=30)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=15,
)
_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,20}", fullmatch=True)
_HEADER = st.fixed_dictionaries({"name": _NAMES, "value": _TEXT})
_COOKIE = st.fixed_dictionaries({"name": _NAMES, "value": _TEXT}, optional={"domain": _TEXT, "path": _TEXT})
_FILTER = st.fixed_dictionaries(
    {"filterType": st.sampled_from(CAPTURE_TYPES), "value": _TEXT},
    optional={"matchType": st.sampled_from(CAPTURE_MATCHES), "httpResponseBody": st.booleans()},
)
_VALID: dict[str, st.SearchStrategy[Any]] = {
    "requestHeaders": st.dictionaries(_NAMES, _TEXT, max_size=3),
    "tags": st.none() | st.dictionaries(_TEXT, st.none() | _TEXT, max_size=5),
    "httpRequestMethod": st.sampled_from(METHODS),
    "httpRequestBody": st.binary(max_size=50).map(lambda data: base64.b64encode(data).decode()),
    "httpRequestText": st.text(min_size=1, max_size=50),
    "customHttpRequestHeaders": st.lists(_HEADER, max_size=4),
    "httpResponseBody": st.booleans(),
    "httpResponseHeaders": st.booleans(),
    "echoData": _JSON,
    "jobId": _TEXT,
    "extractFrom": st.just("httpResponseBody"),
    "requestCookies": st.lists(_COOKIE, max_size=3),
    "pageContent": st.booleans(),
    "article": st.booleans(),
    "markdown": st.booleans(),
    "markdownOptions": st.fixed_dictionaries(
        {}, optional={"content": st.sampled_from(MARKDOWN_CONTENT), "links": st.booleans(), "images": st.booleans()}
    ),
    "screenshotOptions": st.just({}),
    "session": st.uuids().map(lambda made: {"id": str(made)}),
    "sessionContext": st.lists(st.fixed_dictionaries({"name": _TEXT, "value": _TEXT}), max_size=3),
    "device": st.sampled_from(DEVICES),
    "followRedirect": st.booleans(),
    "responseCookies": st.booleans(),
    "fieldSources": st.booleans(),
    "minProbability": st.floats(0, 1),
    "omitHttpRequestHeaders": st.lists(_NAMES, max_size=3),
    "javascript": st.booleans(),
    "networkCapture": st.lists(_FILTER, max_size=3),
    "experimental": st.fixed_dictionaries(
        {}, optional={"requestCookies": st.lists(_COOKIE, max_size=2), "responseCookies": st.booleans()}
    ),
}
_OF_TYPE: dict[JsonType, st.SearchStrategy[Any]] = {
    JsonType.STRING: _TEXT,
    JsonType.BOOLEAN: st.just(False),
    JsonType.NUMBER: st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    JsonType.OBJECT: st.dictionaries(_TEXT, _JSON, max_size=4),
    JsonType.ARRAY: st.lists(_JSON, max_size=4),
    JsonType.ANY: _JSON,
}
#: What would need a browser is never switched on.
_NO_BROWSER = {name: False for name, field in FIELDS.items() if field.kind is RequestKind.BROWSER} | dict.fromkeys(
    MADE_OF_PAGE, False
)


def _bent(name: str) -> st.SearchStrategy[Any]:
    """A value of the field's type, or of any other."""
    field = FIELDS[name]
    value = st.one_of(_OF_TYPE[field.type], _JSON, st.sampled_from([*field.choices, "", None]))
    return value.map(lambda made: _NO_BROWSER[name] if made is True and name in _NO_BROWSER else made)


@pytest.mark.long
def test_bodies_that_hold_to_the_table_are_answered(send: Sender, pytestconfig: pytest.Config) -> None:
    seen: set[int] = set()

    @examples(pytestconfig)
    @given(st.fixed_dictionaries({}, optional=_VALID))
    def each(fields: dict[str, Any]) -> None:
        asked = {"extractFrom": "httpResponseBody", "httpResponseBody": True, **fields, "url": send.page}
        status, answer = send(json.dumps(asked).encode())
        assert status in (200, 400, 422), (asked, answer)
        seen.add(status)

    each()
    assert {200, 422} <= seen


@pytest.mark.long
def test_bodies_with_any_value_in_any_field_are_answered(send: Sender, pytestconfig: pytest.Config) -> None:
    fields = st.fixed_dictionaries({}, optional={name: _bent(name) for name in FIELDS if name != "url"})
    seen: set[int] = set()

    @examples(pytestconfig)
    @given(fields, st.dictionaries(_TEXT, _JSON, max_size=2), st.one_of(_TEXT, _JSON, st.just("")))
    def each(fields: dict[str, Any], unknown: dict[str, Any], url: Any) -> None:
        body = {"url": url or send.page, "httpResponseHeaders": True, **fields, **unknown}
        seen.add(send(json.dumps(body).encode())[0])

    each()
    assert seen <= {200, 400, 421, 422, 520, 521}


def test_addresses_of_every_form_are_answered(send: Sender, pytestconfig: pytest.Config) -> None:
    piece = st.sampled_from(
        [
            *("http://", "https://", "//", "/", "\\", "@", ":", "?", "#", "%", ".", "..", "[", "]", "::1", "127.0.0.1"),
            *(
                "localhost",
                "a.invalid",
                "xn--",
                "ü",
                "１",
                "。",
                "\x00",
                " ",
                "\n",
                "80",
                "99999",
                "%00",
                "%2e",
                "0x7f",
            ),
            *("1", "\ud7ff", "💥"),
        ]
    )

    @examples(pytestconfig)
    @given(st.lists(piece, max_size=8).map("".join))
    @example("。１%00")
    @example("xn--xn--xn--xn--xn--")
    def each(url: str) -> None:
        # localhost and addresses are no public hosts, and nothing below .invalid exists.
        assert send(json.dumps({"url": f"http://{url}", "httpResponseBody": True}).encode())[0] in (400, 421, 520)

    each()


def test_bytes_that_are_changed_are_answered(send: Sender, pytestconfig: pytest.Config) -> None:
    whole = json.dumps({"url": send.page, "httpResponseHeaders": True, "echoData": {"ä": [1, 2.5, None]}}).encode()

    @examples(pytestconfig)
    @given(st.integers(0, len(whole)), st.integers(0, 5), st.binary(max_size=4), st.booleans())
    def each(at: int, without: int, instead: bytes, packed: bool) -> None:
        body = whole[:at] + instead + whole[at + without :]
        status, _ = send(gzip.compress(body) if packed else body, Content_Encoding="gzip" if packed else "identity")
        assert status in (200, 400, 421, 422)

    each()


# ── bodies that are odd in ways of their own ──


def framed(send: Sender, data: str) -> bytes:
    return f'{{"url": "{send.page}", "httpResponseHeaders": true, "echoData": {data}}}'.encode()


@pytest.mark.parametrize("depth", [100, 500, 900, 990, 1000, 10_000, 1_000_000])
def test_nested_as_deep_as_one_likes(send: Sender, depth: int) -> None:
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        status, answer = send(framed(send, opened * depth + "1" + closed * depth))
        assert status == (200 if depth <= 500 else 413 if depth == 1_000_000 and len(opened) > 1 else status)
        assert status in (200, 400, 413)
        if depth >= 10_000 and status == 400:
            assert "levels deep at byte" in answer["detail"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ("123456789" * 100, 200),
        ("-" + "9" * 100_000, 400),
        ("1e308", 200),
        ("1e309", 400),
        ("0." + "1" * 100_000, 200),
        ("NaN", 400),
        ("-Infinity", 400),
        ('"\\u0000"', 200),
        ('"\x00"', 400),
        ('"\\ud800"', 400),
        ('"\\udfff\\ud800"', 400),
        ('"\ufeff"', 200),
        ('{"a": 1, "a": 2}', 200),
        ('"' + "\\\\" * 100_000 + '"', 200),
        ("[" + ",".join(["0"] * 500_000) + "]", 200),
    ],
    ids=lambda value: str(value)[:20],
)
def test_values_at_the_edges_of_json(send: Sender, data: str, status: int) -> None:
    assert send(framed(send, data))[0] == status


def test_a_field_that_comes_twice_is_refused_by_its_name(send: Sender) -> None:
    body = f'{{"url": 1, "url": "{send.page}", "httpResponseHeaders": true}}'.encode()
    status, answer = send(body)
    assert (status, answer["type"]) == (400, "/request/invalid")
    assert "url" in answer["detail"]
    nested = framed(send, '"a"').decode().rstrip()[:-1] + ', "jobId": "a", "jobId": "b"}'
    assert "jobId" in send(nested.encode())[1]["detail"]


@pytest.mark.parametrize("coding", ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
def test_text_that_is_not_utf_8_is_reported(send: Sender, coding: str) -> None:
    status, answer = send(framed(send, '"ä"').decode().encode(coding))
    assert (status, answer["type"]) == (400, "/request/invalid-json")
    assert "byte" in answer["detail"]


@pytest.mark.long
def test_very_many_of_anything_are_answered_soon(send: Sender) -> None:
    for body in (
        {f"unknown{number}": number for number in range(150_000)},
        {"tags": {str(number): number for number in range(200_000)}},
        {"requestCookies": [{"name": "a", "value": "1"}] * 100_000},
        {"requestHeaders": {f"A{number}": 1 for number in range(200_000)}},
        {"customHttpRequestHeaders": [{}] * 1_000_000},
    ):
        status, _ = send(json.dumps({"url": send.page, "httpResponseHeaders": True, **body}).encode())
        assert status in (200, 400, 413, 422), body


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data; boundary=x", "application/json; a=b", "\xff"])
def test_what_the_body_is_called_makes_no_difference(send: Sender, kind: str) -> None:
    assert send(framed(send, "1"), Content_Type=kind)[0] == 200


def test_bodies_in_chunks_of_any_size(send: Sender) -> None:
    body = framed(send, '"' + "x" * 5000 + '"')
    for size in (1, 7, 4096):
        pieces = (body[at : at + size] for at in range(0, len(body), size))
        assert send(pieces, Transfer_Encoding="chunked")[0] == 200
