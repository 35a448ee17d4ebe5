"""Folders of environments: access of jobs to them, and removal of those that no version needs or that were not used for
longest.

Several databases may use one folder of environments. A file in an environment names each database that has needed it,
and the contents of the version. Each server removes environments of its own database only.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path
from typing import Final

from scrapy_ext.jobprocess import file_trees
from scrapy_ext.server.jobs.confining import User
from scrapy_ext.server.jobs.versions.building import IN_USE, LOCK, PART, READY, WORK, locked

#: Seconds of one build, including the wait for another build of the same environment.
BUILD_SECONDS: Final = 900.0
#: Prefix of the files that mark an environment as needed.
_NEEDED: Final = "needed-"
#: Seconds for which a prepared environment is kept although nothing runs in it yet.
_FRESH: Final = 300.0
#: Maximum seconds of a removal, which the next one continues.
_TRIM_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


def mark_used(home: Path) -> Path | None:
    """Record the use of an environment, and return it; None if it is not complete."""
    try:
        os.utime(home / READY)
    except OSError:
        return None
    return home


def mark_needed(home: Path, owner: str, contents: str) -> None:
    """Record that a version of a database needs an environment. The database and the contents are hashes."""
    (home / f"{_NEEDED}{owner}-{contents}").touch()


def needs_of(cache: Path, owner: str) -> dict[Path, set[str]]:
    """Return the contents for which a database has needed each environment."""
    prefix = f"{_NEEDED}{owner}-"
    needs: dict[Path, set[str]] = {}
    for mark in cache.glob(f"*/{prefix}*"):
        needs.setdefault(mark.parent, set()).add(mark.name.removeprefix(prefix))
    return needs


def remove_unneeded(home: Path, owner: str, unneeded: set[str]) -> bool:
    """Remove the marks of contents that a database no longer has, with the environment if no other mark is left.

    Return true when the environment was removed. One that is used, or was used just now, stays for the next call.
    """
    doomed = {f"{_NEEDED}{owner}-{contents}" for contents in unneeded}
    marks = {mark.name for mark in home.glob(f"{_NEEDED}*")}
    if marks - doomed:
        for name in marks & doomed:
            (home / name).unlink(missing_ok=True)
        return False
    with contextlib.suppress(OSError):
        if time.time() - (home / READY).stat().st_mtime <= _FRESH:
            return False
    _remove(home, time.monotonic() + _TRIM_SECONDS)
    return not home.exists()


def grant_access(home: Path, user: User | None) -> None:
    """Allow the processes of one project to read its environment, and to write its working folder."""
    if os.geteuid() != 0:
        return
    owner, group = (0, 0) if user is None else user
    os.chown(home, 0, group)
    home.chmod(0o750)
    if (home / WORK).stat().st_uid != owner:
        for folder, name in file_trees.walk(home / WORK):
            os.chown(name, owner, group, dir_fd=folder, follow_symlinks=False)
        os.chown(home / WORK, owner, group)


def trim(cache: Path, keep: int) -> None:
    """Remove the environments that were not used for longest, except ``keep``, and incomplete ones.

    Failures are logged; the next call retries them.
    """
    now, deadline = time.time(), time.monotonic() + _TRIM_SECONDS
    folders = [path for path in cache.iterdir() if path.is_dir()]
    used: dict[Path, float] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            if not folder.name.endswith(PART):
                used[folder] = (folder / READY).stat().st_mtime
    last_used = sorted(used, key=lambda home: used[home])
    old = [home for home in last_used[: max(len(used) - keep, 0)] if now - used[home] > _FRESH]
    for folder in (*old, *(folder for folder in folders if folder not in used)):
        _remove(folder, deadline)
    for path in cache.glob(f"*{PART}"):  # archives
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > 2 * BUILD_SECONDS:
                path.unlink()


def _remove(folder: Path, deadline: float) -> None:
    """Remove a complete or incomplete environment, unless it is being built or used."""
    lock = folder.with_name(folder.name.removesuffix(PART) + LOCK)
    try:
        with locked(lock, wait=False), contextlib.ExitStack() as held:
            with contextlib.suppress(FileNotFoundError):
                running = held.enter_context((folder / IN_USE).open("rb"))
                fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / READY).unlink(missing_ok=True)  # it no longer counts as complete
            file_trees.remove(folder, deadline)
            lock.unlink()
    except BlockingIOError:
        return
    except OSError as error:
        logger.warning(
            "The folder %s, which no job needs any more, could not be removed: %s. It is retried after the "
            "next build. If this stays, remove the folder.",
            *(folder, error),
        )
