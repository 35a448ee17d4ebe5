"""Deployed versions of a project's code, and the arguments of its spiders. Not part of the hosted platform's API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from scrapy_ext.api.platform.keys import STEPS
from scrapy_ext.api.violations import Violation

#: The version for the server's own project folder.
LOCAL: Final = "local"
#: Maximum bytes of a version's archive.
MAX_ARCHIVE: Final = 50 * 1024 * 1024
#: Maximum characters of a version's requirements.
MAX_REQUIREMENTS: Final = 256 * 1024
#: Maximum bytes of the record of a spider.
MAX_SPIDER: Final = 64 * 1024
#: Number of runnable versions that are kept.
KEPT: Final = 20

_NAME: Final = re.compile(r"[\w.+!\-]{1,100}")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_MAX_MODULE: Final = 200
#: Maximum names in a warning.
_NAMED: Final = 10


class VersionState(str, Enum):
    """``uploaded``: being built and checked; ``ready``: runnable; ``failed``: ``message`` has the reason."""

    UPLOADED = "uploaded"
    READY = "ready"
    FAILED = "failed"


class SpiderArgument(msgspec.Struct, omit_defaults=True):
    """An argument of a spider's ``__init__``, with default and annotation as Python source."""

    name: str
    required: bool = False
    default: str | None = None
    annotation: str | None = None
    #: Its line in the docstring of the spider.
    help: str = ""


class SpiderInfo(msgspec.Struct, omit_defaults=True):
    """A spider of a version, or a script (``py:`` name). ``custom``: it accepts further arguments.

    ``kind`` is its class, and ``hidden`` are the classes of other spiders with its name, which no job runs.
    """

    name: str
    arguments: list[SpiderArgument] = []
    summary: str = ""
    custom: bool = True
    kind: str = ""
    hidden: list[str] = []


class SpiderList(msgspec.Struct):
    """The spiders of a project. ``unreadable``: modules that cannot be imported, each with its error, in a project
    whose other spiders run nevertheless."""

    spiders: list[SpiderInfo]
    unreadable: list[str] = []


class Version(msgspec.Struct, kw_only=True):
    """A deployed version.

    ``deploy_id`` counts the deploys of the project; ``created`` in milliseconds, ``size`` in bytes. ``message`` is the
    progress of the check, its error, or a warning about a version that is ready. ``spiders`` is None unless requested.
    """

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


def not_runnable(name: str, state: VersionState) -> str:
    """Return the sentences about a version that is not ready."""
    remedy = "Wait until it is checked." if state is VersionState.UPLOADED else "Deploy it again."
    return f"Version {name} is {state.value}: no job can run it. {remedy}"


def version_faults(name: str) -> list[Violation]:
    if name == LOCAL:
        return [
            Violation(
                "version",
                f"cannot be {LOCAL}, which stands for the server's own folder",
                "Write another name, such as 1.0.",
            )
        ]
    if not _NAME.fullmatch(name) or name in STEPS:
        rule = f"must be 1 to 100 letters, digits or characters of ._+!-, got {name[:60]!r}"
        return [Violation("version", rule, "Choose another name, such as 1.0.")]
    return []


def warning_of(spiders: Sequence[SpiderInfo], unreadable: Sequence[str] = ()) -> str:
    """Return sentences about modules that cannot be imported, and spiders whose name others have too; "" for none."""
    return " ".join(filter(None, (left_out(unreadable), _warning_of_names(spiders))))


def left_out(unreadable: Sequence[str]) -> str:
    """Return a sentence about the modules of a project that cannot be imported; "" for none."""
    if not unreadable:
        return ""
    more = f"; and {len(unreadable) - _NAMED} more" if len(unreadable) > _NAMED else ""
    return f"modules that cannot be imported, whose spiders are left out: {'; '.join(unreadable[:_NAMED])}{more}."


def _warning_of_names(spiders: Sequence[SpiderInfo]) -> str:
    twins = [spider for spider in spiders if spider.hidden]
    if not twins:
        return ""
    named = "; ".join(f"{each.name}: {', '.join(each.hidden)} and {each.kind}" for each in twins[:_NAMED])
    more = f"; and {len(twins) - _NAMED} more" if len(twins) > _NAMED else ""
    return f"several spiders have the same name, and jobs run the last of them ({named}{more}). Rename the others."


def settings_faults(module: str) -> list[Violation]:
    """Return the violations of a settings module's name."""
    if len(module) > _MAX_MODULE or not _MODULE.fullmatch(module):
        rule = f"must be the dotted name of a module, got {module[:60]!r}"
        return [Violation("settings", rule, "Send the value of default in scrapy.cfg, such as shop.settings.")]
    return []
