"""Spiders and settings of public reports crawl as their authors expect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.outside.cases import Crawl, cases_of, parameters, value_of
from tests.outside.crawling import Crawls, in_any_order

CASES: list[Crawl] = cases_of("crawls")


@pytest.mark.parametrize("case", parameters(CASES))
@pytest.mark.long(keep=1)
def test_crawl(case: Crawl, tmp_path: Path) -> None:
    crawls = Crawls(case, tmp_path)
    outcome = crawls.with_addon()
    log = outcome["log"]
    right = {path: in_any_order(value) for path, value in case.right.items()}
    assert {path: in_any_order(value_of(outcome, path)) for path in right} == right, log[-3000:]
    assert {path: most for path, most in case.at_most.items() if value_of(outcome, path) > most} == {}, log[-3000:]
    assert [wanted for wanted in case.log_has if not re.search(wanted, log)] == [], log
    assert [unwanted for unwanted in case.log_lacks if re.search(unwanted, log)] == [], log
    # The site may see the first request late.
    assert outcome["gap"] >= 0.9 * case.least_gap, log[-3000:]
    if case.stored_json:
        assert outcome["stored"] == json.loads(case.stored_json), log
    if case.stored_log_has or case.stored_log_lacks:
        stored = outcome["stored"].log()
        assert [wanted for wanted in case.stored_log_has if not re.search(wanted, stored)] == [], stored
        assert [unwanted for unwanted in case.stored_log_lacks if re.search(unwanted, stored)] == [], stored
    if case.same_as_scrapy:
        plain = crawls.without_addon()
        same = {path: in_any_order(value_of(plain, path)) for path in case.same_as_scrapy}
        assert {path: in_any_order(value_of(outcome, path)) for path in case.same_as_scrapy} == same, log[-3000:]
