"""Deployed versions of a project's code, and what its spiders take. Not part of the hosted platform's API."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import msgspec

from scrapy_ext.api.violations import Violation

#: The version that is the project's folder itself, where the server was started in one.
LOCAL: Final = "local"
#: Bytes of one version's archive.
MAX_ARCHIVE: Final = 50 * 1024 * 1024
#: Characters of the requirements of a version.
MAX_REQUIREMENTS: Final = 256 * 1024
#: Versions that are kept, of those that jobs can run.
KEPT: Final = 20

_NAME: Final = re.compile(r"[\w.+!\-]{1,100}")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_MAX_MODULE: Final = 200


class VersionState(str, Enum):
    """``uploaded``: being built and looked at; ``ready``: jobs can run it; ``failed``: ``message`` says why."""

    UPLOADED = "uploaded"
    READY = "ready"
    FAILED = "failed"


class SpiderArgument(msgspec.Struct, omit_defaults=True):
    """An argument that a spider's ``__init__`` names. ``default`` and ``annotation`` as Python writes them."""

    name: str
    required: bool = False
    default: str | None = None
    annotation: str | None = None


class SpiderInfo(msgspec.Struct, omit_defaults=True):
    """A spider of a version, or a script (its name begins with ``py:``). ``custom``: it takes other arguments too."""

    name: str
    arguments: list[SpiderArgument] = []
    summary: str = ""
    custom: bool = True
    kind: str = ""


class Version(msgspec.Struct, kw_only=True):
    """A deployed version. ``deploy_id`` counts the deploys of the project; ``created`` in milliseconds, ``size`` in
    bytes. ``message`` is how far the check is, or why it failed. ``spiders`` is None where it was not asked for."""

    version: str
    deploy_id: int
    state: VersionState
    message: str
    current: bool
    created: int
    created_by: str
    size: int
    sha256: str
    format: str
    requirements: str
    spiders: list[SpiderInfo] | None = None


class Versions(msgspec.Struct):
    """The versions of a project, the newest first."""

    versions: list[Version]


def version_faults(name: str) -> list[Violation]:
    """What is wrong with the name of a version."""
    if name == LOCAL:
        return [Violation("version", f"cannot be {LOCAL}, which stands for the server's own folder", "Choose another.")]
    if not _NAME.fullmatch(name) or name in (".", ".."):
        rule = f"must be 1 to 100 letters, digits or characters of ._+!-, got {name[:60]!r}"
        return [Violation("version", rule, "Choose another name, such as 1.0.")]
    return []


def settings_faults(module: str) -> list[Violation]:
    """What is wrong with the name of a settings module."""
    if len(module) > _MAX_MODULE or not _MODULE.fullmatch(module):
        rule = f"must be the dotted name of a module, got {module[:60]!r}"
        return [Violation("settings", rule, "Send the value of default in scrapy.cfg, such as shop.settings.")]
    return []
