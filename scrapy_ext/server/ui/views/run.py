"""``/ui/<project>/jobs/run``: a form that schedules a job, from the arguments of its spider as far as they are known.

``?spider=`` chooses a spider, and ``?again=`` fills the form from a job. Errors appear at their fields, and the input
is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform import jobs
from scrapy_ext.api.platform.argument_types import FIELD, argument_faults
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.versions import SpiderInfo, VersionState
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http.forms import own_key, run_metadata
from scrapy_ext.server.jobs.versions.runnable import check_new_job
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, run_key
from scrapy_ext.server.store.jobs.rows import StoredJob, arguments_of
from scrapy_ext.server.ui.argument_text import NOTHING_EARLIER, Earlier, text_of_arguments
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit, field_errors
from scrapy_ext.server.ui.run_arguments import Known, controls_of, earlier_runs, known_of, spiders_of
from scrapy_ext.server.ui.run_form import RunForm, of_form, run_fields, schedule_faults, tags_of_text
from scrapy_ext.server.ui.schedule_form import FormTask
from scrapy_ext.server.ui.views.periodic import schedule_of_task

#: Maximum number of spider names suggested.
_SPIDERS: Final = 500
_PRIORITIES: Final = {4: "highest", 3: "high", 2: "normal", 1: "low", 0: "lowest"}


async def _show(visit: Visit) -> Response:
    visit.require_write()
    again = visit.text("again")
    if not again:
        return await _form(visit, RunForm.new(visit.text("spider")))
    return await _form(visit, RunForm.of_job(await _source(visit, again)))


async def _source(visit: Visit, key: str) -> StoredJob:
    """Return the job that the form is filled from. A deleted one has no arguments any more."""
    found: JobKey = own_key(key, visit.project, "again")
    job = await visit.store.jobs.get(found)
    if job is None or job.state is jobs.JobState.DELETED:
        raise MissingError
    return job


async def _form(visit: Visit, form: RunForm, error: ContractError | None = None) -> Response:
    errors = field_errors(error) if error else {}
    stored = await _stored(visit, form)
    versions = await _versions(visit, stored.get("version"))
    gone = form.texts["version"] if form.texts["version"] not in versions else ""
    spiders = (await spiders_of(visit, form.texts["version"]))[:_SPIDERS]
    known = await known_of(visit, form.texts["spider"], spiders)
    earlier = known.earlier(arguments_of(stored)[0])
    controls = controls_of(known, form.values, earlier, form.further_names())
    return visit.rendered(
        "run.html",
        HTTPStatus.BAD_REQUEST if errors else HTTPStatus.OK,
        form=form,
        typed=form.texts,
        errors=errors,
        controls=controls,
        info=known.spider,
        # Only arguments are wrong: the code may accept them all the same.
        doubtful=bool(errors) and all(name.startswith(FIELD) for name in errors),
        runs=earlier_runs(known),
        names=await _names(visit, spiders),
        spiders=spiders,
        versions=versions,
        gone=gone,
        priorities=[(str(number), f"{number} ({name})") for number, name in _PRIORITIES.items()],
        units=[str(number) for number in range(jobs.MIN_UNITS, jobs.MAX_UNITS + 1)],
        now=visit.store.clock(),
    )


async def _names(visit: Visit, spiders: Sequence[SpiderInfo]) -> list[str]:
    if spiders:
        return [spider.name for spider in spiders]
    return [spider.name for spider in await visit.store.spiders.listed(visit.project, 0, _SPIDERS)]


async def _versions(visit: Visit, earlier: object) -> dict[str, str]:
    """Return the names of the versions that a job can run, with labels; the name "" stands for the current one.

    ``earlier``: the version of the job that the form is filled from.
    """
    listed = await visit.store.versions.listed(visit.project)
    ready = [each for each in listed if each.state is VersionState.READY]
    current = next((f"current ({each.version})" for each in ready if each.current), "current")
    labels = {each.version: each.version for each in ready}
    if isinstance(earlier, str) and earlier in labels:
        labels[earlier] = f"{earlier} (of the earlier job)"
    return {"": current, **labels}


async def _act(visit: Visit) -> Response:
    """Start the job, show the arguments of the chosen spider, or go on to a periodic job."""
    form, action = RunForm.submitted(visit.form), visit.form.get("action")
    if action == "show":
        return await _form(visit, form)
    try:
        if action == "schedule":
            return await _schedule(visit, form)
        key = await _run(visit, form)
    except ContractError as error:
        return await _form(visit, form, of_form(error, form))
    return visit.redirect(f"/ui/{key}", "again" if form.again else "scheduled")


async def _run(visit: Visit, form: RunForm) -> JobKey:
    """Start the job as ``run.json`` does; raises ``ContractError``."""
    spider, stored = form.texts["spider"], await _stored(visit, form)
    known = await known_of(visit, spider, await spiders_of(visit, form.texts["version"]))
    metadata, state = run_metadata(run_fields(form, stored, _earlier(visit, known, stored)))
    if state is jobs.JobState.PENDING:
        await check_new_job(visit.store, visit.services.environments, visit.project, spider, metadata)
    faults = list(argument_faults(known.arguments, metadata.get("spider_args") or {}))
    if faults and not visit.form.get("anyway"):
        raise ContractError(faults)
    job = NewJob(spider, state, metadata, run_key(spider, metadata))
    (added,) = await visit.store.jobs.add(visit.project, [job], visit.grant.name)
    if isinstance(added, DuplicateJobError):
        rule = f"is pending or running with these arguments already, as job {added.key}"
        raise refused("spider", rule, "Wait for it, stop it, or change the arguments.")
    return added


def _earlier(visit: Visit, known: Known, stored: Mapping[str, Any]) -> Earlier:
    """Return the values whose types the arguments keep; none for arguments that are to be sent as they are typed."""
    return NOTHING_EARLIER if visit.form.get("anyway") else known.earlier(arguments_of(stored)[0])


async def _stored(visit: Visit, form: RunForm) -> Mapping[str, Any]:
    """Return the metadata of the job that the form is filled from, with the values that the form hides."""
    return (await _source(visit, form.again)).metadata if form.again else {}


async def _schedule(visit: Visit, form: RunForm) -> Response:
    """Render the form of a periodic job with the spider, arguments, tags and priority of this one."""
    visit.require(Action.MANAGE)
    if faults := list(schedule_faults(form)):
        raise ContractError(faults)
    # Hidden values stay hidden, and the form of the periodic job asks for them.
    known = await known_of(visit, form.texts["spider"], [])
    earlier = _earlier(visit, known, await _stored(visit, form))
    arguments = form.arguments({"spider_args": form.values}, earlier)
    text = form.texts["cmd_args"] if form.is_script else text_of_arguments(arguments)
    task = FormTask(form.texts["spider"], form.texts["priority"], text, form.texts[JOB_WORKERS].strip())
    return await schedule_of_task(visit, task, tags_of_text(form.texts["tags"]))


PAGES: Final = (UiPage("/ui/{project:number}/jobs/run", "jobs", _show, _act, Action.RUN),)
