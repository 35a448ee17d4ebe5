"""The document of the extraction API, line by line, over HTTP: fields, rules, limits, authentication and errors.

Each test is a section of the document. What the document leaves open is held by the other tests of this folder.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.extraction import EXTRACT_TYPES, FIELDS, OUTPUTS, PROBLEM_TYPES
from scrapy_ext.api.extraction.fields import METHODS, OPTIONS
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import KEY, Answer, Service
from tests.support.handwritten_site import Call, Target

BODY = {"httpResponseBody": True}
URL = "https://example.invalid/"
MIB = 1024 * 1024
#: The document's table of errors, but for the title and type of 413, which it gives the limit of only.
ERRORS = {
    ("/request/invalid", 400, "Bad Request"),
    ("/request/invalid-json", 400, "Invalid JSON"),
    ("/auth/not-valid", 401, "Authentication Info Invalid"),
    ("/auth/key-not-found", 401, "Authentication Key Not Found"),
    ("/auth/account-suspended", 403, "Account Suspended"),
    ("/website/domain-unreachable", 421, "Domain Unreachable"),
    ("/request/unprocessable", 422, "Unprocessable Request"),
    ("/limits/over-user-limit", 429, "Over User Requests Limit"),
    ("/limits/over-domain-limit", 429, "Over Domain Requests Limit"),
    ("/limits/over-org-domain-limit", 429, "Over Organisation Requests limit for the requested domain"),
    ("/download/domain-forbidden", 451, "Domain Forbidden"),
    ("/server/internal", 500, "Internal Server Error"),
    ("/server/timed-out", 500, "Request Timed Out"),
    ("/limits/over-global-limit", 503, "Global Requests Limit Reached"),
    ("/download/temporary-error", 520, "Website Ban"),
    ("/download/internal-error", 521, "Internal Downloading Error"),
}
TITLES = {row[0]: row[1:] for row in ERRORS}
WITH_RETRY_AFTER = {429, 503, 520}


def problem(answer: Answer, type: str) -> str:
    """The detail of an answer that is this row of the table, with all that belongs to it."""
    status, title = TITLES[type]
    assert (answer.status, answer.json["type"]) == (status, type), answer.body[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json["title"], answer.json["status"]) == (title, status)
    assert set(answer.json) == {"type", "title", "status", "detail"} | ({"blockedDomain"} if status == 451 else set())
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert ("retry-after" in answer.headers) == (status in WITH_RETRY_AFTER)
    if status in WITH_RETRY_AFTER:
        assert int(answer.headers["retry-after"]) >= 0
    detail = answer.json["detail"]
    assert isinstance(detail, str)
    assert detail.strip()
    return detail


def invalid(service: Service, **fields: Any) -> str:
    return problem(service.extract(**fields), "/request/invalid")


def unprocessable(service: Service, **fields: Any) -> str:
    return problem(service.extract(**fields), "/request/unprocessable")


@pytest.fixture(scope="module")
def page(target: Target) -> str:
    return target.page("/document", "<h1>title</h1>", X_Two="1")


# ── Resources and their fields ──


def test_the_table_of_errors_is_the_documents() -> None:
    rows = {(row.type, row.status, row.title) for row in PROBLEM_TYPES.values() if not row.extension}
    assert rows - ERRORS == {("/request/too-large", 413, "Request Too Large")}
    assert rows >= ERRORS
    assert {row.status for row in PROBLEM_TYPES.values() if row.retry_after} == WITH_RETRY_AFTER


def test_url_is_required_absolute_short_and_names_a_domain(service: Service) -> None:
    assert "url: is required" in invalid(service, **BODY)
    for url in ("/a", "example.com", "ftp://example.com/", "http://8.8.8.8/", "http://[2606:4700::1111]/", "http://"):
        assert invalid(service, url=url, **BODY).startswith("url: ")
    for url in (None, 1, True, ["http://a.example/"], {}):
        assert invalid(service, url=url, **BODY).startswith("url: ")


def test_url_is_at_most_8192_long(service: Service, target: Target) -> None:
    address = target.page("/long", "ok")
    longest = address + "?" + "x" * (8192 - len(address) - 1)
    assert service.result(url=longest, **BODY)["statusCode"] == 200
    assert "8192" in invalid(service, url=longest + "x", **BODY)


#: What each type of field takes, and what it does not.
_GOOD: dict[str, list[Any]] = {
    "requestHeaders": [{}, {"Referer": "http://a.example/"}],
    "tags": [None, {}, {"a": "b", "c": None, "": ""}],
    "ipType": [],
    "jobId": ["", "1/2/3"],
    "echoData": [None, 0, False, "", [], {"a": [1]}],
    "httpResponseHeaders": [True, False],
    "browserHtml": [False],
    "screenshot": [False],
    "screenshotOptions": [{}],
    "actions": [[]],
    "includeIframes": [False],
    "requestCookies": [[], [{"name": "a", "value": "1"}]],
    **{name: [{}, {"extractFrom": "httpResponseBody"}] for name in OPTIONS.values()},
    "customAttributes": [{}],
    "minProbability": [0],
    **{name: [False] for name in EXTRACT_TYPES},
}
_BAD: dict[str, list[Any]] = {
    **{name: ["true", 1, None, []] for name, field in FIELDS.items() if field.type == "boolean"},
    **{name: ["{}", 1, True, []] for name, field in FIELDS.items() if field.type == "object"},
    **{name: ["[]", 1, True, {}] for name, field in FIELDS.items() if field.type == "array"},
    **{name: [1, True, [], {}, None] for name, field in FIELDS.items() if field.type == "string"},
    **{name: ["1", True, [], {}, None, -1, 1.1] for name, field in FIELDS.items() if field.type == "number"},
}
_BAD["tags"] += [{"a": 1}, {"a": ["b"]}, {"a": True}]
_BAD["ipType"] += ["mobile", "Datacenter", ""]
_BAD["httpRequestMethod"] += ["get", "CONNECT", "FOO", ""]
_BAD["httpRequestBody"] += ["not base64!", "abc"]
_BAD["geolocation"] += ["us", "USA", ""]
_BAD["extractFrom"] += ["http", ""]
_BAD["requestCookies"] += [["a=1"]]
_BAD["actions"] += [["click"]]
for _name in OPTIONS.values():
    _BAD[_name] += [{"extractFrom": "x"}, {"extractFrom": None}, {"extractfrom": "httpResponseBody"}, {"model": "1"}]
_BAD["screenshotOptions"] += [{"fullPage": 1}, {"format": 1}]


@pytest.mark.parametrize("name", _GOOD)
def test_a_field_takes_what_the_document_says(service: Service, page: str, name: str) -> None:
    for value in _GOOD[name]:
        outputs = {"httpResponseHeaders": True} if name == "requestHeaders" else BODY
        fields = {"url": page, **outputs, name: value}
        result = service.result(**fields)
        if name in ("echoData", "jobId"):
            assert result[name] == value
        else:
            assert set(result) - {"url", "statusCode", "httpResponseBody", "httpResponseHeaders"} == set()


@pytest.mark.parametrize("name", _BAD)
def test_a_field_refuses_another_type_or_value_by_its_name(service: Service, name: str) -> None:
    for value in _BAD[name]:
        assert invalid(service, **{"url": URL, **BODY, name: value}).startswith(name)


def test_tags_may_be_null_and_no_other_field_but_echo_data(service: Service) -> None:
    for name in set(FIELDS) - {"tags", "echoData"}:
        assert f"{name}: must not be null" in invalid(service, **{"url": URL, **BODY, name: None})


def test_header_objects_have_a_name_and_a_value(service: Service) -> None:
    for header in ({}, {"name": "A"}, {"value": "1"}, {"name": "", "value": "1"}, {"name": "A", "value": 1}, "A: 1", 1):
        detail = invalid(service, url=URL, customHttpRequestHeaders=[header], **BODY)
        assert detail.startswith("customHttpRequestHeaders[0]")
    more = {"name": "A", "value": "1", "more": 1}
    assert "customHttpRequestHeaders[0]" in invalid(service, url=URL, customHttpRequestHeaders=[more], **BODY)


# ── Rules that hold for a request ──


def test_rule_1_at_least_one_output(service: Service) -> None:
    detail = unprocessable(service, url=URL)
    assert all(name in detail for name in OUTPUTS)
    unprocessable(service, url=URL, **dict.fromkeys(OUTPUTS, False))


def test_rule_6_at_most_one_kind_of_automatic_extraction(service: Service) -> None:
    kinds = [kind for kind in EXTRACT_TYPES if kind != "serp"]
    for first, second in itertools.pairwise(kinds):
        assert second in unprocessable(service, url=URL, **{first: True, second: True})


def test_rule_5_and_8_serp_goes_with_its_options_and_the_url_only(service: Service) -> None:
    others: dict[str, Any] = {
        "tags": {"a": "b"},
        "echoData": 1,
        "jobId": "1",
        "ipType": "datacenter",
        "geolocation": "US",
        "httpResponseHeaders": True,
        "httpResponseBody": True,
        "browserHtml": True,
        "screenshot": True,
        "requestHeaders": {"A": "1"},
        "requestCookies": [{"name": "a", "value": "1"}],
        "product": True,
        "extractFrom": "httpResponseBody",
        "actions": [{"action": "reload"}],
        "includeIframes": True,
        "httpRequestMethod": "POST",
        "customHttpRequestHeaders": [{"name": "A", "value": "1"}],
    }
    for name, value in others.items():
        assert name in unprocessable(service, **{"url": URL, "serp": True, name: value})


def test_rule_7_a_response_body_does_not_go_with_what_needs_a_browser(service: Service) -> None:
    fields: dict[str, Any] = {"browserHtml": True, "screenshot": True, "includeIframes": True}
    fields |= {"actions": [{"action": "reload"}], "screenshotOptions": {"fullPage": True}}
    for name, value in fields.items():
        assert name in unprocessable(service, **{"url": URL, **BODY, name: value})
        by_http = {"url": URL, "product": True, "extractFrom": "httpResponseBody", name: value}
        assert name in unprocessable(service, **by_http)


def test_rules_2_to_4_extraction_by_browser_unless_extract_from_says_http(service: Service, page: str) -> None:
    assert "extractFrom" in unprocessable(service, url=URL, product=True, **BODY)
    assert unprocessable(service, url=URL, product=True, extractFrom="browserHtml", **BODY)
    result = service.result(
        url=page, pageContent=True, extractFrom="httpResponseBody", httpResponseHeaders=True, **BODY
    )
    assert {"pageContent", "httpResponseBody", "httpResponseHeaders"} <= set(result)


def test_rule_8_headers_alone_or_with_a_body(service: Service, page: str) -> None:
    for fields in ({}, BODY):
        headers = service.result(url=page, httpResponseHeaders=True, **fields)["httpResponseHeaders"]
        assert {"name": "X-Two", "value": "1"} in headers


@pytest.mark.parametrize("output", ["httpResponseHeaders", "browserHtml", "screenshot", "product"])
def test_rule_9_what_belongs_to_a_response_body(service: Service, output: str) -> None:
    header = [{"name": "A", "value": "1"}]
    for name, value in (
        ("httpRequestMethod", "POST"), ("httpRequestBody", "YQ=="), ("httpRequestText", "a"),
        ("customHttpRequestHeaders", header),
    ):  # fmt: skip
        assert name in unprocessable(service, **{"url": URL, output: True, name: value})


def test_rule_10_one_body(service: Service) -> None:
    assert "httpRequestText" in unprocessable(service, url=URL, httpRequestBody="YQ==", httpRequestText="a", **BODY)


def test_rule_11_no_cookie_header_and_the_last_of_a_name(service: Service, target: Target, page: str) -> None:
    for name in ("Cookie", "cookie", "COOKIE"):
        header = [{"name": name, "value": "a=1"}]
        assert "Cookie" in invalid(service, url=URL, customHttpRequestHeaders=header, **BODY)
    headers = [{"name": name, "value": value} for name, value in (("X-A", "1"), ("x-a", "2"), ("X-a", "3, 4"))]
    service.result(url=page, customHttpRequestHeaders=headers, **BODY)
    assert target.calls_of("/document")[-1].values("X-A") == ["3, 4"]


def test_rule_12_and_the_limits_of_sizes(service: Service, target: Target, page: str) -> None:
    frame = json.dumps({"url": page, "echoData": "", **BODY}).encode()
    exactly = frame.replace(b'""', b'"' + b"x" * (5 * MIB - len(frame)) + b'"')
    assert len(exactly) == 5 * MIB
    assert service.send(body=exactly).status == 200
    answer = service.send(body=exactly + b" ")
    assert (answer.status, answer.headers["content-type"]) == (413, "application/problem+json")
    assert (answer.json["status"], answer.json["title"]) == (413, "Request Too Large")

    post = {"url": page, "httpRequestMethod": "POST", **BODY}
    for name, fits in (("httpRequestText", "ü" * 400_000), ("httpRequestBody", "YWJj" * 100_000)):
        service.result(**post, **{name: fits})
        assert len(target.calls_of("/document")[-1].body) == (800_000 if name == "httpRequestText" else 300_000)
        assert "400000" in invalid(service, **post, **{name: fits + fits[:4]})
    assert "httpRequestText" in invalid(service, httpRequestText="", **post)

    headers = [{"name": f"X-{number}", "value": "1"} for number in range(201)]
    service.result(url=page, customHttpRequestHeaders=headers[:200], **BODY)
    assert "200" in invalid(service, url=page, customHttpRequestHeaders=headers, **BODY)


def test_rule_13_unknown_fields_are_refused_by_name_with_the_nearest_one(service: Service) -> None:
    assert "httpResponsebody: is not a field" in invalid(service, url=URL, httpResponsebody=True, **BODY)
    for wrong, right in (("Url", "url"), ("browserHTML", "browserHtml"), ("tag", "tags"), ("products", "product")):
        assert f"Did you mean {right}?" in invalid(service, **{"url": URL, **BODY, wrong: True})
    assert "zzz: is not a field" in invalid(service, url=URL, zzz=1, **BODY)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", "line 1, column 1"),
        (b'{"url": "x",\n "a": tru}', "line 2, column 7"),
        (b"{'url': 1}", "line 1, column 2"),
        (b'{"url": "\xff"}', "byte 9"),
        (b'{"a": NaN}', "line 1, column 7"),
        (b'{"a": "\\ud800"}', "line 1, column 16"),
        (b"[" * 10_000, "byte 500"),
    ],
)
def test_rule_13_invalid_json_names_its_place(service: Service, body: bytes, place: str) -> None:
    assert place in problem(service.send(body=body), "/request/invalid-json")


@pytest.mark.parametrize("body", [b"[]", b'"url"', b"null", b"1", b"true"])
def test_json_that_is_no_object_is_a_malformed_request(service: Service, body: bytes) -> None:
    assert "must be a JSON object" in problem(service.send(body=body), "/request/invalid")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_sent(service: Service, target: Target, page: str, method: str) -> None:
    result = service.result(url=page, httpRequestMethod=method, **BODY)
    assert target.calls_of("/document")[-1].method == method
    assert base64.b64decode(result["httpResponseBody"]) == (b"" if method == "HEAD" else b"<h1>title</h1>")


# ── Authentication ──


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def test_the_user_name_is_the_key_and_the_password_is_empty(service: Service, page: str) -> None:
    body = json.dumps({"url": page, **BODY}).encode()
    for scheme in ("Basic", "basic", "BASIC"):
        sent = {"Authorization": basic(f"{KEY}:")["Authorization"].replace("Basic", scheme)}
        assert service.send(body=body, key=None, **sent).status == 200
    for sent in ({}, {"Authorization": f"Bearer {KEY}"}, basic(KEY), basic(f":{KEY}"), {"Authorization": "Basic %%%"}):
        answer = service.send(body=body, key=None, **sent)
        problem(answer, "/auth/not-valid")
        assert answer.headers["www-authenticate"].startswith("Basic ")
    answer = service.send(body=body, key="nobody's")
    assert "nobody" not in problem(answer, "/auth/key-not-found")
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_a_suspended_key_is_403(service: Service, page: str) -> None:
    assert "suspended" in problem(service.extract(key="suspended", url=page, **BODY), "/auth/account-suspended")


# ── Errors ──


@pytest.fixture(scope="module")
def strict(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose rates let one request through, with a block list."""
    target.page("/rate", "ok")
    listed = tmp_path_factory.mktemp("document") / "domains.txt"
    listed.write_text("blocked.example\n")
    rules = tuple(
        f"{name}.example:80=127.0.0.1:{target.port}" for name in ("one", "two", "three", "blocked", "sub.blocked")
    )
    rates = dict.fromkeys(("extract_rate", "domain_rate", "key_domain_rate"), 0.0001)
    with Service(connect_to=rules, block_list=listed, **rates) as running:
        yield running


