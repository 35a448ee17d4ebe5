"""Records as they are stored, read with the fields that ``meta`` adds."""

from __future__ import annotations

import pytest

from scrapy_ext.client.platform.json_lines import LineError, StoredLine, stored_line


@pytest.mark.parametrize(
    ("line", "own"),
    [
        (b'{"a": 1.50,"_key":"1/2/3/4","_ts":5}', b'{"a": 1.50}'),
        (b'{"_key":"1/2/3/4","_ts":5}', b"{}"),
        (b'{"_key":"1/2/3/4","_ts":5,"time":1,"b": [1, 2]}', b'{"time":1,"b": [1, 2]}'),
        (b'{ "_ts" : 5, "a" : 1.50, "_key" : "1/2/3/4" }', b'{"a":1.50}'),
        (b'{"_key":"mine","_ts":"x","_key":"1/2/3/4","_ts":5}', b'{"_key":"mine","_ts":"x"}'),
        (b'{"_key":"1/2/3/4","_ts":5,"_key":"mine","_ts":6}', b'{"_key":"mine","_ts":6}'),
        (b'{"a":"x,\\"_key\\":\\"y\\"","_key":"1/2/3/4","_ts":5}', b'{"a":"x,\\"_key\\":\\"y\\""}'),
        (b'{"a":123456789012345678901234567890,"_key":"1/2/3/4","_ts":5}', b'{"a":123456789012345678901234567890}'),
    ],
)
def test_the_own_fields_of_a_record_keep_their_bytes(line: bytes, own: bytes) -> None:
    assert stored_line(line, "1/2/3/") == StoredLine("1/2/3/4", 5, own)


def test_a_platform_may_not_report_times() -> None:
    assert stored_line(b'{"a":1,"_key":"1/2/3/4"}', "1/2/3/") == StoredLine("1/2/3/4", None, b'{"a":1}')


@pytest.mark.parametrize("line", [b"[]", b"{", b'{"a":1}', b'{"_key":1}', b'{"_key":"a","_ts":"b"}'])
def test_a_line_without_a_key_is_refused(line: bytes) -> None:
    with pytest.raises(LineError):
        stored_line(line)
