"""Settings, environment, program and limits of a job's process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import (
    JOB_TIMEOUT,
    PROJECT_SETTINGS,
    RESERVED_SETTINGS,
    SCRIPT,
    SCRIPT_NAME,
    SPIDER_SETTINGS,
)
from scrapy_ext.api.platform.versions import LOCAL
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING, Bounds
from scrapy_ext.jobprocess.messages import Launch
from scrapy_ext.server.jobs.confining import words_of
from scrapy_ext.server.jobs.versions.environments import Prepared
from scrapy_ext.server.jobs.versions.variables import job_environment, local_environment
from scrapy_ext.server.store.jobs.rows import StoredJob, needs_of, workers_of

#: Folders of scripts within a project.
_SCRIPT_FOLDERS: Final = ("", "scripts", "bin")
#: Niceness of jobs, so that the server has precedence.
NICE: Final = 5


class NoScriptError(Exception):
    """The project has no such script; the message is logged to the job."""


class JobLimits(NamedTuple):
    """Limits of a job: memory in bytes, and seconds to run."""

    memory: int
    seconds: float | None

    def after(self, seconds: float) -> JobLimits:
        """Return the limits of a job that has run for some seconds."""
        return self if self.seconds is None else self._replace(seconds=max(self.seconds - seconds, 0.0))


def settings_of(job: StoredJob, stored: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the settings over those of the code: of the project, of the spider and of the job, the last with the
    highest priority. ``stored``: the settings of the project, to which clients may have set any JSON."""
    of_spiders = _object(stored.get(SPIDER_SETTINGS))
    parts = (_object(stored.get(PROJECT_SETTINGS)), of_spiders.get(job.spider), job.metadata.get("job_settings"))
    merged: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, dict):
            merged.update(part)
    return {name: value for name, value in merged.items() if name not in RESERVED_SETTINGS}


def group_settings_of(job: StoredJob) -> dict[str, Any]:
    """Return the settings of a worker of a job with several."""
    bounds = workers_of(job.metadata) or Bounds(1, 1)
    return {GROUP_SETTING: bounds.text}


def running_seconds(job: StoredJob, now: int) -> float:
    """Return for how long a running job has run, by the clock of the server."""
    began = job.metadata.get("running_time")
    return max(now - began, 0) / 1000 if isinstance(began, int) else 0.0


def limits_of(job: StoredJob, settings: Mapping[str, Any], unit_memory: int, timeout: float | None) -> JobLimits:
    """Return the limits of a job. ``unit_memory``: MiB per unit; ``timeout``: default in seconds."""
    units, _ = needs_of(job.metadata)
    try:
        seconds = float(settings.get(JOB_TIMEOUT) or 0) or timeout
    except (TypeError, ValueError):
        seconds = timeout
    return JobLimits(units * unit_memory * 2**20, seconds if seconds is None or seconds > 0 else timeout)


def launch_of(job: StoredJob, prepared: Prepared, settings: dict[str, Any], limits: JobLimits) -> Launch:
    """Return the program of a job's process; raise :class:`NoScriptError`."""
    if job.spider.startswith(SCRIPT):
        # Invalid quoting is refused by the scheduling API, but clients may change the metadata.
        words = job.metadata.get("cmd_args")
        return Launch(
            script=str(_script(job.spider.removeprefix(SCRIPT), prepared)),
            words=words_of(words) if isinstance(words, str) else [],
            nice=NICE,
        )
    arguments = job.metadata.get("spider_args")
    return Launch(
        spider=job.spider,
        arguments={name: _text(value) for name, value in arguments.items()} if isinstance(arguments, dict) else {},
        settings=settings,
        memory=limits.memory // 2**20,
        nice=NICE,
    )


def environment_of(
    job: StoredJob, prepared: Prepared, url: str, token: str, *, opentelemetry: bool = False
) -> dict[str, str]:
    """Return the environment of a job's process: the server's without its secrets, the job's own variables, and the
    URLs and keys of the services."""
    base = local_environment() if prepared.version == LOCAL else job_environment(opentelemetry=opentelemetry)
    own = job.metadata.get("environment")
    given = {str(name): _text(value) for name, value in own.items()} if isinstance(own, dict) else {}
    services = {
        "PLATFORM_URL": url,
        "PLATFORM_API_KEY": token,
        "PLATFORM_PROJECT": str(job.key.project),
        "PLATFORM_JOB": str(job.key),
        "EXTRACT_API_URL": f"{url}/v1",
        "EXTRACT_API_KEY": token,
        # For clients of the hosted platform.
        "SHUB_JOBKEY": str(job.key),
        "SHUB_APIURL": f"{url}/api/",
        "SHUB_STORAGE": f"{url}/",
        "SHUB_JOBQ": f"{url}/",
        "SH_APIKEY": token,
    }
    whole = {**base, **given, **services, "PYTHONUNBUFFERED": "1"}
    return {name: value for name, value in whole.items() if _can_be_set(name, value)}


def _can_be_set(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in value


def _script(name: str, prepared: Prepared) -> Path:
    if re.fullmatch(SCRIPT_NAME, name) is None:
        raise NoScriptError(f"{name!r} cannot be the name of a script: it must be that of a file, without a folder.")
    folders = [prepared.directory / folder for folder in _SCRIPT_FOLDERS]
    for folder in [prepared.scripts, *folders] if prepared.scripts is not None else folders:
        if (folder / name).is_file():
            return folder / name
    raise NoScriptError(
        f"There is no script {name!r} in this project: neither in its folder, nor in scripts or bin. Deploy a "
        "version that has it, or correct the name."
    )


def _text(value: object) -> str:
    """Encode a value as a spider argument or an environment variable."""
    return value if isinstance(value, str) else json.dumps(value)


def _object(stored: bytes | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(stored) if stored else None
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