def test_429_in_its_three_scopes_and_451(strict: Service) -> None:
    def ask(key: str, host: str) -> Answer:
        return strict.extract(key=key, url=f"http://{host}.example/rate", **BODY)

    assert ask(KEY, "one").status == 200
    problem(ask(KEY, "two"), "/limits/over-user-limit")
    problem(ask("stranger", "one"), "/limits/over-domain-limit")
    answer = ask("stranger", "sub.blocked")
    problem(answer, "/download/domain-forbidden")
    assert answer.json["blockedDomain"] == "blocked.example"


def test_429_of_an_organisation_for_a_domain(target: Target) -> None:
    target.page("/rate", "ok")
    with Service(connect_to=(f"one.example:80=127.0.0.1:{target.port}",), key_domain_rate=0.0001) as running:
        assert running.extract(url="http://one.example/rate", **BODY).status == 200
        answer = running.extract(key="second", url="http://one.example/rate", **BODY)
        problem(answer, "/limits/over-org-domain-limit")
        assert running.extract(key="stranger", url="http://one.example/rate", **BODY).status == 200


def test_421_for_a_domain_that_is_not_there_or_does_not_answer(service: Service) -> None:
    for host in ("nowhere.invalid", "a..b", f"{'a' * 64}.invalid", "localhost:1"):
        problem(service.extract(url=f"http://{host}/", **BODY), "/website/domain-unreachable")


