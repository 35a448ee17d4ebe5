"""Targets of a deployment in ``scrapy.cfg`` and ``scrapinghub.yml``, as the tools of the hosted platform have them.

And the name of a version that was not given one.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scrapy_ext.api.platform.versions import version_faults
from scrapy_ext.commands.subcommand import CommandError

_AUTOMATIC: Final = ("auto", "git")
_SECONDS: Final = 10


def version_name(folder: Path, wanted: str | None) -> str:
    """The name that is wanted; for ``auto`` (or none) what git says of the folder, else the time (UTC)."""
    if wanted is not None and wanted.lower() not in _AUTOMATIC:
        if faults := version_faults(wanted):
            raise CommandError(str(faults[0]))
        return wanted
    return _of_git(folder) or time.strftime("%Y%m%d-%H%M%S", time.gmtime())


def _of_git(folder: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--tags", "--dirty"],  # noqa: S607 - the user's own git
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name = re.sub(r"[^\w.+-]+", "-", done.stdout.decode(errors="replace").strip())[:100]
    return name if done.returncode == 0 and name and not version_faults(name) else ""


CFG: Final = "scrapy.cfg"
YML: Final = "scrapinghub.yml"
DEFAULT: Final = "default"
#: Key of a section for the package that the settings of the project are in; no option of the file has a capital.
_PACKAGE: Final = "PACKAGE"
#: What in ``scrapinghub.yml`` is about the hosted platform's own machines.
_IGNORED: Final = ("stack", "stacks", "image", "images")


@dataclass
class Target:
    """Where to deploy and what; None where nothing says it. ``notes`` are told to who deploys."""

    url: str | None = None
    project: int | None = None
    key: str | None = None
    version: str | None = None
    requirements: str | None = None
    notes: list[str] = field(default_factory=list)


def find_target(folder: Path, name: str | None, project: int | None = None) -> Target:
    """The target of a name, or the default one, for another ``project`` if that is given.

    Raises :class:`CommandError`.
    """
    told = _yml(folder / YML)
    sections = _cfg(folder / CFG)
    wanted = name or DEFAULT
    projects = _mapping(told, "projects", "project")
    target = Target(version=_text(told, "version"), requirements=_requirements(told))
    if wanted in projects:
        _of_yml(target, wanted, projects[wanted], told)
    elif wanted in sections:
        _of_cfg(target, wanted, sections[wanted] if project is None else {**sections[wanted], "project": str(project)})
    elif name is not None and _is_number(name):
        _of_yml(target, wanted, name, told)
        base = sections.get(DEFAULT, {})
        target.url = target.url or _address(base.get("url"), wanted)
        target.key = target.key or base.get("username")
    elif name is not None:
        known = ", ".join(sorted({*map(str, projects), *sections})) or "none"
        raise CommandError(f"there is no target {name} in {CFG} or {YML}; those that are there: {known}")
    if ignored := [each for each in _IGNORED if each in told]:
        target.notes.append(f"{YML}: {', '.join(ignored)} ignored; jobs run with the packages of the server")
    if isinstance(told.get("requirements"), Mapping) and told["requirements"].get("eggs"):
        target.notes.append(f"{YML}: requirements.eggs ignored; name the packages in the requirements file")
    return target


def _yml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        import yaml
    except ImportError:
        raise CommandError(f'reading {path.name} needs PyYAML: pip install "scrapy-ext[deploy]"') from None
    try:
        told = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise CommandError(f"{path.name} cannot be read: {error}") from None
    if told is None:
        return {}
    if not isinstance(told, dict):
        raise CommandError(f"{path.name} must have names with values, such as project: 7")
    return told


def _cfg(path: Path) -> dict[str, dict[str, str]]:
    """The sections ``[deploy]`` (as ``default``) and ``[deploy:NAME]``, which take what they lack from the first."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CommandError(f"{path.name} cannot be read: {error}") from None
    base = dict(parser.items("deploy")) if parser.has_section("deploy") else {}
    if base:
        base[_PACKAGE] = parser.get("settings", "default", fallback="").partition(".")[0]
    found = {DEFAULT: base} if base else {}
    for section in parser.sections():
        if section.startswith("deploy:"):
            found[section.removeprefix("deploy:").strip()] = {**base, **dict(parser.items(section))}
    return found


def _of_cfg(target: Target, name: str, section: Mapping[str, str]) -> None:
    target.url = _address(section.get("url"), name)
    target.key = section.get("username")
    target.version = section.get("version") or target.version
    if "project" not in section:
        return
    if name == DEFAULT and not target.url and not _is_number(section["project"]):
        if section["project"] != section.get(_PACKAGE):  # else `scrapy startproject` has written it
            target.notes.append(f"{CFG}: project = {section['project'][:60]} of [deploy] ignored, as it is no number")
        return
    target.project = _number(section["project"], name)


def _of_yml(target: Target, name: str, project: Any, told: Mapping[str, Any]) -> None:
    """``project`` is a number, ``ENDPOINT/NUMBER``, or has ``id``, ``endpoint``, ``apikey`` and ``requirements``."""
    more = project if isinstance(project, Mapping) else {"id": project}
    endpoint, _, number = str(more.get("id", "")).rpartition("/")
    endpoint = str(more.get("endpoint") or endpoint or DEFAULT)
    target.project = _number(number, name)
    endpoints = _mapping(told, "endpoints", "endpoint")
    if endpoint in endpoints:
        target.url = _address(str(endpoints[endpoint]), name)
    elif endpoint != DEFAULT:
        raise CommandError(f"{YML}: target {name} names the endpoint {endpoint}, and endpoints has no such name")
    key = _mapping(told, "apikeys", "apikey").get(str(more.get("apikey") or endpoint))
    target.key = None if key is None else str(key)
    target.requirements = _requirements(more) or target.requirements
    if any(each in more for each in _IGNORED):
        target.notes.append(f"{YML}: what target {name} says of stack or image is ignored")


def _mapping(told: Mapping[str, Any], several: str, one: str) -> dict[str, Any]:
    """Values by name, and the one without a name as ``default``."""
    found = told.get(several) or {}
    if not isinstance(found, Mapping):
        raise CommandError(f"{YML}: {several} must have names with values, such as {DEFAULT}: …")
    return {**({DEFAULT: told[one]} if one in told else {}), **{str(name): value for name, value in found.items()}}


def _requirements(told: Mapping[str, Any]) -> str | None:
    found = told.get("requirements")
    if isinstance(found, Mapping) and isinstance(found.get("file"), str):
        file: str = found["file"]
        return file
    return _text(told, "requirements_file")


def _text(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    return None if value is None else str(value)


def _number(text: str, name: str) -> int:
    if _is_number(text):
        return int(text)
    raise CommandError(
        f"the project of target {name} must be a number, got {text[:60]!r}. Write that of the project on the platform "
        "there, such as project = 1"
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) is not None


def _address(url: str | None, name: str) -> str | None:
    """The address of a platform, from that of its API."""
    if not url:
        return None
    if not re.match(r"https?://[^/@]+(/|$)", url):
        raise CommandError(f"the address of target {name} must be http:// or https:// and have no key in it")
    return re.sub(r"/(api/?)?(scrapyd/?)?$", "", url)
