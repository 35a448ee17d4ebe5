"""``/ui/<project>/jobs/run``: a form that schedules a job. Errors appear at their fields, and the input is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from starlette.responses import Response

from scrapy_ext.api.platform import jobs
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.http.forms import Form, check_name, check_tags
from scrapy_ext.server.jobs.versions.runnable import check_spider
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, run_key
from scrapy_ext.server.ui.frame import UiPage, Visit, field_errors

T = TypeVar("T")

_FIELDS: Final = ("spider", "arguments", "priority", "units", "tags", "job_settings")
#: Maximum number of spider names suggested.
_SPIDERS: Final = 500
_PRIORITIES: Final = {4: "highest", 3: "high", 2: "normal", 1: "low", 0: "lowest"}


async def _show(visit: Visit) -> Response:
    visit.require_write()
    typed = dict.fromkeys(_FIELDS, "") | {"priority": str(jobs.DEFAULT_PRIORITY), "units": str(jobs.DEFAULT_UNITS)}
    return await _form(visit, typed | {"spider": visit.text("spider")})


async def _form(visit: Visit, typed: dict[str, str], errors: ContractError | None = None) -> Response:
    deployed = (await visit.store.versions.spiders(visit.project))[:_SPIDERS]
    known = [spider.name for spider in await visit.store.spiders.listed(visit.project, 0, _SPIDERS)]
    return visit.rendered(
        "run.html",
        400 if errors else 200,
        typed=typed,
        errors=field_errors(errors) if errors else {},
        spiders=[spider.name for spider in deployed] or known,
        deployed=deployed,
        priorities=[(str(number), f"{number} ({name})") for number, name in _PRIORITIES.items()],
        units=[str(number) for number in range(jobs.MIN_UNITS, jobs.MAX_UNITS + 1)],
    )


async def _run(visit: Visit) -> Response:
    form = visit.form
    try:
        job = _job(form)
        await check_spider(visit.store, visit.project, job.spider)
        (added,) = await visit.store.jobs.add(visit.project, [job], visit.grant.name)
        if isinstance(added, DuplicateJobError):
            rule = f"is pending or running with these arguments already, as job {added.key}"
            raise refused("spider", rule, "Wait for it, stop it, or change the arguments.")
    except ContractError as error:
        return await _form(visit, {name: form.get(name) or "" for name in _FIELDS}, error)
    return visit.redirect(f"/ui/{added}", "scheduled")


def _job(form: Form) -> NewJob:
    """Return the job of the form; raises ``ContractError`` with all violations."""
    wrong: list[Violation] = []

    def checked(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ContractError as error:
            wrong.extend(error.violations)
            return None

    spider = (form.get("spider") or "").strip()
    checked(lambda: check_name("spider", spider))
    arguments = checked(lambda: _arguments(form.get("arguments") or "")) or {}
    metadata: dict[str, Any] = {
        "spider_type": "manual",
        "priority": checked(
            lambda: form.number("priority", jobs.DEFAULT_PRIORITY, jobs.MIN_PRIORITY, jobs.MAX_PRIORITY)
        ),
        "units": checked(lambda: form.number("units", jobs.DEFAULT_UNITS, jobs.MIN_UNITS, jobs.MAX_UNITS)),
        "tags": checked(lambda: tags_of_text(form.get("tags") or "")),
    }
    if arguments:
        metadata["spider_args"] = arguments
    if settings := checked(lambda: _settings(form)):
        metadata["job_settings"] = settings
    if wrong:
        raise ContractError(wrong)
    return NewJob(spider, jobs.JobState.PENDING, metadata, run_key(spider, metadata))


def _settings(form: Form) -> dict[str, Any] | None:
    try:
        return form.object("job_settings")
    except ContractError as error:
        raise refused("job_settings", error.violations[0].rule, 'Write one JSON object, such as {"NAME": 1}.') from None


def _arguments(text: str) -> dict[str, str]:
    """Parse spider arguments, one ``name=value`` per line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name and not equals:
            continue
        rule, remedy = "", "Write one name=value per line."
        if not equals or not name:
            rule = f"has on line {number} no name=value, but {line[:60]!r}"
        elif name in jobs.RUN_PARAMETERS:
            rule, remedy = f"has on line {number} {name}, which is no argument", "Use the field of that name."
        elif name in found:
            rule = f"has {name} twice"
        if rule or "\0" in line:
            raise refused("arguments", rule or f"has on line {number} the character NUL", remedy)
        found[name] = value
    return found


def tags_of_text(text: str) -> tuple[str, ...]:
    """Parse tags separated by commas; raises ``ContractError``."""
    return check_tags("tags", list(dict.fromkeys(filter(None, (tag.strip() for tag in text.split(","))))))


PAGES: Final = (UiPage("/ui/{project:number}/jobs/run", "jobs", _show, _run, Action.RUN),)
