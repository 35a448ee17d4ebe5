"""Metadata of another run of a job: what the job was given, without what the platform and the crawl have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scrapy_ext.api.platform.imports import IMPORTED
from scrapy_ext.api.platform.jobs import CRAWL_STATS, GROUP_ARGUMENTS, HOSTED_STATS, RUNS, without_chosen_id
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.server.store.jobs.rows import PROTECTED, StoredJob
from scrapy_ext.server.store.jobs.states import ENTERED

#: Members that are fields of ``run.json``. The version is the current one.
_GIVEN: Final = (
    *("spider_args", "job_settings", "environment", "cmd_args", "tags", "priority", "units", JOB_WORKERS, "node_tags"),
)
#: Members that are written for a job: by this platform, by its crawl, by schedules and imports, and by the hosted
#: platform for jobs that were imported from it.
_WRITTEN: Final = PROTECTED.union(
    (name for names in ENTERED.values() for name in names),
    ("close_reason", "cancelled_by", "spider_type", "version", "deploy_id", IMPORTED),
    (CRAWL_STATS, HOSTED_STATS, RUNS, GROUP_ARGUMENTS, "frontier", "waits_since", "periodic_job_id", "periodic_time"),
    ("_shub_worker", "api_url", "portia_url", "portia_stack_version"),
)


def custom_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a job's metadata that its clients have added for their own use."""
    return {name: value for name, value in metadata.items() if name not in _WRITTEN and name not in _GIVEN}


def metadata_of_rerun(job: StoredJob) -> dict[str, Any]:
    """Return the metadata of another run of a job, as the form and the list of jobs start it."""
    given: dict[str, Any] = {name: job.metadata[name] for name in _GIVEN if name in job.metadata}
    return {"spider_type": "manual", **without_chosen_id(given), **custom_metadata(job.metadata)}
