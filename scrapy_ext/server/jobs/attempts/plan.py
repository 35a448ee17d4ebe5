"""What a job is started with: settings, environment, script or spider, and its limits."""

from __future__ import annotations

import json
import re
import shlex
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
from scrapy_ext.jobprocess.messages import Launch
from scrapy_ext.server.jobs.versions.environments import Prepared
from scrapy_ext.server.jobs.versions.variables import job_environment, local_environment
from scrapy_ext.server.store.jobs.rows import StoredJob, needs_of

#: Where scripts are, in the folder of a project.
_SCRIPT_FOLDERS: Final = ("", "scripts", "bin")
#: Jobs stand back for the server that they report to.
NICE: Final = 5


class NoScriptError(Exception):
    """A project does not have the script; the message is for the job's log."""


class JobLimits(NamedTuple):
    """What a job may have: ``memory`` in bytes, ``seconds`` to run."""

    memory: int
    seconds: float | None


def settings_of(job: StoredJob, stored: Mapping[str, bytes]) -> dict[str, Any]:
    """The settings that go over those of the code: of all jobs of the project, over them those of the spider, over
    them those of the job. ``stored``: the project's settings on the platform, which anybody may have written."""
    of_spiders = _object(stored.get(SPIDER_SETTINGS))
    parts = (_object(stored.get(PROJECT_SETTINGS)), of_spiders.get(job.spider), job.metadata.get("job_settings"))
    merged: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, dict):
            merged.update(part)
    return {name: value for name, value in merged.items() if name not in RESERVED_SETTINGS}


def limits_of(job: StoredJob, settings: Mapping[str, Any], unit_memory: int, timeout: float | None) -> JobLimits:
    """The limits of a job. ``unit_memory``: MiB for each of its units; ``timeout``: seconds of jobs that set none."""
    units, _ = needs_of(job.metadata)
    try:
        seconds = float(settings.get(JOB_TIMEOUT) or 0) or timeout
    except (TypeError, ValueError):
        seconds = timeout
    return JobLimits(units * unit_memory * 2**20, seconds if seconds is None or seconds > 0 else timeout)


def launch_of(job: StoredJob, prepared: Prepared, settings: dict[str, Any], limits: JobLimits) -> Launch:
    """What the process is told; raises :class:`NoScriptError`."""
    if job.spider.startswith(SCRIPT):
        words = job.metadata.get("cmd_args")
        return Launch(
            script=str(_script(job.spider.removeprefix(SCRIPT), prepared)),
            words=_words(words) if isinstance(words, str) else [],
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


def environment_of(job: StoredJob, prepared: Prepared, url: str, token: str) -> dict[str, str]:
    """What the process finds in its environment: the server's, without its secrets, what the job asks for, and where
    the services are."""
    base = local_environment() if prepared.version == LOCAL else job_environment()
    asked = job.metadata.get("environment")
    given = {str(name): _text(value) for name, value in asked.items()} if isinstance(asked, dict) else {}
    services = {
        "PLATFORM_URL": url,
        "PLATFORM_API_KEY": token,
        "PLATFORM_PROJECT": str(job.key.project),
        "PLATFORM_JOB": str(job.key),
        "EXTRACT_API_URL": f"{url}/v1",
        "EXTRACT_API_KEY": token,
        # As the clients of the hosted platform read them.
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
    raise NoScriptError(f"There is no script {name!r} in this project: neither in its folder, nor in scripts or bin.")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # refused where it is scheduled; a client may have written it since
        return text.split()


def _text(value: Any) -> str:
    """A value as a spider argument or an environment variable has it."""
    return value if isinstance(value, str) else json.dumps(value)


def _object(stored: bytes | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(stored) if stored else None
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
