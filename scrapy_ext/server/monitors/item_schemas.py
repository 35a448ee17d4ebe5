"""Comparison of a job's items with a JSON Schema, by jsonschema-rs.

A schema comes from users. It refers to nothing outside itself, so that neither files nor other hosts are read, and
its patterns are matched in linear time. Messages name paths and rules, not values of items: these are removed with the
job, while messages may stay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import (
    FAILED,
    MAX_FAILING,
    NOT_APPLICABLE,
    PASSED,
    SCHEMA_CHECK,
    CheckResult,
    FailingItem,
    NewMonitor,
)
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.records.records import Span

#: Items of one block of a sample, which is read together.
_BLOCK: Final = 50
#: Seconds for one job, after which the rest of its items is left out.
LONGEST: Final = 120.0
_LONGEST_TEXT: Final = 200
_REMEDY: Final = "Correct the schema; https://json-schema.org has the rules."


def _offline(uri: str) -> Any:
    raise ValueError(f"{uri[:100]} is outside the schema")


def check_schema(schema: dict[str, Any] | bool) -> Any:
    """Return a validator of a schema; raise :class:`ContractError` when it is none."""
    import jsonschema_rs  # with the first schema: few servers need it

    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_offline, mask="the value", pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise refused("schema", f"is not a JSON Schema: {_one_line(str(error))}", _REMEDY) from None


async def schema_result(store: Store, monitor: NewMonitor, key: JobKey, total: int) -> CheckResult:
    """Compare a sample of a job's items, or all, with the schema of a monitor."""
    assert monitor.schema is not None  # noqa: S101 - the caller has looked
    try:
        comparison = _Comparison(await asyncio.to_thread(check_schema, monitor.schema))
        if not total:
            return _nothing("the job has no items")
        async for slices in _blocks(store, key, total, monitor.sample):
            await comparison.add(key, *slices)
            if comparison.is_late:
                break
    except ContractError as error:
        return _nothing(error.violations[0].rule)
    return comparison.result(total)


def _nothing(reason: str) -> CheckResult:
    return CheckResult(check=SCHEMA_CHECK, outcome=NOT_APPLICABLE, sentence=f"{SCHEMA_CHECK}: {reason}")


async def _blocks(store: Store, key: JobKey, total: int, sample: int) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield first index and lines of blocks: of all items, or of as many as the sample, evenly spread."""
    indexes = await store.items.indexes(key)
    spans: list[tuple[int, int | None]] = [(indexes.start, None)]
    if 0 < sample < total:
        count = -(-sample // _BLOCK)
        sizes = [min(_BLOCK, sample - place * _BLOCK) for place in range(count)]
        gap = (len(indexes) - sum(sizes)) / max(count - 1, 1)
        spans, start = [], float(indexes.start)
        for size in sizes:
            spans.append((int(start), size))
            start += size + gap
    for first, most in spans:
        span = Span(key.project, key.spider, key.job)
        async for part in store.items.scan(span, (key.spider, key.job, first), most):
            yield part.start, part.lines


class _Comparison:
    def __init__(self, validator: Any) -> None:
        self._validator = validator
        self._began = time.monotonic()
        self._checked = 0
        self._failed = 0
        self._items: list[FailingItem] = []

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self._began > LONGEST

    async def add(self, key: JobKey, start: int, lines: Sequence[bytes]) -> None:
        await asyncio.to_thread(self._add, key, start, lines)

    def _add(self, key: JobKey, start: int, lines: Sequence[bytes]) -> None:
        for place, line in enumerate(lines):
            item = msgspec.json.decode(line)
            self._checked += 1
            if self._validator.is_valid(item):
                continue
            self._failed += 1
            if len(self._items) < MAX_FAILING:
                self._items.append(FailingItem(str(key.entity(start + place)), _paths(self._validator, item)))

    def result(self, total: int) -> CheckResult:
        checked = f"{self._checked} of {total} items" if self._checked < total else f"all {total} items"
        if not self._failed:
            sentence = f"{SCHEMA_CHECK}: {checked} match"
        else:
            first = self._items[0]
            sentence = f"{SCHEMA_CHECK}: {self._failed} of {self._checked} items do not match"
            sentence += f", first item {first.key}: {'; '.join(first.paths[:2])}"
        return CheckResult(
            check=SCHEMA_CHECK,
            outcome=FAILED if self._failed else PASSED,
            sentence=sentence,
            value=self._failed,
            limit=0,
            items=self._items,
        )


def _paths(validator: Any, item: Any) -> list[str]:
    """Return the first paths of an item that do not match, with the broken rule."""
    paths = []
    for error in validator.iter_errors(item):
        path = "/".join(str(each) for each in error.instance_path)
        paths.append(_one_line(f"/{path}: {error.message}"))
        if len(paths) == MAX_FAILING:
            break
    return paths


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"
