"""Valid requests to POST /extract (extraction-api.md, Rules that hold for a request; Limits)."""

import json

import msgspec
import pytest

from scrapy_ext.api.extraction import EXTENSIONS, EXTRACT_TYPES, FIELDS, OUTPUTS, check, parse, rules
from scrapy_ext.api.extraction.fields import MAX_BODY_BYTES, OPTIONS
from scrapy_ext.api.extraction.rules import InvalidJsonError, problem_of
from scrapy_ext.api.violations import ContractError

URL = "https://example.com/"
#: Fields of the hosted service that the document does not name, and those of ours.
BESIDE = {*EXTENSIONS, *OPTIONS.values()} - {"serpOptions"}
BY_HTTP = {"extractFrom": "httpResponseBody"}
BY_BROWSER = {"extractFrom": "browserHtml"}
SESSION = {"id": "0b5c2f43-3f68-4c3e-b7f8-2b7a4d5d8c11"}
CONTEXT = [{"name": "user", "value": "1"}]
FILTER = {"filterType": "url", "value": "/api/", "matchType": "contains", "httpResponseBody": True}


def fields(body):
    return [violation.field for violation in check({"url": URL, **body})]


def statuses(body):
    return {violation.status for violation in check({"url": URL, **body})}


def test_the_fields_that_differ_between_requests_are_checked_each_time_and_the_others_once():
    rules._faults_of.cache_clear()
    for number in range(3):
        assert check({"url": f"{URL}{number}", "jobId": f"1/2/{number}", "httpResponseBody": True}) == []
    assert rules._faults_of.cache_info().misses == 1
    broken = {"url": "no URL", "jobId": 5, "httpResponseBody": True, "browserHtml": True}
    assert sorted({violation.field for violation in check(broken)}) == ["browserHtml", "jobId", "url"]


@pytest.mark.parametrize("headers", [None, [], [{"name": "A", "value": "b"}], [{"name": "A", "value": "\n"}], [5]])
@pytest.mark.parametrize("job", [None, "1/2/3", "", 5])
@pytest.mark.parametrize("switches", [{}, *({name: True} for name in (*OUTPUTS, "includeIframes")), {"serp": False}])
def test_a_combination_whose_result_is_cached_has_the_violations_of_any_other(headers, job, switches):
    own = {"jobId": job, "customHttpRequestHeaders": headers, "requestHeaders": {"referer": URL}}
    body = {"url": URL, **own, **switches}
    for without in ((), ("jobId",), ("customHttpRequestHeaders",), ("requestHeaders",), ("url",)):
        some = {name: value for name, value in body.items() if name not in without}
        assert sorted(map(str, check(some))) == sorted(map(str, rules._check(some, ())))


@pytest.mark.parametrize("output", OUTPUTS)
def test_each_output_alone_is_a_valid_request(output):
    assert check({"url": URL, output: True}) == []


def test_every_field_of_the_document_is_known_beside_those_of_ours():
    assert len(FIELDS.keys() - BESIDE) == 33


def test_no_output_is_refused_and_the_outputs_are_named():
    (violation,) = check({"url": URL})
    assert violation.status == 422
    assert all(output in violation.rule for output in OUTPUTS)


def test_unknown_field_names_the_likely_one():
    (violation,) = check({"url": URL, "browserHtml": True, "httpResponsBody": True})
    assert (violation.field, violation.status) == ("httpResponsBody", 400)
    assert "httpResponseBody" in violation.remedy


def test_extra_fields_are_let_through():
    assert check({"url": URL, "browserHtml": True, "newField": "mobile"}, extra_fields=["newField"]) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/relative",
        "example.com",
        "ftp://example.com/",
        "http://",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1./",
        "http://127\u30020\uff0e0\uff611/",
        "http://\uff11\uff12\uff17.1/",
        "http://127.0.0.%31/",
        "http://127.0.0.1%2e/",
        "http://%5b::1%5d/",
        "http://127.0.0.1\\@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://a:99999999/",
        "https://example.com/" + "x" * 8192,
    ],
)
def test_url_must_be_absolute_short_and_name_a_domain(url):
    assert fields({"url": url, "browserHtml": True}) == ["url"]


