"""``--check``: every line against the rules, and nothing sent."""

from __future__ import annotations

import sys
from collections.abc import Collection

from scrapy_ext.commands.extraction.request_lines import LineParser
from scrapy_ext.commands.extraction.sources import Source
from scrapy_ext.commands.terminal.text import printable


def check_lines(source: Source, parser: LineParser, extra_fields: Collection[str]) -> tuple[int, int]:
    """Print what is wrong with each line; how many lines there are, and how many of them break a rule.

    Raises :class:`OSError`.
    """
    number = broken = 0
    for lines in source.lines():
        number += len(lines)
        for line in lines:
            violations = parser.parse(line).violations(extra_fields)
            broken += bool(violations)
            for violation in violations:
                sys.stdout.write(f"line {line.number}: {printable(str(violation))}\n")
    sys.stdout.flush()
    return number, broken
