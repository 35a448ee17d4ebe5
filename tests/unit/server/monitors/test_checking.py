"""Measures of jobs, limits and sentences."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitor_checks import parse_check
from scrapy_ext.server.monitors.checking import check_result
from scrapy_ext.server.store.jobs.rows import Counts
from scrapy_ext.server.store.monitors.facts import JobFacts

STATS = {
    "downloader/response_status_count/200": 90,
    "downloader/response_status_count/404": 6,
    "downloader/response_status_count/503": 4,
    "retry/count": 7,
    "finish_reason": "finished",
    "nan": float("nan"),
}
JOB = JobFacts(
    key=JobKey(1, 2, 3),
    spider="books",
    finished=10_000,
    outcome="finished",
    tags=[],
    args={},
    seconds=7200.0,
    counts=Counts(items=40, requests=100, logs=9, errors=2),
    warnings=3,
    fields={"price": 38},
    stats=STATS,
    removed=frozenset(),
)


@pytest.mark.parametrize(
    ("text", "outcome", "sentence"),
    [
        ("items >= 40", "passed", "items is 40, expected at least 40"),
        ("requests <= 99", "failed", "requests is 100, expected at most 99"),
        ("errors == 0", "failed", "errors is 2, expected exactly 0"),
        ("warnings <= 3", "passed", "warnings is 3, expected at most 3"),
        ("duration <= 1h", "failed", "duration is 7200s, expected at most 3600s"),
        ("outcome == finished", "passed", "outcome is finished, expected exactly finished"),
        ("outcome == failed", "failed", "outcome is finished, expected exactly failed"),
        ("status 404 <= 5", "failed", "status 404 is 6, expected at most 5"),
        ("status 4xx+503 <= 10", "passed", "status 4xx+503 is 10, expected at most 10"),
        ("share 5xx <= 4%", "passed", "share 5xx is 4%, expected at most 4%"),
        ("share 4xx+5xx <= 5%", "failed", "share 4xx+5xx is 10%, expected at most 5%"),
        ("coverage price >= 95%", "passed", "coverage price is 95%, expected at least 95%"),
        ("coverage isbn >= 50%", "failed", "coverage isbn is 0%, expected at least 50%"),
        ("stat retry/count <= 7", "passed", "stat retry/count is 7, expected at most 7"),
        ("stat never/counted <= 7", "passed", "stat never/counted is 0, expected at most 7"),
        ("stat finish_reason <= 7", "not applicable", "stat finish_reason: the stat is not a number"),
        ("stat nan <= 7", "not applicable", "stat nan: the stat is not a number"),
    ],
)
def test_a_check_has_an_outcome_and_a_sentence_with_numbers(text: str, outcome: str, sentence: str) -> None:
    result = check_result(parse_check(text), JOB, [])
    assert (result.outcome, result.sentence) == (outcome, sentence)


@pytest.mark.parametrize(
    ("changes", "text", "sentence"),
    [
        ({"stats": None}, "status 404 <= 5", "status 404: the job has no stats"),
        ({"stats": None}, "stat a <= 5", "stat a: the job has no stats"),
        ({"stats": {}}, "share 404 <= 5%", "share 404: the job has no responses"),
        ({"counts": Counts()}, "coverage price >= 1%", "coverage price: the job has no items"),
        ({"seconds": None}, "duration <= 5", "duration: the job never ran"),
        ({"removed": frozenset({"items"})}, "items >= 5", "items: the items of the job were removed"),
        ({"removed": frozenset({"logs"})}, "errors == 0", "errors: the logs of the job were removed"),
    ],
)
def test_a_check_without_a_value_is_not_applicable(changes: dict[str, Any], text: str, sentence: str) -> None:
    result = check_result(parse_check(text), JOB._replace(**changes), [])
    assert (result.outcome, result.sentence) == ("not applicable", sentence)


def test_a_median_leaves_out_runs_without_a_value_and_needs_enough_of_them() -> None:
    def run(items: int, **changes: Any) -> JobFacts:
        return JOB._replace(counts=Counts(items=items), **changes)

    removed = run(1, removed=frozenset({"items"}))
    check = parse_check("items >= 0.5 x median of 3 runs")
    assert check_result(check, run(40), [removed, run(10), run(20)]).sentence == (
        "items: 2 earlier runs with the same arguments finished, and a median needs 3"
    )
    result = check_result(check, run(12), [removed, run(10), run(30), run(20), run(9000)])
    assert (result.outcome, result.limit, result.runs) == ("passed", 10, 3)
    result = check_result(parse_check("items >= median of 4"), run(12), [run(10), run(30), run(20), run(40)])
    assert (result.outcome, result.limit) == ("failed", 25)
    assert result.sentence == "items is 12, expected at least 25 (the median of 4 runs)"
