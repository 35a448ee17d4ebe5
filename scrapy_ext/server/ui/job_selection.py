"""The jobs that a form of the list of jobs is about: the chosen ones, or all that the filters of its address find.

An action on all that are found is confirmed first, on a page that says how many jobs it is about. The form of that page
has the time at which they were counted: a job that changed its state since then is left alone.

They are the newest jobs in the states that the action is about, up to the size of a window. Repeated, an action finds
the older ones: jobs that are stopped or deleted are not found again, and after jobs were run again the list is that of
the jobs before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey, number_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.jobs.windows import WINDOW
from scrapy_ext.server.ui.frame import Visit
from scrapy_ext.server.ui.job_filters import JobFilters, filters_of

#: Maximum number of jobs that are chosen one by one.
_AT_ONCE: Final = 500
#: Actions on all jobs that are found, with the states that they are about.
_STATES: Final = {
    "stop": (JobState.PENDING, JobState.RUNNING),
    "rerun": (JobState.PENDING, JobState.RUNNING, JobState.FINISHED),
    "delete": (JobState.PENDING, JobState.RUNNING, JobState.FINISHED),
}


class Selection(NamedTuple):
    """Jobs that an action is about.

    ``until``: time (ms) at which all that the filters find were counted; None: the jobs were chosen one by one.
    ``older``: time (ms) before which further ones changed, which the action leaves alone; None: there are none.
    """

    keys: Sequence[JobKey]
    until: int | None = None
    older: int | None = None

    @property
    def is_all(self) -> bool:
        return self.until is not None


async def selection_of(visit: Visit) -> Selection:
    """Return the jobs that the form is about; raises ``ContractError``."""
    if visit.form.get("all"):
        return await _found(visit, visit.form.get("action") or "")
    keys = list(dict.fromkeys(own_key(text, visit.project, "job") for text in visit.form.all("job")))
    if len(keys) > _AT_ONCE:
        raise refused("job", f"must be named {_AT_ONCE} times at most, got {len(keys)}", "Choose fewer jobs.")
    return Selection(keys)


async def _found(visit: Visit, action: str) -> Selection:
    errors: dict[str, str] = {}
    filters = await filters_of(visit, errors)
    for name, error in errors.items():
        raise refused(name, error, "Filter the list again before an action on all that it finds.")
    given = visit.form.get("until")
    until = visit.store.clock() if given is None else number_of(given, "until")
    return await find_jobs(visit.store, visit.project, filters, action, until)


async def find_jobs(
    store: Store, project: int, filters: JobFilters, action: str, until: int, *, size: int = WINDOW
) -> Selection:
    """Return the newest jobs that the filters find, that are in a state that the action is about, and that did not
    change after ``until``; at most ``size``."""
    stored = filters.stored
    states = tuple(state for state in stored.states if state in _STATES.get(action, stored.states))
    if not states:
        return Selection([], until)
    ends = [end for end in (stored.endts, until + 1) if end is not None]
    found = await store.jobs.window(project, stored._replace(states=states, endts=min(ends)), size=size)
    jobs = _of_whole_times(found.jobs) if found.more else found.jobs
    now = store.clock()
    keys = [job.key for job in jobs if filters.match(job, now)]
    return Selection(keys, until, jobs[-1].changed if found.more and jobs else None)


def _of_whole_times(jobs: Sequence[StoredJob]) -> Sequence[StoredJob]:
    """Return the jobs without those of the oldest time: others of that time are not among them."""
    return [job for job in jobs if job.changed > jobs[-1].changed] or jobs
