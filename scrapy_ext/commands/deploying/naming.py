"""The name of a version that was not given one."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Final

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
