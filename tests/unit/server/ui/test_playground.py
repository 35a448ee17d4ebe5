"""The form of the playground as a request and as code."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui import playground


def form(levels: int) -> Form:
    value: Any = 1
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return Form([("url", "https://a.example/"), ("more", json.dumps({"echoData": value}))])


def test_the_code_of_a_deep_request_is_shown() -> None:
    body = playground.fields_of(form(playground.MAX_LEVELS - 1))
    assert playground.as_request(body).count("{") == playground.MAX_LEVELS // 2 + 2
    assert "--data" in playground.as_curl(body, "https://h.example")


@pytest.mark.parametrize("levels", [playground.MAX_LEVELS, 900])
def test_a_request_of_too_many_levels_is_refused(levels: int) -> None:
    with pytest.raises(ContractError, match=re.escape("more: is nested over 500 levels deep")):
        playground.fields_of(form(levels))
