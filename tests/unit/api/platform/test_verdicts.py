"""Rules of verdicts, one row each."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.jobs import Outcome, outcome_of
from scrapy_ext.api.platform.verdicts import Finished, Verdict, reasons_of, typical_items, verdict_of


def finished(
    reason: str = "finished", items: int = 100, errors: int = 0, median: float | None = 100, monitor: str = ""
) -> Finished:
    return Finished(reason, items, errors, median, [("prices", monitor)] if monitor else [])


@pytest.mark.parametrize(
    ("run", "verdict", "sentences"),
    [
        (finished(), Verdict.GREEN, []),
        (finished(median=None, items=0), Verdict.GREEN, []),
        (finished(median=0, items=0), Verdict.GREEN, []),
        (finished("start_error"), Verdict.RED, ["it failed: start_error"]),
        (finished("node_lost"), Verdict.RED, ["it failed: node_lost"]),
        (finished("embedded_server_failed"), Verdict.RED, ["it failed: embedded_server_failed"]),
        (finished("closespider_timeout"), Verdict.AMBER, ["it ended over a limit: closespider_timeout"]),
        (finished("closespider_itemcount"), Verdict.GREEN, []),
        (finished("closespider_itemcount", items=10), Verdict.GREEN, []),
        (finished("closespider_pagecount", items=10), Verdict.GREEN, []),
        (
            finished("closespider_pagecount", items=0),
            Verdict.RED,
            ["no items, and runs with its arguments had 100 (median)"],
        ),
        (finished("closespider_itemcount", errors=1), Verdict.AMBER, ["1 error in the log"]),
        (
            finished("closespider_errorcount"),
            Verdict.AMBER,
            ["it ended over a limit: closespider_errorcount"],
        ),
        (
            finished("closespider_pagecount_no_item"),
            Verdict.AMBER,
            ["it ended over a limit: closespider_pagecount_no_item"],
        ),
        (finished("log in failed"), Verdict.AMBER, ["its spider ended it: log in failed"]),
        (finished("cancelled", items=0), Verdict.NONE, []),
        (finished("shutdown", items=1, errors=2), Verdict.NONE, ["2 errors in the log"]),
        (finished(items=0), Verdict.RED, ["no items, and runs with its arguments had 100 (median)"]),
        (finished(items=49), Verdict.AMBER, ["49 items, 49 % of the 100 of runs with its arguments (median)"]),
        (finished(items=50), Verdict.GREEN, []),
        (finished(errors=1), Verdict.AMBER, ["1 error in the log"]),
        (finished(errors=100), Verdict.AMBER, ["100 errors in the log"]),
        (finished(errors=101), Verdict.RED, ["101 errors in the log, and 100 items"]),
        (finished(items=2, median=None, errors=10), Verdict.AMBER, ["10 errors in the log"]),
        (
            finished(errors=3, monitor="price is 12, expected 20"),
            Verdict.RED,
            ["monitor prices failed: price is 12, expected 20", "3 errors in the log"],
        ),
    ],
)
def test_a_run_has_the_worst_verdict_of_its_reasons(run: Finished, verdict: Verdict, sentences: list[str]) -> None:
    reasons = reasons_of(run)
    assert verdict_of(reasons, run.close_reason) is verdict
    assert [reason.sentence for reason in reasons] == sentences


def test_a_median_needs_three_runs() -> None:
    assert typical_items([5, 7]) is None
    assert typical_items([5, 900, 7]) == 7


def test_a_long_sentence_is_cut_and_stays_one_line() -> None:
    (reason,) = reasons_of(finished(monitor="two\nlines " + "x" * 1000))
    assert len(reason.sentence) == 500
    assert "\n" not in reason.sentence


@pytest.mark.parametrize("reason", ["start_error", "embedded_server_failed", "killed by 9"])
def test_reasons_of_an_exception_are_failures(reason: str) -> None:
    assert outcome_of(reason) is Outcome.FAILED
