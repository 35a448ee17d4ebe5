"""Retention rules. The hosted platform does not have them."""

from __future__ import annotations

from scrapy_ext.api.platform.retention import Preview, Rule
from scrapy_ext.client.platform.rules import Rules


class Retention(Rules[Rule, Preview]):
    """Rules by which old data is removed."""

    _name = "retention"
    _rule = Rule
    _rules = list[Rule]
    _preview = Preview
