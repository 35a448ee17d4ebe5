"""IDs of jobs that clients of Scrapyd have chosen: a tag, by which the job is found, and a variable of the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Prefix of the tag of a job whose client chose an ID.
TAG: Final = "scrapyd:"
#: Variable of the environment of such a job, with the ID.
JOB_VARIABLE: Final = "SCRAPY_JOB"


def without_id(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a job for another run of it, which has an ID of its own."""
    tags, environment = metadata.get("tags"), metadata.get("environment")
    found = dict(metadata)
    if isinstance(tags, list) and (kept := [tag for tag in tags if not str(tag).startswith(TAG)]) != tags:
        found["tags"] = kept
        if isinstance(environment, Mapping):
            found["environment"] = {name: value for name, value in environment.items() if name != JOB_VARIABLE}
    return found
