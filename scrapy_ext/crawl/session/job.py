"""The crawl's job record: created or resumed when the crawl starts, updated, and finished with the close reason."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import FINISHED, MAX_NAME, JobState, is_name
from scrapy_ext.api.violations import ContractError, encodable
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import Gone, NotFound
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)


class CrawlJob(msgspec.Struct, frozen=True):
    """Job of the platform that this crawl runs. ``resumed``: it existed before, and may have run. ``begun``: it has not
    run before, as far as its node knows. ``former``: its metadata before it was resumed. ``attempt``: that of this
    process in a group of workers, whose records are streams of their own; None: it is the only worker. ``worker``: its
    number in the group, for people."""

    key: JobKey
    resumed: bool
    begun: bool = False
    former: Mapping[str, Any] = msgspec.field(default_factory=dict)
    attempt: int | None = None
    worker: int = 0

    @property
    def may_have_records(self) -> bool:
        """Return true if the indexes of this process may not begin at 0: it continues after those of former ones."""
        return self.resumed and self.attempt is None


class JobOverError(Exception):
    """The job has ended before this worker could join those that run it."""

    def __init__(self, key: JobKey) -> None:
        super().__init__(f"Job {key} has ended before this worker could join the others. Start a new job")


async def running_job(client: PlatformClient, text: str) -> CrawlJob:
    """Return a job that other workers run; raises :class:`JobOverError`."""
    key = JobKey.parse(text)
    metadata = await _metadata(client, key)
    if metadata.get("state") != JobState.RUNNING.value:
        raise JobOverError(key)
    return CrawlJob(key, resumed=True, former=metadata)


async def open_job(
    client: PlatformClient, project: int, spider_name: str, resume: str | None, *, is_shared: bool = False
) -> CrawlJob:
    """Create a running job, or resume the job ``resume``. ``is_shared``: it may run in other workers of its group.

    Raises :class:`SettingError` for a job that cannot be resumed or a spider that cannot have one, and errors of the
    client.
    """
    if not is_name(spider_name) or encodable(spider_name) != spider_name:
        rule = f"must be 1 to {MAX_NAME} characters that UTF-8 can hold, got {spider_name!r:.80}"
        raise SettingError("The name of the spider", rule, "Rename it.")
    if resume is None:
        pushed = await client.jobq.push(project, spider_name, state=JobState.RUNNING.value, spider_type="manual")
        return CrawlJob(JobKey.parse(pushed.key), resumed=False, begun=True)
    try:
        key = JobKey.parse(resume, "PLATFORM_JOB")
    except ContractError as error:
        raise SettingError("PLATFORM_JOB", "is not a job", str(error)) from None
    metadata = await _metadata(client, key)
    if not metadata or metadata.get("state") == JobState.DELETED.value:
        raise SettingError("PLATFORM_JOB", f"names {key}, which does not exist", "Leave it out to start a new job.")
    if metadata.get("spider") not in (None, spider_name):
        raise SettingError(
            "PLATFORM_JOB", f"names {key}, a job of spider {metadata['spider']!r}", f"Name a job of {spider_name!r}."
        )
    if metadata.get("state") == JobState.FINISHED.value and metadata.get("close_reason") == FINISHED:
        raise SettingError("PLATFORM_JOB", f"names {key}, which is finished", "Leave it out to start a new job.")
    if "attempt" in metadata and metadata.get("state") == JobState.RUNNING.value:
        # A node has started it, and makes sure that no other process runs it.
        return CrawlJob(key, resumed=True, begun=metadata["attempt"] == 1, former=metadata)
    if metadata.get("state") == JobState.RUNNING.value and is_shared:
        return CrawlJob(key, resumed=True, former=metadata)
    if metadata.get("state") == JobState.RUNNING.value:
        logger.info("Job %s is listed as running, as after a crash. If its process is alive, this one replaces it", key)
    else:
        await client.jobq.update(key.project, key, state=JobState.RUNNING.value)
    return CrawlJob(key, resumed=True, former=metadata)


class JobFile:
    """File of a job directory (JOBDIR) with the key of the job that its crawl has begun."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._path = Path(directory, "platform-job")

    def read(self) -> str | None:
        try:
            return self._path.read_text().strip() or None
        except FileNotFoundError:
            return None

    def warn_of_other_queue(self) -> None:
        """Warn of a queue of Scrapy's own scheduler in the directory, which the frontier does not read."""
        queue = Path(self.directory, "requests.queue")
        if not self._path.exists() and queue.is_dir() and any(queue.iterdir()):
            logger.warning(
                "JOBDIR %s has requests of a crawl with Scrapy's own scheduler. The frontier does not read them, and "
                "this crawl starts from the beginning. To resume the other one, set FRONTIER_ENABLED = False until it "
                "is finished; to start anew without this warning, use another JOBDIR",
                self.directory,
            )

    def write(self, key: JobKey) -> None:
        """Keep the key of another job from now on."""
        beside = self._path.with_suffix(".new")
        beside.write_text(f"{key}\n")
        beside.replace(self._path)


async def open_job_of(client: PlatformClient, project: int, spider_name: str, file: JobFile) -> CrawlJob:
    """Resume the job of a job directory, or create one that the next crawl resumes.

    Raises :class:`SettingError` if that is a job of another spider which can be resumed: a new key would replace its.
    """
    key = file.read()
    if key is not None:
        other = await _spider_to_resume(client, key)
        if other not in (None, spider_name):
            raise SettingError(
                "JOBDIR",
                f"{file.directory!r} belongs to the unfinished job {key} of spider {other!r}",
                f"Name a folder for {spider_name!r} alone, or finish or delete that job first.",
            )
        try:
            return await open_job(client, project, spider_name, key)
        except SettingError as error:
            logger.info("A new job starts, since the job of %s cannot be resumed: %s", file.directory, error)
    job = await open_job(client, project, spider_name, None)
    try:
        file.write(job.key)
    except OSError as error:
        raise SettingError("JOBDIR", f"cannot be written ({error})", "Name a folder that can be.") from None
    return job


def deleted(key: JobKey) -> Gone:
    """Return the error of a job that was deleted while it ran."""
    return Gone(f"Job {key} was deleted, so nothing more of it is stored. Start a new job")


async def is_over(client: PlatformClient, job: CrawlJob) -> bool:
    """Return true if the job is finished; raises :class:`Gone` if it was deleted."""
    state = (await _metadata(client, job.key, state=JobState.DELETED.value)).get("state")
    if state == JobState.DELETED.value:
        raise deleted(job.key)
    return state != JobState.RUNNING.value


async def cannot_be_resumed(client: PlatformClient, job: CrawlJob) -> bool:
    """Return true if the job is deleted, or finished so that :func:`open_job` does not resume it."""
    return not _is_resumable(await _metadata(client, job.key, state=JobState.DELETED.value))


def _is_resumable(metadata: Mapping[str, Any]) -> bool:
    state, reason = metadata.get("state"), metadata.get("close_reason")
    return state != JobState.DELETED.value and (state != JobState.FINISHED.value or reason != FINISHED)


async def _spider_to_resume(client: PlatformClient, text: str) -> str | None:
    """Return the spider of a job that can be resumed; None if there is no such job."""
    try:
        metadata = await _metadata(client, JobKey.parse(text))
    except ContractError:
        return None
    return metadata.get("spider") if _is_resumable(metadata) else None


async def _metadata(client: PlatformClient, key: JobKey, **missing: str) -> dict[str, Any]:
    """Return the metadata of a job, or ``missing`` if it does not exist."""
    try:
        return await client.jobs.metadata(key)
    except NotFound:
        return dict(missing)