@pytest.mark.parametrize("url", ["http://localhost:8080/a?b#c", "https://EXAMPLE.com", "http://bücher.example/ä"])
def test_domain_names_of_every_kind_are_urls(url):
    assert check({"url": url, "browserHtml": True}) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tags": {"a": 1}}, "tags.a"),
        ({"ipType": "mobile"}, "ipType"),
        ({"geolocation": "us"}, "geolocation"),
        ({"echoData": None, "jobId": 5}, "jobId"),
        ({"requestHeaders": None}, "requestHeaders"),
        ({"actions": ["click"]}, "actions[0]"),
        ({"requestCookies": [1]}, "requestCookies[0]"),
        ({"screenshotOptions": {"fullPage": 1}}, "screenshotOptions.fullPage"),
        ({"extractFrom": "screenshot"}, "extractFrom"),
        ({"customAttributes": {"a": {}}, "article": True}, "customAttributes.a"),
    ],
)
def test_a_value_of_the_wrong_form_is_malformed(body, field):
    body = {"browserHtml": True, **body}
    assert fields(body) == [field]
    assert statuses(body) == {400}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"httpRequestMethod": "CONNECT"}, "httpRequestMethod"),
        ({"httpRequestBody": "no base64!"}, "httpRequestBody"),
        ({"httpRequestBody": "A" * 400_004}, "httpRequestBody"),
        ({"httpRequestText": ""}, "httpRequestText"),
        ({"httpRequestText": "x" * 400_001}, "httpRequestText"),
        ({"customHttpRequestHeaders": [{"name": "a", "value": "b"}] * 201}, "customHttpRequestHeaders"),
        ({"customHttpRequestHeaders": [{"name": "", "value": "b"}]}, "customHttpRequestHeaders[0].name"),
        ({"customHttpRequestHeaders": [{"name": "CooKie", "value": "b"}]}, "customHttpRequestHeaders[0].name"),
        ({"customHttpRequestHeaders": [{"name": "a b", "value": "b"}]}, "customHttpRequestHeaders[0].name"),
        ({"customHttpRequestHeaders": [{"name": "a", "value": "b\r\nX: y"}]}, "customHttpRequestHeaders[0].value"),
        ({"customHttpRequestHeaders": [{"name": "a"}]}, "customHttpRequestHeaders[0]"),
    ],
)
def test_what_an_http_request_carries_keeps_to_the_limits(body, field):
    assert fields({"httpResponseBody": True, **body}) == [field]


def test_limits_themselves_are_allowed():
    assert check({"url": URL, "httpResponseBody": True, "httpRequestText": "x" * 400_000}) == []
    assert check({"url": URL, "httpResponseBody": True, "httpRequestBody": "A" * 400_000}) == []
    headers = [{"name": "a", "value": ""}] * 200
    assert check({"url": URL, "httpResponseBody": True, "customHttpRequestHeaders": headers}) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        # 3, 7
        ({"product": True, "httpResponseBody": True}, "product"),
        # 4
        ({"product": True, "extractFrom": "httpResponseBody", "screenshot": True}, "screenshot"),
        # 5
        ({"serp": True, "geolocation": "US"}, "geolocation"),
        ({"serp": True, "jobId": "1/2/3"}, "jobId"),
        # 6
        ({"product": True, "productList": True}, "productList"),
        # 7
        ({"httpResponseBody": True, "browserHtml": True}, "browserHtml"),
        ({"httpResponseBody": True, "actions": [{"action": "click"}]}, "actions"),
        ({"httpResponseBody": True, "requestHeaders": {"referer": "x"}}, "requestHeaders"),
        # 8
        ({"serp": True, "httpResponseHeaders": True}, "httpResponseHeaders"),
        # 9
        ({"browserHtml": True, "httpRequestMethod": "POST"}, "httpRequestMethod"),
        (
            {"httpResponseHeaders": True, "customHttpRequestHeaders": [{"name": "a", "value": ""}]},
            "customHttpRequestHeaders",
        ),
        # 10
        ({"httpResponseBody": True, "httpRequestBody": "", "httpRequestText": "a"}, "httpRequestText"),
        ({"browserHtml": True, "customAttributes": {"a": {"type": "string"}}}, "customAttributes"),
        (
            {"product": True, "extractFrom": "browserHtml", "productOptions": {"extractFrom": "httpResponseBody"}},
            "extractFrom",
        ),
        ({"product": True, "productOptions": {"extractFrom": "httpResponseBody"}, "screenshot": True}, "screenshot"),
        ({"serp": True, "productOptions": {"extractFrom": "httpResponseBody"}}, "productOptions"),
    ],
)
def test_fields_that_exclude_each_other_are_unprocessable(body, field):
    assert fields(body) == [field]
    assert statuses(body) == {422}


