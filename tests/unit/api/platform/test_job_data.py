"""Data of a job outside its records is found by its name, also that of the workers of a group."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.job_data import (
    attempt_of_journal,
    is_journal,
    job_of_journal,
    job_of_payload,
    journal_of,
    payload_prefixes,
)

KEY = JobKey(1, 2, 7)


@pytest.mark.parametrize(("attempt", "name"), [(None, "commits-2-7"), (1, "commits-2-7-1"), (12, "commits-2-7-12")])
def test_a_journal_names_its_job_and_its_attempt(attempt, name):
    assert journal_of(KEY, attempt) == name
    assert is_journal(name)
    assert (job_of_journal(1, name), attempt_of_journal(name)) == (KEY, attempt)
    assert job_of_payload(1, f"job-2-7/{name}/0a1b/5.0") == KEY


@pytest.mark.parametrize("name", ["commits-2", "commits-2-7-0", "commits-2-7-1-1", "commits-2-7-", "commits-02-7", "0"])
def test_another_name_is_of_no_job(name):
    assert (job_of_journal(1, name), attempt_of_journal(name)) == (None, None)


def test_the_staged_items_of_a_job_are_those_of_all_its_workers_and_of_no_other_job():
    def keys(job):
        return [f"job-2-7/{journal_of(JobKey(1, 2, job), attempt)}/w/1.0" for attempt in (None, 1, 12)]

    prefixes = tuple(payload_prefixes("job-2-7", KEY))
    assert all(key.startswith(prefixes) for key in keys(7))
    assert not any(key.startswith(prefixes) for job in (1, 70, 77) for key in keys(job))
