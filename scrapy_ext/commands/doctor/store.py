"""Checks of the database of a server on this machine: reachable, supported, and migrated."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scrapy_ext.commands.doctor.checking import SECONDS, Check, Finding, in_thread, ok, problem, warning
from scrapy_ext.commands.text import size
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.inspection import Inspected, of_database, of_file, supported_schemas

_SUBJECT: Final = "database"
_STANDBY: Final = "standby"
#: Seconds by which the clocks of a server and of its database may differ.
_DIFFERS: Final = 5.0
#: Bytes of indexes that need no room of their own.
_LARGE: Final = 500_000_000
_PAGE: Final = "docs/howto/operate-store.rst, Large collections on PostgreSQL"


def check(where: Path | DatabaseUrl) -> Check:
    """Return the check of a data folder or of a PostgreSQL database."""
    if isinstance(where, DatabaseUrl):
        return Check(_SUBJECT, lambda: _postgresql(where), 2 * SECONDS)
    return in_thread(_SUBJECT, lambda: _sqlite(where / FILE))


def _sqlite(file: Path) -> Iterator[Finding]:
    if not file.exists():
        yield ok(_SUBJECT, f"there is none in {file.parent} yet; it is made when data is stored")
        return
    try:
        found = of_file(file)
    except StoreError as error:
        yield _failure(error)
    except sqlite3.Error as error:
        remedy = "Check its owner and the disk; bring the data back with scrapy platform restore FILE."
        yield problem(_SUBJECT, f"{file} cannot be read: {error}", remedy)
    else:
        backup = f"scrapy platform backup --data {shlex.quote(str(file.parent))} FILE"
        yield _schema(f"{found.engine}, {file}", found, backup)


async def _postgresql(url: DatabaseUrl) -> list[Finding]:
    try:
        found = await of_database(url)
    except StoreError as error:
        return [_failure(error)]
    backup = f"scrapy platform backup --database {shlex.quote(str(url))} FILE"
    findings = [_schema(f"{found.engine}, {url}", found, backup)]
    if abs(found.ahead) > _DIFFERS:
        side = "ahead of" if found.ahead > 0 else "behind"
        text = f"the clock of the database is {abs(found.ahead):.0f} s {side} that of this machine"
        findings.append(warning("clock", text, "Synchronise both: timedatectl set-ntp true"))
    if not found.is_synced:
        text = f"{url} has fsync off: a power cut may lose data"
        findings.append(warning(_SUBJECT, text, "Set fsync = on in postgresql.conf."))
    findings += _buffers(found)
    if found.primary and found.is_replicated:
        findings.append(ok(_STANDBY, f"{found.primary} is the primary; a commit waits for a standby"))
    elif found.primary:
        text = f"{found.primary} is the primary; no commit waits for a standby: a failover loses the newest"
        findings.append(warning(_STANDBY, text, "Once it has one: ALTER SYSTEM SET synchronous_standby_names = '*'"))
    return findings


def _buffers(found: Inspected) -> Iterator[Finding]:
    """Yield a warning where the indexes of collections, whose pages are changed in no order, exceed the buffers."""
    if found.keys > max(found.buffers, _LARGE):
        text = (
            f"the indexes of collections have {size(found.keys)}, and shared_buffers {size(found.buffers)}: new "
            "records with random keys take several times as long as in small collections"
        )
        yield warning(_SUBJECT, text, f"Set shared_buffers to more in postgresql.conf: {_PAGE}")


def _failure(error: StoreError) -> Finding:
    """Return the finding of an error, whose last sentence is the remedy."""
    text, _, remedy = str(error).rpartition(". ")
    return problem(_SUBJECT, text, remedy)


def _schema(name: str, found: Inspected, backup: str) -> Finding:
    """Return the finding about the version of the schema."""
    (oldest, newest), present = supported_schemas(), found.schema
    if not present:
        return ok(_SUBJECT, f"{name} has no tables yet; the server makes them")
    if present > newest:
        text = f"{name} has schema version {present}, and this version of scrapy-ext supports {newest}"
        return problem(_SUBJECT, text, "pip install --upgrade scrapy-ext")
    if present < oldest:
        text = f"{name} has schema version {present}, of a development version, which cannot be migrated"
        return problem(_SUBJECT, text, "Use a new data directory, or a new database.")
    if present < newest:
        text = f"{name} has schema version {present}; the next start of a server migrates it to {newest}"
        return warning(_SUBJECT, text, f"Before that: {backup}")
    return ok(_SUBJECT, f"{name} has schema version {present}, the newest")