@pytest.mark.parametrize(
    "body",
    [
        {"product": True, "extractFrom": "httpResponseBody", "httpResponseBody": True},
        {"product": True, "screenshot": True, "browserHtml": True},
        {"httpResponseHeaders": True, "browserHtml": True},
        {"serp": True, "serpOptions": {"extractFrom": "browserHtml"}},
        {"httpResponseBody": True, "browserHtml": False, "screenshot": False, "actions": []},
        {"browserHtml": True, "tags": {"a": None}, "echoData": [1, None]},
        {"browserHtml": True, "tags": None},
        {"product": True, "productOptions": {"extractFrom": "httpResponseBody"}, "httpResponseBody": True},
        {"product": True, "extractFrom": "browserHtml", "productOptions": {"extractFrom": "browserHtml"}},
        {"product": True, "articleOptions": {"extractFrom": "httpResponseBody"}, "screenshot": True},
        {"article": True, "articleOptions": {"model": "2026-01-01", "ai": True}},
    ],
)
def test_fields_that_go_together_pass(body):
    assert check({"url": URL, **body}) == []


def test_all_faults_are_reported_at_once():
    assert set(fields({"url": "x", "ipType": "x", "prodct": True, "product": True, "article": True})) == {
        "url",
        "ipType",
        "prodct",
        "product",
    }


@pytest.mark.parametrize("name", [name for name in EXTRACT_TYPES if name != "serp"])
def test_automatic_extraction_uses_a_browser_by_default(name):
    assert parse(json.dumps({"url": URL, name: True}).encode()).wants_browser
    for chosen in ({"extractFrom": "httpResponseBody"}, {f"{name}Options": {"extractFrom": "httpResponseBody"}}):
        assert not parse(json.dumps({"url": URL, name: True, **chosen}).encode()).wants_browser
    others = {kind: {"extractFrom": "httpResponseBody"} for key, kind in OPTIONS.items() if key != name}
    assert parse(json.dumps({"url": URL, name: True, **others}).encode()).wants_browser


def test_serp_uses_http_by_default():
    assert not parse(json.dumps({"url": URL, "serp": True}).encode()).wants_browser
    asked = {"url": URL, "serp": True, "serpOptions": {"extractFrom": "browserHtml"}}
    assert parse(json.dumps(asked).encode()).wants_browser


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"{", "line 1, column 2"),
        (b'{"url": "a",\n "x": }', "line 2, column 7"),
        (b'{"a": "\xff"}', "byte 7"),
        (b"[" * 200_000, "nested over 500 levels deep at byte 500"),
        (b'{"a": "[{", "b": ' * 2000, "nested over 500 levels deep at byte 8500"),
        (b"", "line 1, column 1"),
        (b'{"a": NaN}', "line 1, column 7"),
        (b'{"a":\n 1e400}', "line 2, column 2"),
        (b'{"a": ' + b"1" * 5000 + b"}", "line 1, column 7"),
        ('{"ä": "\\ud800"}'.encode(), "line 1, column 16"),
        (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "byte 0"),
        (b'{"a": 1} {}', "line 1, column 10"),
    ],
)
def test_invalid_json_is_reported_with_its_place(body, place):
    with pytest.raises(InvalidJsonError, match=place):
        parse(body)


