"""Words for the names of fields in records of jobs and requests. Fields of users keep their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Members of a job's metadata.
JOB: Final[Mapping[str, str]] = {
    "spider_type": "Kind of spider",
    "pending_time": "Scheduled",
    "scheduled_by": "Scheduled by",
    "running_time": "Started",
    "started_by": "Started by",
    "finished_time": "Finished",
    "completed_by": "Finished by",
    "deleted_time": "Deleted",
    "deleted_by": "Deleted by",
    "cancelled_by": "Cancelled by",
    "close_reason": "Outcome",
    "cmd_args": "Command line",
    "deploy_id": "Number of the deployment",
    "priority": "Priority",
    "units": "Units",
    "job_workers": "Workers",
    "version": "Version",
    "node": "Node",
    "node_tags": "Tags of the node",
    "nodes_lost": "Lost nodes",
    "attempt": "Attempt",
    "spider_args": "Arguments",
    "job_settings": "Settings of the job",
    "environment": "Environment",
}
#: Members of a request record.
REQUEST: Final[Mapping[str, str]] = {
    "fp": "Fingerprint",
    "parent": "Parent request",
    "time": "Time",
    "method": "Method",
    "duration": "Took",
    "rs": "Size of the response",
}


def job_word(name: object) -> object:
    """Return words for the name of a member of a job's metadata; other names as they are."""
    return JOB.get(name, name) if isinstance(name, str) else name


def request_word(name: object) -> object:
    """Return words for the name of a member of a request record; other names as they are."""
    return REQUEST.get(name, name) if isinstance(name, str) else name
