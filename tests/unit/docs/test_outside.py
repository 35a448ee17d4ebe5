"""The page of rates has those of the cases."""

from __future__ import annotations

from tests.outside.rates import MARK, PAGE, tables


def test_the_page_has_the_rates_of_the_cases() -> None:
    written = PAGE.read_text("utf-8").partition(MARK)[2]
    assert written.strip() == tables().strip(), "run: python -m tests.outside.rates --write"