def test_problem_names_malformed_before_incompatible():
    with pytest.raises(ContractError) as raised:
        parse(json.dumps({"url": URL, "product": True, "article": True, "nonsense": 1}).encode())
    problem = problem_of(raised.value)
    assert (problem.status, problem.type) == (400, "/request/invalid")
    assert "nonsense" in problem.detail
    assert "cannot be combined with article" in problem.detail


def test_a_body_over_5_mib_is_too_large():
    with pytest.raises(ContractError) as raised:
        parse(b" " * (MAX_BODY_BYTES + 1))
    assert problem_of(raised.value).status == 413


@pytest.mark.parametrize("data", ["null", "12345678901234567890123", "1.10", '{"a": 1, "a": 2}', '"\\u0000"', "-0"])
def test_echo_data_is_kept_as_it_was_written(data):
    body = f'{{"echoData": {data}, "url": "{URL}", "browserHtml": true}}'.encode()
    assert bytes(parse(body).echo_data) == data.encode()


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ('"browserHtml": true, "browserHtml": false', "browserHtml"),
        ('"browserHtml": true, "browser\\u0048tml": true', "browserHtml"),
        ('"tags": {"a": "1", "b": "2", "a": "1"}, "browserHtml": true', "tags.a"),
        ('"httpResponseBody": true, "customHttpRequestHeaders": [{"name": "A", "value": "1", "name": "B"}]',
         "customHttpRequestHeaders[0].name"),
        ('"echoData": 1, "browserHtml": true, "echoData": 1', "echoData"),
    ],
)  # fmt: skip
def test_a_name_that_an_object_has_twice_is_refused_with_its_place(members, name):
    with pytest.raises(ContractError) as raised:
        parse(f'{{"url": "{URL}", {members}}}'.encode())
    assert problem_of(raised.value).type == "/request/invalid"
    assert f"{name}: is given more than once. Send it once." in str(raised.value)


def test_names_in_echo_data_may_repeat_and_hide_no_repetition():
    echo = '{"a": 1, "a": 2}'
    for data in (echo, f"[{echo}]", '":"', "1", '"["', "[]"):
        assert parse(f'{{"url": "{URL}", "browserHtml": true, "echoData":{data}}}'.encode()).url == URL
    members = f'"browserHtml": true, "customAttributes": {echo}, "echoData": {echo}'
    with pytest.raises(ContractError, match=r"customAttributes\.a: is given more than once"):
        parse(f'{{"url": "{URL}", {members}}}'.encode())


def test_megabytes_of_echo_data_are_not_read_for_repetitions():
    data = "[" + ",".join(['{"a":0}'] * 250_000) + "]"
    body = f'{{"url": "{URL}", "browserHtml": true, "echoData": {data}}}'.encode()
    assert len(rules._without_echo(body)) < 200
    assert bytes(parse(body).echo_data) == data.encode()


def test_the_same_name_in_several_objects_is_no_repetition():
    headers = '[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]'
    body = (
        f'{{"url": "{URL}", "httpResponseBody": true, "tags": {{"url": "a"}}, "customHttpRequestHeaders": {headers}}}'
    )
    assert parse(body.encode()).url == URL


def test_absent_echo_data_stays_absent():
    assert parse(json.dumps({"url": URL, "browserHtml": True}).encode()).echo_data is msgspec.UNSET


def test_of_very_many_faults_the_first_are_reported():
    body = {"url": URL, "browserHtmll": True, "browserHtml": True} | {f"x{number}": 1 for number in range(100_000)}
    with pytest.raises(ContractError) as raised:
        parse(json.dumps(body).encode())
    lines = problem_of(raised.value).detail.splitlines()
    assert "Did you mean browserHtml?" in lines[0]
    assert (len(lines), lines[-1]) == (21, "And others.")


