"""Row of a job that is being imported."""

from __future__ import annotations

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui.job_summary import summary


def test_a_job_that_is_being_imported_names_its_source_and_has_no_duration() -> None:
    metadata = {"running_time": 1000, "imported": {"source": "old.example.com/7/2/3"}}
    row = summary(StoredJob(JobKey(1, 2, 3), "books", JobState.RUNNING, 1000, 1000, metadata), 90_000)
    assert (row.elapsed, row.importing, "old.example.com/7/2/3" in row.waiting) == (None, True, True)


def test_other_running_jobs_have_a_duration() -> None:
    for metadata in (
        {"running_time": 1000},
        {"running_time": 1000, "attempt": 2, "imported": {"source": "a/1/2/3"}},
        {"running_time": 1000, "imported": {"source": "a/1/2/3", "time": 5}},
    ):
        row = summary(StoredJob(JobKey(1, 2, 3), "books", JobState.RUNNING, 1000, 1000, metadata), 90_000)
        assert (row.elapsed, row.importing, row.waiting) == (89_000, False, "")