def test_520_when_a_site_is_silent(target: Target) -> None:
    async def silent(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=0.5)) as running:
        problem(running.extract(url=target.handle("/document/silent", silent), **BODY), "/download/temporary-error")


def test_520_when_a_site_breaks_off_and_521_when_its_answer_is_none(service: Service, target: Target) -> None:
    for url in (
        target.raw("/document/cut", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", then_close=True),
        target.raw("/document/gone", b"", then_close=True),
    ):
        problem(service.extract(url=url, **BODY), "/download/temporary-error")
    for url in (
        target.page("/document/loop", "", 302, Location="/document/loop"),
        target.page("/document/mail", "", 302, Location="mailto:a@b.example"),
        target.page("/document/large", b"x" * (MIB + 1)),
        target.raw("/document/ssh", b"SSH-2.0-x\r\n\r\n", then_close=True),
    ):
        problem(service.extract(url=url, **BODY), "/download/internal-error")


def test_500_when_a_request_takes_too_long(target: Target) -> None:
    async def never(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(request=0.5)) as running:
        problem(running.extract(url=target.handle("/document/never", never), **BODY), "/server/timed-out")


def test_500_and_503(target: Target) -> None:
    entered, release = threading.Event(), threading.Event()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    url = target.handle("/document/hold", hold)
    with Service(allow_hosts=(target.host,), limits=ServiceLimits(requests=1)) as running:
        first = threading.Thread(target=running.extract, kwargs={"url": url, **BODY})
        first.start()
        assert entered.wait(60)
        problem(running.extract(url=url, **BODY), "/limits/over-global-limit")
        release.set()
        first.join()
        running.run(running.service.fetcher.stop())  # as if a bug had closed it
        problem(running.extract(url=url, **BODY), "/server/internal")


# ── Endpoints ──


def test_success_is_200_json_with_what_was_asked_for(service: Service, page: str) -> None:
    answer = service.extract(url=page, httpResponseHeaders=True, echoData={"a": 1}, jobId="7", tags={"t": "v"}, **BODY)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert base64.b64decode(answer.json["httpResponseBody"]) == b"<h1>title</h1>"
    assert (answer.json["echoData"], answer.json["jobId"]) == ({"a": 1}, "7")
    assert all(set(header) == {"name", "value"} for header in answer.json["httpResponseHeaders"])


def test_the_kind_of_content_that_the_caller_names_changes_nothing(service: Service, page: str) -> None:
    body = json.dumps({"url": page, **BODY}).encode()
    for kind in ("application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded", ""):
        assert service.send(body=body, Content_Type=kind).status == 200


def test_nothing_of_a_suspended_or_unknown_caller_is_read_or_fetched(
    service: Service, target: Target, page: str, tmp_path: Path
) -> None:
    before = len(target.calls)
    for key in ("suspended", "unknown"):
        assert service.send(body=b"\xff" * 10, key=key).status in (401, 403)
    assert len(target.calls) == before