@pytest.mark.parametrize(
    "output",
    [
        {"browserHtml": True},
        {"screenshot": True},
        {"product": True},
        {"browserHtml": True, "httpResponseHeaders": True},
        {"serp": True},
    ],
)
def test_only_http_requests_can_return_a_redirect(output):
    assert fields({**output, "followRedirect": False}) == ["followRedirect"]
    assert statuses({**output, "followRedirect": False}) == {422}
    assert fields({**output, "followRedirect": True}) == (["followRedirect"] if "serp" in output else [])


@pytest.mark.parametrize(
    "output",
    [{"httpResponseBody": True}, {"httpResponseHeaders": True}, {"product": True, "extractFrom": "httpResponseBody"}],
)
def test_every_http_request_can_return_a_redirect(output):
    assert check({"url": URL, **output, "followRedirect": False}) == []


@pytest.mark.parametrize("names", [[""], ["a b"], [1], ["X"] * 201])
def test_names_of_omitted_headers_are_checked(names):
    body = {"httpResponseBody": True, "omitHttpRequestHeaders": names}
    assert [field.partition("[")[0] for field in fields(body)] == ["omitHttpRequestHeaders"]
    assert statuses(body) == {400}


def test_a_switch_that_is_false_is_checked_like_any_other_field():
    assert check({"url": URL, "httpResponseBody": True, "screenshot": False}) == []
    assert fields({"httpResponseBody": True, "nothing": False}) == ["nothing"]
    assert fields({"httpResponseBody": False}) == ["request"]


