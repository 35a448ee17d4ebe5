"""A store as one file, written atomically, and read without modification."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.errors import SchemaError, StoreError
from scrapy_ext.server.store.engine.interface import Engine
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine
from scrapy_ext.server.store.schema import migrate, migrations

_BESIDE: Final = ("", "-wal", "-shm")


@contextlib.asynccontextmanager
async def new_file(path: Path, now: int) -> AsyncIterator[Engine]:
    """Open an empty store that becomes the file when the block ends without an error. Raises :class:`StoreError`."""
    if not path.parent.is_dir():
        raise StoreError(f"There is no directory {path.parent}. Make it, or name another file.")
    part = path.with_name(path.name + ".part")
    await asyncio.to_thread(_remove, part)
    try:
        engine = await SqliteEngine.open(part)
        try:
            await engine.write(migrate, now)
            yield engine
        finally:
            await engine.close()
        await asyncio.to_thread(_settle, part, path)
    finally:
        await asyncio.to_thread(_remove, part)


@contextlib.asynccontextmanager
async def old_file(path: Path, now: int) -> AsyncIterator[Engine]:
    """Open the store in a file; one of an older version is migrated in a copy. Raises :class:`StoreError`."""
    version = await asyncio.to_thread(_version, path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".restore-") as folder:
        # Opening a database writes to it, but a backup must not change. The copy is a hard link where possible.
        copied = Path(folder) / path.name
        await asyncio.to_thread(shutil.copyfile, path, copied)
        engine = await SqliteEngine.open(copied)
        try:
            if version < migrations()[-1][0]:
                await engine.write(migrate, now)
            yield engine
        finally:
            await engine.close()


def _version(path: Path) -> int:
    if not path.exists():
        raise StoreError(f"{path} does not exist. Name a file written by scrapy platform backup.")
    if path.with_name(path.name + "-wal").exists():
        raise StoreError(f"{path} is in use. For a data directory, use scrapy platform migrate --from DIRECTORY.")
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as database:
            version: int = database.execute("SELECT max(version) FROM schema_version").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"{path} is not a backup ({error}). Name a file of scrapy platform backup.") from error
    newest = migrations()[-1][0]
    if version > newest:
        raise SchemaError(
            f"{path} has schema version {version}, but this scrapy-ext supports {newest}. Upgrade scrapy-ext."
        )
    return version


def _settle(part: Path, path: Path) -> None:
    for name in (part, part.parent):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if name == part:
            os.replace(part, path)


def _remove(part: Path) -> None:
    for suffix in _BESIDE:
        part.with_name(part.name + suffix).unlink(missing_ok=True)
