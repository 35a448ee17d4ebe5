"""The process that compares items with JSON Schemas (``computing.worker``), by jsonschema-rs.

A schema comes from users. It refers to nothing outside itself, so that neither files nor other hosts are read, and
its patterns are matched in linear time. The library keeps the interpreter's lock, so a thread would stop the server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform.monitors import MAX_FAILING
from scrapy_ext.server.computing.worker import limit_time, serve

#: Processor time for one item, or for reading a schema, in seconds. The process ends when one needs more.
ITEM_SECONDS: Final = 1.0
#: Address space, in bytes.
_MEMORY: Final = 1024**3
#: Bytes of the program of one pattern.
_PATTERN: Final = 1024**2
#: As for the processes of jobs: below the server, and not below crawls. On a machine that these fill, a process at 10
#: gets some 3 % of a core, and alerts come many minutes late.
_NICENESS: Final = 5
_LONGEST_TEXT: Final = 200


class SchemaTask(msgspec.Struct, frozen=True, array_like=True):
    """Items to compare with a schema, both as JSON. Work ends after ``seconds`` of processor time."""

    schema: bytes
    lines: list[bytes] = []
    seconds: float = ITEM_SECONDS
    #: Failing items to name.
    most: int = 0


class SchemaOutcome(msgspec.Struct, frozen=True, array_like=True):
    #: Why the schema is none; None: it is one.
    fault: str | None = None
    checked: int = 0
    failed: int = 0
    #: Place in the task, and paths with the broken rule, of the first failing items.
    items: list[tuple[int, list[str]]] = []
    #: Processor time that was used.
    seconds: float = 0.0


def _offline(uri: str) -> Any:
    raise ValueError(f"{without_user(uri)[:100]} is outside the schema: put it into $defs")


@lru_cache(4)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        msgspec.json.decode(schema),
        retriever=_offline,
        mask="the value",
        pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN),
    )


def _load(_body: bytes) -> None:
    import jsonschema_rs  # noqa: F401 - before the process is confined

    os.nice(_NICENESS)


def _answer(body: bytes) -> bytes:
    task = msgspec.msgpack.decode(body, type=SchemaTask)
    began = time.process_time()
    limit_time(ITEM_SECONDS)
    try:
        validator = _validator(task.schema)
    except Exception as error:  # the library has many kinds
        return msgspec.msgpack.encode(SchemaOutcome(fault=_one_line(str(error))))
    finally:
        limit_time(0)
    checked, failed, items = 0, 0, list[tuple[int, list[str]]]()
    for place, line in enumerate(task.lines):
        limit_time(ITEM_SECONDS)
        paths = _paths(validator, line)
        checked += 1
        failed += bool(paths)
        if paths and len(items) < task.most:
            items.append((place, paths))
        if time.process_time() - began > task.seconds:
            break
    limit_time(0)
    return msgspec.msgpack.encode(SchemaOutcome(None, checked, failed, items, time.process_time() - began))


def _paths(validator: Any, line: bytes) -> list[str]:
    """Return the first paths of an item that do not match, with the broken rule; of one that matches, none."""
    try:
        item = msgspec.json.decode(line)
        return [] if validator.is_valid(item) else list(_first_paths(validator, item))
    except (RecursionError, ValueError):
        return ["/: is nested too deeply to be compared"]


def _first_paths(validator: Any, item: object) -> Iterator[str]:
    for place, error in enumerate(validator.iter_errors(item)):
        if place == MAX_FAILING:
            return
        path = "/".join(str(each) for each in error.instance_path)
        yield _one_line(f"/{path}: {error.message}")


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


if __name__ == "__main__":
    serve(_answer, _load, memory=_MEMORY)
