"""Fields of reports: what is right, and the errors of what is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.stat_kinds import Stat, StatKind
from scrapy_ext.api.platform.workers import (
    MOST_WORKERS,
    Bounds,
    Counts,
    Queue,
    Report,
    ReportAnswer,
    Silent,
    bounds_of,
    reason_text,
    report_of,
)
from scrapy_ext.api.violations import ContractError

NONCE = "0123456789abcdef" * 2
JOIN: dict[str, Any] = {"job": "1/2/3", "nonce": NONCE, "number": 1}
REPORT: dict[str, Any] = {"job": "1/2/3", "attempt": 4, "number": 5}


def test_a_report_comes_back_as_it_was_sent() -> None:
    report = Report(
        job="1/2/3",
        attempt=4,
        number=5,
        queue=Queue(memory=7, more=True, active=2, idle=0.5),
        start="done",
        counts=Counts(items=1, responses=2, errors=3),
        stats={"item_scraped_count": Stat(StatKind.SUM, 1)},
        closing="closespider_itemcount",
        leaving=True,
        silent=(Silent(2, 17),),
        last=True,
        outcome="finished",
    )
    assert report_of(msgspec.json.decode(msgspec.json.encode(report))) == report


def test_every_field_is_checked() -> None:
    assert set(fields_of(Report)) == set(Report.__struct_fields__)


def test_what_is_not_given_is_left_out_on_the_wire() -> None:
    assert msgspec.json.encode(report_of(REPORT)) == b'{"job":"1/2/3","attempt":4,"number":5}'
    assert msgspec.json.encode(ReportAnswer()) == b"{}"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({**REPORT, "job": "1/2"}, "job: must be the key of a job"),
    ({**REPORT, "attempt": 0}, "attempt: must be a whole number"),
    ({**REPORT, "attempt": True}, "attempt: must be a whole number"),
    ({"job": "1/2/3", "attempt": 4}, "number: must be a whole number"),
    ({**REPORT, "number": 0}, "number: must be a whole number"),
    ({**JOIN, "nonce": NONCE.upper()}, "nonce: must be 32 hexadecimal digits"),
    ({**JOIN, "nonce": None}, "nonce: is required to join"),
    ({**JOIN, "last": True, "outcome": "finished"}, "last: cannot be sent in a join"),
    ({**JOIN, "silent": [[1, 2]]}, "silent: cannot be sent in a join"),
    ({**JOIN, "start": "done"}, "start: cannot be sent in a join"),
    ({**JOIN, "workers": "0"}, "workers: must be a number of workers from 1 to 256"),
    ({**JOIN, "resume": 1}, "resume: must be true or false"),
    ({**REPORT, "workers": "4"}, "attempt: has joined"),
    ({**REPORT, "resume": True}, "attempt: has joined"),
    ({**REPORT, "queue": {"memory": -1}}, "queue: must have memory"),
    ({**REPORT, "queue": {"odd": 1}}, "queue: must have memory"),
    ({**REPORT, "queue": {"idle": 1e99}}, "queue: must have memory"),
    ({**REPORT, "start": "begun"}, 'start: must be "running" or "done"'),
    ({**REPORT, "counts": {"items": 1.5}}, "counts: must have items"),
    ({**REPORT, "stats": {"n": 1}}, "stats: must be an object with [kind, value]"),
    ({**REPORT, "stats": {"n": ["odd", 1]}}, "stats: must be an object with [kind, value]"),
    ({**REPORT, "silent": [[1]]}, "silent: must be an array of pairs"),
    ({**REPORT, "silent": [[1, 2]] * (MOST_WORKERS + 1)}, "silent: must be an array of pairs"),
    ({**REPORT, "last": True}, "outcome: is required with last"),
    ({**REPORT, "odd": 1}, "odd: is no field of a report"),
]


@pytest.mark.parametrize(("fields", "error"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], error: str) -> None:
    with pytest.raises(ContractError) as refused:
        report_of(fields)
    assert error in str(refused.value)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("1", (1, 1)), ("4", (4, 4)), ("4..32", (4, 32)), ("2..2", (2, 2)), (str(MOST_WORKERS), (MOST_WORKERS,) * 2)],
)
def test_bounds_are_a_number_or_two(text: str, bounds: tuple[int, int]) -> None:
    assert bounds_of(text) == Bounds(*bounds)


@pytest.mark.parametrize("text", ["", "0", "04", "4..2", "4..", "..4", "-1", "4...5", " 4", "257", "1..999", "٤"])
def test_other_bounds_are_refused(text: str) -> None:
    with pytest.raises(ContractError, match="CRAWL_WORKERS: must be a number of workers"):
        bounds_of(text, "CRAWL_WORKERS")


def test_a_sum_of_counts_is_one_that_can_be_stored() -> None:
    assert Counts(MAX_NUMBER, 1, 2).plus(Counts(1, 3)) == Counts(MAX_NUMBER, 4, 2)


def test_a_reason_fits_into_a_job() -> None:
    assert reason_text("a\0b" + "c" * 300) == "ab" + "c" * 253
    assert reason_text(None) == reason_text("\0") == ""


@pytest.mark.parametrize(
    ("queue", "is_empty"),
    [
        (Queue(), True),
        (Queue(idle=2.0), True),
        (Queue(memory=1), False),
        (Queue(more=True), False),
        (Queue(active=1), False),
    ],
)
def test_a_worker_is_idle_without_a_request(queue: Queue, is_empty: bool) -> None:
    assert queue.is_empty is is_empty
