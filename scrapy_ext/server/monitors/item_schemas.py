"""Comparison of a job's items with a JSON Schema, in processes that can be killed (``schema_worker``).

Time is shared: an item, a job and a project have processor time each, so that neither one schema nor many keep the
monitors of others waiting. Messages name paths and rules, not values of items: these are removed with the job, while
messages may stay.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.problems import ExtractionError
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
from scrapy_ext.api.platform.schema_bounds import schema_faults
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.computing.processes import BrokenProcessError, Processes
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.monitors.schema_worker import ITEM_SECONDS, SchemaOutcome, SchemaTask
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import DamagedRecordsError
from scrapy_ext.server.store.records.records import Span

#: Processor time for all schemas of one job, in seconds, after which the rest of its items is left out.
JOB_SECONDS: Final = 60.0
#: Processor time that a project has saved up at most, in seconds, and what it gets for each second.
PROJECT_SECONDS: Final = 120.0
PROJECT_SHARE: Final = 0.1
#: Items of one block of a sample, which is read together.
_BLOCK: Final = 50
#: Items and bytes that a process is given at once.
_AT_ONCE: Final = 1000
_MANY_BYTES: Final = 1024 * 1024
#: Seconds in which a process must answer beyond its processor time, on a machine with much else to do.
_GRACE: Final = 60.0
#: Processes at once; a project beside one that has them all gets one more. Requests that wait for them, and seconds.
_PROCESSES: Final = 1
_WAITING: Final = 1000
_WAIT: Final = 600.0
_MODULE: Final = "scrapy_ext.server.monitors.schema_worker"
_REMEDY: Final = "Correct the schema; https://json-schema.org has the rules."
_SIMPLER: Final = "Make the schema simpler."
_ITEM_FAULT: Final = f"needs more than {ITEM_SECONDS:g} s of processor time for one item"


class Unmatched(Exception):  # noqa: N818 - an answer, not a failure
    """Items cannot be compared with a schema; the message has the reason."""


class Allowance:
    """The processor time that a project has saved up for its schemas, and what a job has of it."""

    def __init__(self, project: ProjectTime, seconds: float = JOB_SECONDS) -> None:
        self._project = project
        self._seconds = seconds

    @property
    def left(self) -> float:
        return max(min(self._seconds, self._project.left), 0.0)

    def spend(self, seconds: float) -> None:
        self._seconds -= seconds
        self._project.spend(seconds)

    @property
    def reason(self) -> str:
        """The reason when no time is left."""
        owner = "the schemas of this job" if self._seconds <= 0 else "the schemas of this project lately"
        return f"{owner} have used up their processor time; lower the sample or make them simpler"


class ProjectTime:
    """The processor time of a project: a bucket that fills again by :data:`PROJECT_SHARE`."""

    def __init__(self) -> None:
        self._saved = PROJECT_SECONDS
        self._at = time.monotonic()

    @property
    def left(self) -> float:
        now = time.monotonic()
        self._saved = min(self._saved + (now - self._at) * PROJECT_SHARE, PROJECT_SECONDS)
        self._at = now
        return self._saved

    def spend(self, seconds: float) -> None:
        self._saved = self.left - seconds


class ItemSchemas:
    """The processes that compare items with schemas. End it with :meth:`stop`."""

    def __init__(self) -> None:
        self._processes = Processes(_MODULE, _PROCESSES)
        self._permits = FairSemaphore("schemas", _PROCESSES, _WAITING, _WAIT, reserve=True)
        self._projects: dict[int, ProjectTime] = {}

    async def stop(self) -> None:
        await self._processes.stop()

    async def check(self, schema: dict[str, Any] | bool, project: int | None) -> None:
        """Raise :class:`ContractError` for what is no schema, and for one that takes too long to read."""
        try:
            outcome = await self._run(SchemaTask(msgspec.json.encode(schema)), project or 0)
        except Unmatched as reason:
            raise refused("schema", str(reason), _SIMPLER) from None
        if outcome.fault is not None:
            raise refused("schema", f"is not a JSON Schema: {outcome.fault}", _REMEDY)

    def allowance(self, project: int) -> Allowance:
        """Return the processor time for the schemas of one job, or of one preview, of a project."""
        for other in [number for number, each in self._projects.items() if each.left >= PROJECT_SECONDS]:
            del self._projects[other]
        return Allowance(self._projects.setdefault(project, ProjectTime()))

    async def result(
        self, store: Store, monitor: NewMonitor, key: JobKey, total: int, allowance: Allowance
    ) -> CheckResult:
        """Compare a sample of a job's items, or all, with the schema of a monitor."""
        assert monitor.schema is not None  # noqa: S101 - the caller has looked
        faults = list(schema_faults(monitor.schema))
        if faults:  # It was added before there was this bound.
            return _nothing(f"the schema {faults[0].rule}")
        if not total:
            return _nothing("the job has no items")
        comparison = _Comparison(key)
        try:
            blocks = _blocks(store, key, total, monitor.sample)
            await self._compare(comparison, msgspec.json.encode(monitor.schema), blocks, allowance)
        except ContractError as error:
            return _nothing(error.violations[0].rule)
        except DamagedRecordsError as error:  # other jobs are checked
            return _nothing(str(error))
        except Unmatched as reason:
            if not comparison.failed:
                return _nothing(str(reason))
        return comparison.result(total)

    async def _compare(
        self,
        comparison: _Comparison,
        schema: bytes,
        blocks: AsyncIterator[tuple[int, list[bytes]]],
        allowance: Allowance,
    ) -> None:
        async for start, lines in blocks:
            at = 0
            while at < len(lines):
                if not allowance.left:
                    if comparison.checked:
                        return
                    raise Unmatched(allowance.reason)
                task = SchemaTask(schema, _some(lines, at), allowance.left, comparison.room)
                outcome = await self._run(task, comparison.key.project, allowance)
                if outcome.fault is not None:
                    raise Unmatched(outcome.fault)
                comparison.add(start + at, outcome)
                at += outcome.checked

    async def _run(self, task: SchemaTask, project: int, allowance: Allowance | None = None) -> SchemaOutcome:
        """Give a task to a process; raises :class:`Unmatched`, and :class:`Refusal` (503) when none becomes free."""
        body, spent = msgspec.msgpack.encode(task), ITEM_SECONDS
        try:
            async with self._permits.permit(str(project), str(project)):
                answer = await self._processes.run(body, task.seconds + ITEM_SECONDS + _GRACE)
            outcome = msgspec.msgpack.decode(answer, type=SchemaOutcome)
            spent = outcome.seconds
            return outcome
        except BrokenProcessError as error:
            raise Unmatched(_ITEM_FAULT if error.is_out_of_time else "needs too much memory for one item") from None
        except TIMEOUT_ERRORS:
            raise Unmatched("takes too long to compare") from None
        except ExtractionError as error:
            raise Refusal(503, str(error), {"Retry-After": "10"}) from None
        finally:
            if allowance is not None:
                allowance.spend(spent)


