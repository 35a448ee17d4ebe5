"""Projects and jobs by the names that clients of Scrapyd use.

Scrapyd names projects, and jobs have any text as their ID. Here a project has a number, and maybe a name; a project
without one is called by its number. A job whose client chose an ID has the tag ``scrapyd:ID``, by which it is found.
The ID of every other job is made of its key: ``7-1-23``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from scrapy_ext.api.platform.jobs import CHOSEN_ID_TAG, SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey, is_number
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of

#: Characters of such an ID, which is the name of a file too.
JOB_ID: Final = re.compile(r"(?!\.{1,2}$)[\w.:+\-]{1,120}", re.ASCII)
#: Maximum jobs with the same ID that a call is about.
_SAME_ID: Final = 100
_OWN_ID: Final = re.compile(r"(\d{1,18})[-/](\d{1,18})[-/](\d{1,18})", re.ASCII)


class Projects:
    """The projects that a caller may read, by the names that Scrapyd's clients use."""

    def __init__(self, numbers: Iterable[int], names: Mapping[int, str]) -> None:
        self._names = {number: names.get(number, str(number)) for number in numbers}
        self._numbers = {name: number for number, name in self._names.items()}

    @classmethod
    async def of(cls, call: Call) -> Projects:
        call.may_read(0)  # only what the key may read is in the answer
        found = await call.store.jobs.projects()
        return cls(filter(call.may_read, found), await call.store.projects.names())

    @property
    def numbers(self) -> list[int]:
        return list(self._names)

    @property
    def names(self) -> list[str]:
        return sorted(self._names.values())

    def name(self, project: int) -> str:
        return self._names.get(project, str(project))

    def find(self, call: Call, name: str) -> int:
        """Return the number of a project after a check of the caller; raises :class:`ContractError` for none."""
        number = self._numbers.get(name)
        if number is None and is_number(name):
            number = int(name)
            call.need(number)
            if number not in self._names:
                number = None
        if number is None:
            raise refused("project", f"{name[:80]!r} was not found", "GET /listprojects.json lists the projects.")
        call.need(number)
        return number


def id_of(job: StoredJob) -> str:
    """Return the ID of a job: the one that its client chose, or one made of its key."""
    chosen = next((tag for tag in tags_of(job.metadata) if tag.startswith(CHOSEN_ID_TAG)), None)
    return chosen.removeprefix(CHOSEN_ID_TAG) if chosen else "-".join(map(str, job.key))


async def jobs_of(call: Call, project: int, job_id: str) -> list[StoredJob]:
    """Return the jobs of a project with an ID, the newest first, without deleted ones."""
    if own := _OWN_ID.fullmatch(job_id):
        key = JobKey(*map(int, own.groups()))
        found = await call.store.jobs.get(key) if key.project == project else None
        if found is not None and found.state is not JobState.DELETED:
            return [found]
    which = JobFilter(states=SHOWN_STATES, has_tags=(CHOSEN_ID_TAG + job_id,))
    return await call.store.jobs.listed(project, which, JobPage(_SAME_ID))