@pytest.mark.parametrize(
    "body",
    [
        {"browserHtml": True, "session": SESSION, "device": "mobile", "javascript": False, "networkCapture": [FILTER]},
        {"httpResponseBody": True, "sessionContext": CONTEXT, "sessionContextParameters": {"actions": [{}]}},
        {"product": True, "javascript": True, "networkCapture": [{"filterType": "resourceType", "value": "fetch"}]},
        {"httpResponseBody": True, "experimental": {"responseCookies": True, "requestCookies": [{"name": "a"}]}},
        {"httpResponseHeaders": True, "device": "desktop", "sessionContext": CONTEXT},
        {"markdown": True, "markdownOptions": {"content": "all", "links": False, "images": False}},
        {"markdown": True, "product": True, "markdownOptions": BY_HTTP, "httpResponseBody": True},
        {"markdown": True, "browserHtml": True, "screenshot": True, "markdownOptions": {}},
    ],
)
def test_extensions_in_their_forms_are_valid(body):
    assert check({"url": URL, **body}) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"session": {}}, "session.id"),
        ({"session": {"id": "1"}}, "session.id"),
        ({"session": {**SESSION, "more": 1}}, "session.more"),
        ({"sessionContext": []}, "sessionContext"),
        ({"sessionContext": CONTEXT * 51}, "sessionContext"),
        ({"sessionContext": CONTEXT * 2}, "sessionContext[1].name"),
        ({"sessionContext": [{"name": "a"}]}, "sessionContext[0]"),
        ({"sessionContext": [{"name": "a", "value": "x" * 1001}]}, "sessionContext[0].value"),
        ({"sessionContext": CONTEXT, "sessionContextParameters": {"url": 1}}, "sessionContextParameters.url"),
        ({"sessionContext": CONTEXT, "sessionContextParameters": {"actions": 1}}, "sessionContextParameters.actions"),
        ({"networkCapture": [FILTER] * 11}, "networkCapture"),
        ({"networkCapture": [1]}, "networkCapture[0]"),
        ({"networkCapture": [{**FILTER, "filterType": "body"}]}, "networkCapture[0].filterType"),
        ({"networkCapture": [{**FILTER, "matchType": "regex"}]}, "networkCapture[0].matchType"),
        ({"networkCapture": [{**FILTER, "value": ""}]}, "networkCapture[0].value"),
        ({"networkCapture": [{"filterType": "resourceType", "value": "xhrr"}]}, "networkCapture[0].value"),
        ({"networkCapture": [{**FILTER, "httpResponseBody": 1}]}, "networkCapture[0].httpResponseBody"),
        ({"device": "watch"}, "device"),
        ({"javascript": "no"}, "javascript"),
        ({"experimental": {"x": 1}}, "experimental.x"),
        ({"experimental": {"requestCookies": {}}}, "experimental.requestCookies"),
        ({"experimental": {"responseCookies": 1}}, "experimental.responseCookies"),
        ({"markdown": {}}, "markdown"),
        ({"markdownOptions": {"content": "text"}}, "markdownOptions.content"),
        ({"markdownOptions": {"content": []}}, "markdownOptions.content"),
        ({"markdownOptions": {"links": 1}}, "markdownOptions.links"),
        ({"markdownOptions": {"extractFrom": "http"}}, "markdownOptions.extractFrom"),
        ({"markdownOptions": {"html": True}}, "markdownOptions.html"),
    ],
)
def test_malformed_extensions_are_refused_by_the_name_of_the_member(body, field):
    body = {"browserHtml": True, **body}
    assert fields(body) == [field]
    assert statuses(body) == {400}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"httpResponseBody": True, "javascript": False}, "javascript"),
        ({"product": True, "extractFrom": "httpResponseBody", "javascript": True}, "javascript"),
        ({"httpResponseHeaders": True, "networkCapture": [FILTER]}, "networkCapture"),
        ({"httpResponseHeaders": True, "actions": [{"action": "reload"}]}, "actions"),
        (
            {"httpResponseHeaders": True, "actions": [{"action": "reload"}], "extractFrom": "browserHtml"},
            "actions",
        ),
        ({"httpResponseBody": True, "networkCapture": [FILTER]}, "networkCapture"),
        ({"product": True, "extractFrom": "httpResponseBody", "networkCapture": [FILTER]}, "networkCapture"),
        ({"browserHtml": True, "session": SESSION, "sessionContext": CONTEXT}, "sessionContext"),
        ({"browserHtml": True, "sessionContextParameters": {"actions": [{}]}}, "sessionContextParameters"),
        ({"serp": True, "session": SESSION}, "session"),
        ({"serp": True, "markdown": True}, "markdown"),
        ({"httpResponseBody": True, "markdown": True}, "markdown"),
        ({"markdown": True, "extractFrom": "httpResponseBody", "screenshot": True}, "screenshot"),
        ({"markdown": True, "fieldSources": True}, "fieldSources"),
        (
            {"markdown": True, "product": True, "markdownOptions": BY_HTTP, "productOptions": BY_BROWSER},
            "markdownOptions.extractFrom",
        ),
        ({"markdown": True, "markdownOptions": BY_HTTP, "extractFrom": "browserHtml"}, "extractFrom"),
        (
            {"browserHtml": True, "requestCookies": [{}], "experimental": {"requestCookies": [{}]}},
            "experimental.requestCookies",
        ),
    ],
)
def test_extensions_that_do_not_fit_together_are_refused(body, field):
    assert fields(body) == [field]
    assert statuses(body) == {422}


def test_markdown_is_an_extension_that_can_be_excluded():
    body = {"url": URL, "markdown": True, "markdownOptions": {"links": False}}
    assert [fault.field for fault in check(body, strict=True)] == ["markdown", "markdownOptions"]
    assert check(body) == []


def test_extensions_can_be_excluded():
    body = {"url": URL, "httpResponseBody": True, "session": SESSION, "device": "mobile", "followRedirect": False}
    faults = check(body, extra_fields=["device"], strict=True)
    assert [(fault.field, fault.status) for fault in faults] == [("followRedirect", 400), ("session", 400)]
    assert "EXTRACT_API_STRICT" in faults[0].remedy
    for kind, name in OPTIONS.items():
        body = {"url": URL, kind: True, name: {"extractFrom": "httpResponseBody"}}
        refused = [] if kind == "serp" else [name]
        assert [fault.field for fault in check(body, strict=True)] == refused
        assert check(body) == check(body, extra_fields=[name], strict=True) == []
    assert check(body) == check({"url": URL, "browserHtml": True, "requestCookies": []}, strict=True) == []