def _some(lines: Sequence[bytes], first: int) -> list[bytes]:
    """Return the lines from ``first`` on that are worth one message."""
    chosen, size = [], 0
    for line in lines[first : first + _AT_ONCE]:
        chosen.append(bytes(line))
        size += len(line)
        if size > _MANY_BYTES:
            break
    return chosen


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
    def __init__(self, key: JobKey) -> None:
        self.key = key
        self.checked = 0
        self.failed = 0
        self._items: list[FailingItem] = []

    @property
    def room(self) -> int:
        """The number of failing items that may still be named."""
        return MAX_FAILING - len(self._items)

    def add(self, start: int, outcome: SchemaOutcome) -> None:
        self.checked += outcome.checked
        self.failed += outcome.failed
        self._items += [FailingItem(str(self.key.entity(start + place)), paths) for place, paths in outcome.items]

    def result(self, total: int) -> CheckResult:
        checked = f"{self.checked} of {total} items" if self.checked < total else f"all {total} items"
        if not self.failed:
            sentence = f"{SCHEMA_CHECK}: {checked} match"
        else:
            first = self._items[0]
            sentence = f"{SCHEMA_CHECK}: {self.failed} of {self.checked} items do not match"
            sentence += f", first item {first.key}: {'; '.join(first.paths[:2])}"
        return CheckResult(
            check=SCHEMA_CHECK,
            outcome=FAILED if self.failed else PASSED,
            sentence=sentence,
            value=self.failed,
            limit=0,
            items=self._items,
        )
