"""Targets of a deployment in ``scrapy.cfg`` and ``scrapinghub.yml``, as in the tools of the hosted platform.

Also the default name of a version.
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

from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform.versions import version_faults
from scrapy_ext.commands.subcommand import CommandError

_AUTOMATIC: Final = ("auto", "git")
_SECONDS: Final = 10


def version_name(folder: Path, wanted: str | None) -> str:
    """Return the wanted name; for ``auto`` or None the output of ``git describe``, else the time (UTC)."""
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
#: Key of a section for the package of the project's settings; options of the file have no capital letters.
_PACKAGE: Final = "PACKAGE"
#: Keys of ``scrapinghub.yml`` about the hosted platform's own machines.
_IGNORED: Final = ("stack", "stacks", "image", "images")


@dataclass
class Target:
    """Platform, project, key, version and requirements of a deployment, None if not given, and notes for the user."""

    url: str | None = None
    project: int | None = None
    key: str | None = None
    version: str | None = None
    requirements: str | None = None
    notes: list[str] = field(default_factory=list)


def find_target(folder: Path, name: str | None, project: int | None = None) -> Target:
    """Return the target of a name, or the default one, with another ``project`` if given.

    Raises :class:`CommandError`.
    """
    document = _yml(folder / YML)
    sections = _cfg(folder / CFG)
    wanted = name or DEFAULT
    projects = _mapping(document, "projects", "project")
    target = Target(version=_text(document, "version"), requirements=_requirements(document))
    if wanted in projects:
        _of_yml(target, wanted, projects[wanted], document)
    elif wanted in sections:
        _of_cfg(target, wanted, sections[wanted] if project is None else {**sections[wanted], "project": str(project)})
    elif name is not None and _is_number(name):
        _of_yml(target, wanted, name, document)
        base = sections.get(DEFAULT, {})
        target.url = target.url or _address(base.get("url"), wanted)
        target.key = target.key or base.get("username")
    elif name is not None:
        known = ", ".join(sorted({*map(str, projects), *sections})) or "[deploy:NAME] in scrapy.cfg for a new one"
        raise CommandError(f"there is no target {name} in {CFG} or {YML}; use {known}")
    if ignored := [each for each in _IGNORED if each in document]:
        target.notes.append(f"{YML}: {', '.join(ignored)} ignored; jobs run with the packages of the server")
    if isinstance(document.get("requirements"), Mapping) and document["requirements"].get("eggs"):
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
        document = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise CommandError(f"{path.name} cannot be read: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CommandError(f"{path.name} must be a mapping, such as project: 7")
    return document


def _cfg(path: Path) -> dict[str, dict[str, str]]:
    """Return the sections ``[deploy]`` (as ``default``) and ``[deploy:NAME]``, which inherit its options."""
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
        if section["project"] != section.get(_PACKAGE):  # Else `scrapy startproject` wrote it.
            target.notes.append(
                f"{CFG}: project = {section['project'][:60]} of [deploy] ignored, because it is not a number"
            )
        return
    target.project = _number(section["project"], name)


def _of_yml(target: Target, name: str, project: object, document: Mapping[str, Any]) -> None:
    """Fill a target of ``scrapinghub.yml``.

    ``project`` is a number, ``ENDPOINT/NUMBER``, or a mapping of ``id``, ``endpoint``, ``apikey`` and ``requirements``.
    """
    more = project if isinstance(project, Mapping) else {"id": project}
    endpoint, _, number = str(more.get("id", "")).rpartition("/")
    endpoint = str(more.get("endpoint") or endpoint or DEFAULT)
    target.project = _number(number, name)
    endpoints = _mapping(document, "endpoints", "endpoint")
    if endpoint in endpoints:
        target.url = _address(str(endpoints[endpoint]), name)
    elif endpoint != DEFAULT:
        raise CommandError(
            f"{YML}: target {name} names the endpoint {without_user(endpoint)}, which is not defined; add it to "
            "endpoints"
        )
    key = _mapping(document, "apikeys", "apikey").get(str(more.get("apikey") or endpoint))
    target.key = None if key is None else str(key)
    target.requirements = _requirements(more) or target.requirements
    if any(each in more for each in _IGNORED):
        target.notes.append(f"{YML}: stack or image of target {name} ignored")


def _mapping(document: Mapping[str, Any], several: str, one: str) -> dict[str, Any]:
    """Return values by name, with the value of ``one`` as ``default``."""
    found = document.get(several) or {}
    if not isinstance(found, Mapping):
        raise CommandError(f"{YML}: {several} must be a mapping; write {DEFAULT}: VALUE below it")
    return {
        **({DEFAULT: document[one]} if one in document else {}),
        **{str(name): value for name, value in found.items()},
    }


def _requirements(document: Mapping[str, Any]) -> str | None:
    found = document.get("requirements")
    if isinstance(found, Mapping) and isinstance(found.get("file"), str):
        file: str = found["file"]
        return file
    return _text(document, "requirements_file")


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    return None if value is None else str(value)


def _number(text: str, name: str) -> int:
    if _is_number(text):
        return int(text)
    raise CommandError(
        f"the project of target {name} must be a number, got {text[:60]!r}. Write the number of the project on that "
        "platform, such as project = 1"
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) is not None


def _address(url: str | None, name: str) -> str | None:
    """Return the URL of a platform, from the URL of its API."""
    if not url:
        return None
    if not re.match(r"https?://[^/@]+(/|$)", url):
        raise CommandError(f"the URL of target {name} must begin with http:// or https:// and contain no key")
    return re.sub(r"/(api/?)?(scrapyd/?)?$", "", url)
