"""Rules of monitors, and addresses of alerts, as clients send them."""

from __future__ import annotations

import json
import re

from scrapy_ext.api.platform.alerts import MAX_URL, masked, target_of, url_faults
from scrapy_ext.api.platform.monitor_checks import MAX_CHECK, parse_check
from scrapy_ext.api.platform.monitors import conditions_in_words, jobs_in_words, monitor_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.monitors.sending import without_parts
from tests.fuzz.target import target


@target(
    "monitor-checks",
    [
        b"items >= 0.8 x median of 10 runs after 3 runs",
        b'coverage "list \\"price\\"" >= 95.5%',
        b"share 4xx+503 <= 1%",
        b"stat a/b == -1.5",
        b"duration<=2h",
        b'outcome == "\\ud800"',
        b"items >= " + b"9" * 40,
        b'coverage "' + b"\\u0000" * 60 + b'" >= 1',
    ],
)
def monitor_checks(data: bytes) -> None:
    """A text is a check whose canonical text means the same, or is refused with rules."""
    try:
        check = parse_check(data.decode("utf-8", "surrogateescape"))
    except ContractError:
        return
    text = str(check)
    assert str(parse_check(text)) == text or len(text) > MAX_CHECK
    assert check.operator in (">=", "<=", "==")


@target(
    "monitors",
    [
        b'{"spider":"books","tag":"nightly","args":{"a":[1]},"checks":["items >= 1"],"enabled":true}',
        b'{"schema":{"$ref":"#/a","a":{}},"sample":0}',
        b'{"schema":{"title":"\\ud800"}}',
        b'{"expect":"7 d","spider":"s"}',
        b'{"expect":"schedule"}',
        b'{"checks":[[]],"name":"\\ud800","args":{"":1},"sample":true,"schema":[]}',
        b'{"expect":"99999999999999999999h","spider":"s"}',
    ],
)
def monitors(data: bytes) -> None:
    """Fields are a monitor that can be shown, or are refused with rules."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(fields, dict):
        return
    try:
        monitor = monitor_of(fields)
    except ContractError:
        return
    assert monitor.parsed or monitor.schema is not None or monitor.expect
    assert monitor.hours is None or monitor.hours > 0
    assert jobs_in_words(monitor)
    assert conditions_in_words(monitor)


@target(
    "alert-addresses",
    [
        b"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#channel",
        b"mailtos://user:p%40ss@example.com?to=a@b.example",
        b"json://[::1]:80/?+attach=/etc/passwd",
        b"dbus://",
        b"json://" + b"a" * MAX_URL,
        b"tgram://\xff\x00",
    ],
)
def alert_addresses(data: bytes) -> None:
    """A text is an address of which nothing but the scheme is shown, or is refused."""
    url = data.decode("utf-8", "surrogateescape")
    if list(url_faults(url)):
        return
    new = target_of({"name": "a", "url": url})
    scheme, _, rest = new.url.partition("://")
    assert masked(new.url) == f"{scheme.lower()}://***"
    outcome = without_parts(f"no answer from {rest}", new.url)
    assert "\n" not in outcome
    assert not [part for part in re.findall("[A-Za-z0-9]{14,}", rest) if part in outcome]
