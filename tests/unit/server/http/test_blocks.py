"""Lines of a block of a body, and parameters of a query."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from scrapy_ext.server.http.bodies import Block
from scrapy_ext.server.http.call import _parameters


@pytest.mark.parametrize("data", [b"", b"a", b"a\nb", b"\n", b"a\n", b"a\n\nb", b"\n\n", b"a\r\nb\r", b"a\x0bb\x0c\nc"])
def test_a_block_has_the_lines_between_line_breaks(data: bytes) -> None:
    block = Block(1, data)
    assert block.lines == data.split(b"\n")
    assert block.count == len(block.lines)
    assert b"".join(block.ended) == data
    assert block.ends_blank == (not block.lines[-1])


@pytest.mark.parametrize(
    "query",
    [
        "",
        "a=b",
        "a=b&a=c",
        "a",
        "a=",
        "=b",
        "a=b=c",
        "&",
        "a=b&&c=d&",
        "a;b=c",
        "a=%41",
        "a=b+c",
        "a=%zz",
        "a=\xe4&\xe4=1",
    ],
)
def test_parameters_are_those_of_the_standard_library(query: str) -> None:
    assert _parameters(query.encode("latin-1")) == parse_qsl(query, keep_blank_values=True)
