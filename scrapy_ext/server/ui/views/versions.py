"""``/ui/<project>/versions``: the deployed versions of a project, a form to upload one, and the running jobs;
``/<deploy>``: one version with its spiders."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.versions import MAX_ARCHIVE, Version, VersionState, not_runnable
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.deploying import Upload
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.store.version_rows import ActiveJobs, StoredVersion
from scrapy_ext.server.store.versions import InUseError
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit, field_errors

#: Running jobs that are shown.
_JOBS: Final = 100
#: Texts of the form for a new version, beside its files.
_TEXTS: Final = ("version", "settings")


class _Row(NamedTuple):
    version: Version
    jobs: ActiveJobs
    may_become_current: bool
    #: True for a version that is older than the current one.
    is_earlier: bool
    may_be_deleted: bool


def _rows(versions: list[Version], jobs: dict[int, ActiveJobs]) -> list[_Row]:
    current = next((each.deploy_id for each in versions if each.current), 0)
    ready = {each.version for each in versions if each.state is VersionState.READY}
    rows = []
    for each in versions:
        is_ready = each.state is VersionState.READY
        active = jobs.get(each.deploy_id, ActiveJobs())
        # A deletion removes all deploys of a name.
        is_free = not any(active) and (is_ready or each.version not in ready)
        deletable = is_free and (not each.current or ready == {each.version})
        rows.append(_Row(each, active, is_ready and not each.current, each.deploy_id < current, deletable))
    return rows


async def _list(visit: Visit) -> Response:
    return await _listed(visit, dict.fromkeys(_TEXTS, ""), {})


async def _listed(
    visit: Visit, given: Mapping[str, str], errors: Mapping[str, str], status: int = HTTPStatus.OK
) -> Response:
    """Render the list; ``given`` and ``errors``: texts and errors of the form for a new version."""
    deploys = visit.services.deploys
    store, project = visit.store.versions, visit.project
    versions, jobs = await store.listed(project), await store.active_jobs(project)
    return visit.rendered(
        "versions.html",
        status,
        given=given,
        errors=errors,
        most=MAX_ARCHIVE // 2**20,
        takes_code=deploys is not None and not deploys.refusal(visit.grant, visit.grant.name),
        rows=_rows(versions, jobs),
        checking=any(each.state is VersionState.UPLOADED for each in versions),
        running=await store.running_jobs(project, _JOBS),
        running_total=sum(each.running for each in jobs.values()),
        schedules=(await visit.store.periodic.page(project, 0, 0)).total,
        now=visit.store.clock(),
    )


async def _upload(visit: Visit) -> Response:
    """Store an uploaded archive as a version, and start its check."""
    deploys, upload = visit.services.deploys, visit.upload
    assert deploys is not None  # noqa: S101 - otherwise no form with an archive is read
    try:
        if not isinstance(upload, Upload):
            raise upload or refused("archive", "is required", "Choose a file.")
        taken = await deploys.take(visit.project, upload, visit.grant.name)
    except ContractError as error:
        given = {name: visit.form.get(name) or "" for name in _TEXTS}
        return await _listed(visit, given, field_errors(error), error.status)
    await visit.note(ChangeEvents.VERSION_DEPLOYED, version=taken.shown.version)
    return visit.redirect(f"/ui/{visit.project}/versions/{taken.shown.deploy_id}", "version-uploaded")


async def _one(visit: Visit) -> Response:
    store, project = visit.store.versions, visit.project
    version = await _refreshed(visit)
    rows = _rows(await store.listed(project), await store.active_jobs(project))
    row = next((each for each in rows if each.version.deploy_id == version.deploy_id), None)
    if row is None:
        raise MissingError
    is_ready = version.state is VersionState.READY
    running = await store.running_jobs(project, _JOBS, version.version) if is_ready else []
    return visit.rendered(
        "version.html",
        row=row,
        version=version,
        spiders=await store.spiders(project, version.version) if is_ready else [],
        running=running,
        now=visit.store.clock(),
    )


async def _refreshed(visit: Visit) -> Version:
    """Return the version of the path with the stage of its check."""
    found, deploys = await _stored(visit), visit.services.deploys
    return found.shown if deploys is None else await deploys.deployments.refreshed(visit.project, found)


async def _stored(visit: Visit) -> StoredVersion:
    found = await visit.store.versions.get(visit.project, visit.request.path_params["deploy"])
    if found is None:
        raise MissingError
    return found


async def _act(visit: Visit) -> Response:
    """Make a version the current one, or delete it."""
    store, project, version = visit.store.versions, visit.project, (await _stored(visit)).shown
    every = f"/ui/{project}/versions"
    match visit.form.get("action"):
        case "use":
            if not await store.make_current(project, version.version):
                raise Refusal(409, not_runnable(version.version, version.state))
            await visit.note(ChangeEvents.VERSION_CHOSEN, version=version.version)
            return visit.redirect(f"{every}/{version.deploy_id}", "version-chosen")
        case "delete":
            try:
                found = await store.remove(project, version.version)
            except InUseError as error:
                raise Refusal(409, f"Version {version.version} stays: {error}.") from None
            if not found:
                raise MissingError
            await visit.note(ChangeEvents.VERSION_REMOVED, version=version.version)
            return visit.removed(every)
        case _:
            raise refused("action", "must be use or delete", "Use the buttons of the page.")


_PATH: Final = "/ui/{project:number}/versions"
PAGES: Final = (
    UiPage(_PATH, "versions", _list, _upload, takes_archive=True),
    UiPage(f"{_PATH}/{{deploy:number}}", "versions", _one, _act),
)
LINKS: Final = (Link("versions", "Versions", "/ui/{project}/versions", under="settings"),)
