"""Environment variables: those of this process, and those of the file ``.env`` of the project.

The file lies in the folder of ``scrapy.cfg``, or in the current folder without a project; no folder above is searched.
Without a project, it must belong to this user: in a folder that others can write to, theirs could name an address to
which keys of the environment are sent. In a project, Scrapy runs the code that lies there anyway.
Variables of the process win, also empty ones. Of the file, only the names that this package knows are used, and it
changes nothing in the environment of this process or of those that it starts. A job that a platform has started gets
all it needs from there, so that its process does not read the file.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from scrapy.utils.conf import closest_scrapy_cfg

logger = logging.getLogger(__name__)

NAME: Final = ".env"
#: Variable that a platform sets in the process of a job.
_OF_A_JOB: Final = "SHUB_JOBKEY"
#: A longer file is another kind of file.
_MAX_BYTES: Final = 1024 * 1024


class DotenvError(ValueError):
    """A ``.env`` that cannot be used. The message has the place and the rule, and never a value."""

    def __init__(self, path: Path, rule: str, remedy: str) -> None:
        super().__init__(f"{path} {rule}. {remedy}")
        self.path, self.rule, self.remedy = path, rule, remedy


def dotenv_file() -> Path | None:
    """Return the path of the file; None if there is none, or if this is the process of a job."""
    if os.environ.get(_OF_A_JOB):
        return None
    try:
        folder, is_project = _folder(os.getcwd())
        path = folder / NAME
        # A folder of this name is a virtual environment.
        if not path.is_file() or not (is_project or _is_own(path)):
            return None
    except OSError:  # the current folder was removed
        return None
    return path


def _is_own(path: Path) -> bool:
    return not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid()


def names_in(path: Path) -> list[str]:
    """Return the names of all variables of a file that was read."""
    from dotenv import dotenv_values  # as below

    return list(dotenv_values(path, interpolate=False, encoding="utf-8-sig"))


def from_dotenv(names: Collection[str]) -> Mapping[str, str]:
    """Return the variables of the file with these names; raises :class:`DotenvError`."""
    path = dotenv_file()
    if path is None:
        return {}
    try:
        status = path.stat()
    except OSError:  # it was removed meanwhile
        return {}
    return _read(path, status.st_mtime_ns, status.st_size, frozenset(names))


@lru_cache(maxsize=8)
def _folder(current: str) -> tuple[Path, bool]:
    """Return the folder of the file, and whether it is that of a project."""
    found = closest_scrapy_cfg(current)
    return (Path(found).absolute().parent, True) if found else (Path(current), False)


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int, size: int, names: frozenset[str]) -> dict[str, str]:
    if size > _MAX_BYTES:
        raise DotenvError(path, f"has over {_MAX_BYTES} bytes", "Keep only variables in it.")
    # Imported with the file: most projects have none.
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DotenvError(path, "is not UTF-8 text", "Save it as UTF-8.") from None
    except OSError as error:
        logger.warning("%s is not read: %s", path, error.strerror)
        return {}
    for statement in parse_stream(io.StringIO(text)):
        if statement.error:
            _refuse(path, statement.original.line, statement.original.string, names)
    logging.getLogger("dotenv.main").addFilter(_is_not_about_syntax)
    values = dotenv_values(stream=io.StringIO(text))
    return {name: value for name, value in values.items() if name in names and value is not None}


def _refuse(path: Path, line: int, text: str, names: Collection[str]) -> None:
    """Raise :class:`DotenvError` for a malformed line that is about one of these names; warn of another one."""
    # The statement may begin with empty lines and comments.
    line += len(text) - len(text.lstrip("\n"))
    if any(name in text for name in names):
        raise DotenvError(path, f"has a malformed line {line}", 'Write NAME=VALUE, or NAME="VALUE" with both quotes.')
    logger.warning('%s has a malformed line %d, which is ignored. Write NAME=VALUE, or NAME="VALUE"', path, line)


def _is_not_about_syntax(record: logging.LogRecord) -> bool:
    """Return false for the warning of python-dotenv of a malformed line, which is reported here."""
    return "could not parse" not in str(record.msg)
