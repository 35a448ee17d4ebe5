"""Snapshots as files of a folder: the page, the screenshot, and a JSON file with the rest, which is written last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import msgspec

from scrapy_ext.api.platform.snapshots import Part, Snapshot, image_type

#: Characters of a name that every file system has.
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]")
_FORMATS: Final = frozenset({"html", "xml", "json", "txt"})


def write_files(folder: Path, id: str, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> list[Path]:
    """Write the files of a snapshot and return their paths; raises ``OSError``.

    Their names have the time, the error and the end of the ID: ``20260131-093000-KeyError-1a2b3c4d.html``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{_moment(snapshot.time)}-{_OTHER.sub('_', snapshot.error)[:60]}-{id.rpartition('-')[2]}"
    written = []
    for part, data in parts.items():
        written.append(folder / f"{name}.{_suffix(part, snapshot, data)}")
        written[-1].write_bytes(data)
    written.append(folder / f"{name}.snapshot.json")
    described = {
        key: value for key, value in msgspec.to_builtins(snapshot).items() if key not in ("page", "screenshot")
    }
    files = {part.value: path.name for part, path in zip(parts, written, strict=False)}
    written[-1].write_bytes(msgspec.json.format(msgspec.json.encode({**described, **files})) + b"\n")
    return written


def _moment(time: int) -> str:
    try:
        return datetime.fromtimestamp(time / 1000, timezone.utc).strftime("%Y%m%d-%H%M%S")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _suffix(part: Part, snapshot: Snapshot, data: bytes) -> str:
    if part is Part.PAGE:
        return snapshot.format if snapshot.format in _FORMATS else "txt"
    return (image_type(data) or "image/bin").partition("/")[2]
