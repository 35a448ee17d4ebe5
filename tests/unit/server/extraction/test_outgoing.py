"""Headers of requests to sites: in the case and order of browsers, and values that belong together."""

from __future__ import annotations

import pytest

from scrapy_ext.api.extraction import Header
from scrapy_ext.server.extraction.outgoing import headers_to_send, read_request_headers, without_secure_ones


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("userAgent", "User-Agent"),
        ("acceptLanguage", "Accept-Language"),
        ("referer", "Referer"),
        ("secChUa", "sec-ch-ua"),
        ("xRequestedWith", "X-Requested-With"),
        ("User-Agent", "User-Agent"),
        ("x-lower-Case", "x-lower-Case"),
        ("DNT", "DNT"),
    ],
)
def test_a_member_of_request_headers_is_sent_in_the_case_of_browsers_and_a_header_as_it_is_written(
    written: str, sent: str
) -> None:
    headers, faults = read_request_headers({written: "v"})
    assert (headers, faults) == ([Header(sent, "v")], [])


def test_a_header_of_the_caller_takes_the_place_of_the_services_own() -> None:
    own = [header.name for header in headers_to_send([])]
    sent = headers_to_send(
        [Header("Accept-Language", "fr"), Header("Referer", "http://a.example/"), Header("X-b", "1")]
    )
    names = [header.name for header in sent]
    assert [name for name in names if name in own] == own
    assert names.index("Referer") == names.index("Accept-Encoding") - 1
    assert names[-1] == "X-b"


def test_another_user_agent_has_no_client_hints_but_those_of_the_caller() -> None:
    agent = Header("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0")
    assert not [each for each in headers_to_send([agent]) if each.name.startswith("sec-ch-ua")]
    hint = Header("sec-ch-ua", '"Mine";v="1"')
    assert hint in headers_to_send([agent, hint])


def test_over_http_to_another_machine_browsers_send_no_hints_and_accept_less() -> None:
    sent = {each.name: each.value for each in without_secure_ones(headers_to_send([Header("Sec-Fetch-Site", "x")]))}
    assert sent["Accept-Encoding"] == "gzip, deflate"
    assert [name for name in sent if name.lower().startswith("sec-")] == ["Sec-Fetch-Site"]
