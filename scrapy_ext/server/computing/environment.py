"""The environment of processes that handle data of others, also for what is imported where no such process can run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_KEPT: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|LD_LIBRARY_PATH"
    r"|XDG_\w+|FONTCONFIG_\w+|DBUS_SESSION_BUS_ADDRESS|PLAYWRIGHT_BROWSERS_PATH"
    r"|PYTHON\w*|VIRTUAL_ENV|COVERAGE_\w+"
)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for processes that handle untrusted data: without the server's keys."""
    return {name: value for name, value in environ.items() if _KEPT.fullmatch(name.upper())}
