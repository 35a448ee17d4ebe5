"""Loop that delivers finished jobs by the rules, on one server of a database at a time.

Steps of a delivery, of which each may be the last before a crash:

1. A row in ``delivery_attempts`` names a new folder, which no other delivery uses.
2. The objects are written, each whole or not at all.
3. The manifest ``job.json`` is created, after a check that the records are unchanged and the lease is held.
4. One transaction adds the rows of the delivery, under the lease, if the records are still unchanged.
5. An activity message counts the rows of some deliveries that no other message counts, in one transaction with a mark.

After a crash before step 4, the next search finds the job again, and delivers it to another folder. The first one is
removed once its lease has been expired for :data:`GRACE`, when no request of its process can be under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from scrapy_ext.api.platform.deliveries import MANIFEST, DeliveryRule, job_folder
from scrapy_ext.api.platform.formats import Format
from scrapy_ext.api.platform.rules import rule_in_words
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import elapsing, run_together
from scrapy_ext.formats import Compression, MissingLibraryError, Schema, check_installed
from scrapy_ext.server.delivery import manifest as manifests
from scrapy_ext.server.delivery.manifest import Manifest
from scrapy_ext.server.delivery.targets import Target, TargetError, check_target, create_folder, open_target, root_of
from scrapy_ext.server.delivery.writing import Upload
from scrapy_ext.server.loops import Loop, leased
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.deliveries import (
    Attempt,
    ChangedError,
    Delivered,
    DoneDelivery,
    NewDelivery,
    RuleOverError,
)
from scrapy_ext.server.store.fencing import DURATION, Lease, LeaseLostError
from scrapy_ext.server.store.rules.selection import START, Match, Position

#: Seconds between two searches for jobs to deliver.
INTERVAL: Final = 60.0
#: Milliseconds from the expiry of a lease to the removal of what its deliveries have left.
GRACE: Final = 600_000
#: Jobs of a rule that are delivered at once, and rules: a slow target holds up its own rule alone.
_AT_ONCE: Final = 3
_RULES_AT_ONCE: Final = 4
#: Seconds after which a rule begins no further job in a run, so that the other rules have their turn.
TURN: Final = 60.0
_LEASE: Final = "delivery"

logger = logging.getLogger(__name__)


@dataclass
class _Turn:
    """The work of a rule in one run, until a time; ``done`` is the number of its deliveries."""

    rule: DeliveryRule
    target: Target
    lease: Lease
    until: float
    done: int = 0

    @property
    def is_over(self) -> bool:
        return elapsing() > self.until


class Deliverer:
    """Deliveries of a store to allowed targets; other targets are refused."""

    def __init__(
        self,
        store: Store,
        targets: Sequence[str],
        *,
        interval: float = INTERVAL,
        duration: int = DURATION,
        grace: int = GRACE,
        turn: float = TURN,
        opened: Callable[[str], Target] = open_target,
    ) -> None:
        self._store = store
        self._targets = targets
        self._interval = interval
        self._duration = duration
        self._grace = grace
        self._turn = turn
        #: Of two reports at once, both could count the same deliveries.
        self._reporting = asyncio.Lock()
        self._opened = opened

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""

        async def act() -> None:
            while await self.run_due():
                pass  # what the rules had no time for

        await Loop("deliveries", act, self._interval, self._store.deliveries.changed).run()

    async def run_due(self) -> int:
        """Deliver all due jobs, unless another server does; return the number of deliveries."""
        deliveries = self._store.deliveries
        rules = await deliveries.enabled()
        if not rules and not await deliveries.dead(self._grace) and not await deliveries.has_unreported():
            return 0
        async with leased(self._store, _LEASE, deliveries.renew, self._duration) as lease:
            if lease is None:
                return 0
            await self._report(lease)
            before, left = deliveries.delivered.jobs, iter(rules)

            async def some() -> None:
                for rule in left:
                    await self._apply(rule, lease)

            await run_together(self._remove_dead(lease), *(some() for _ in range(min(_RULES_AT_ONCE, len(rules)))))
            return deliveries.delivered.jobs - before

    async def _report(self, lease: Lease) -> None:
        async with self._reporting:
            await self._store.deliveries.report(lease)

    async def _remove_dead(self, lease: Lease) -> None:
        """Remove the objects of deliveries whose server died, or whose target failed.

        A target that fails is left alone until the next run: one that does not answer takes minutes for each delivery.
        """
        failed = set[str]()
        for attempt in await self._store.deliveries.dead(self._grace):
            root = root_of(attempt.folder, self._targets)
            if root in failed:
                continue
            try:
                await self._discard(attempt)
            except TargetError as error:
                if root is not None:
                    failed.add(root)
                logger.warning("The rest of an interrupted delivery of job %s was not removed: %s", attempt.key, error)

    async def _apply(self, rule: DeliveryRule, lease: Lease) -> None:
        """Deliver the due jobs of a rule."""
        deliveries, failure, done = self._store.deliveries, None, 0
        try:
            await asyncio.to_thread(check_target, rule.target, self._targets)
            await asyncio.to_thread(create_folder, rule.target)
            turn = _Turn(rule, self._opened(rule.target), lease, elapsing() + self._turn)
            try:
                for project in await self._store.jobs.projects() if rule.project is None else [rule.project]:
                    await self._apply_in(turn, project)
            finally:
                done = turn.done
        except RuleOverError:
            pass
        except (TargetError, MissingLibraryError) as error:
            failure = str(error)
            deliveries.failures += 1
        if failure != rule.failure:
            await deliveries.note(rule.project, rule.id, failure)
            if failure is not None:
                logger.warning("%s waits: %s", rule_in_words("Delivery", rule), failure)
        await self._report(lease)
        if done:
            logger.info("Delivered %d jobs to %s", done, rule.target)

    async def _apply_in(self, turn: _Turn, project: int) -> None:
        """Deliver the due jobs of a rule in a project; raise :class:`RuleOverError` or :class:`TargetError`."""
        position: Position | None = START
        while position is not None and not turn.is_over:
            page = await self._store.deliveries.page(turn.rule, project, position)
            await self._deliver_all(turn, page.matches)
            await self._report(turn.lease)
            position = page.after

    async def _deliver_all(self, turn: _Turn, due: Sequence[Match]) -> None:
        """Deliver some jobs, a few at once; raise the first error, which ends the work of the rule."""
        left: Iterator[Match] = iter(due)
        failure: Exception | None = None

        async def some() -> None:
            nonlocal failure
            for job in left:
                # The deliveries under way are completed.
                if failure is not None or turn.is_over:
                    return
                try:
                    await self._deliver(turn, job)
                except (RuleOverError, TargetError, MissingLibraryError) as error:
                    failure = error
                    return

        await run_together(*(some() for _ in range(min(_AT_ONCE, len(due)))))
        if failure is not None:
            raise failure

    async def _deliver(self, turn: _Turn, job: Match) -> None:
        """Deliver a job, unless it is changed or removed meanwhile."""
        rule, target, lease = turn.rule, turn.target, turn.lease
        key, delivery = job.key, secrets.token_hex(8)
        folder = job_folder(key, job.spider, delivery)
        attempt = Attempt(key, delivery, f"{target.url}/{folder}")
        try:
            new = await self._store.deliveries.begin(lease, attempt, rule, self._duration)
        except ChangedError:
            return
        try:
            await self._write(Upload(self._store, target, folder, key, Compression(rule.compression)), new, lease)
            turn.done += 1
        # A contract error: the records were removed while they were read.
        except (ChangedError, ContractError) as error:
            logger.info("Job %s was changed during its delivery, which is repeated: %s", key, error)
            await self._discard(attempt)
        except (TargetError, LeaseLostError, MissingLibraryError):
            # Otherwise removed later, with those of dead servers.
            with contextlib.suppress(TargetError):
                await self._discard(attempt)
            raise

    async def _write(self, upload: Upload, new: NewDelivery, lease: Lease) -> None:
        is_tabular = new.rule.parquet
        if is_tabular:
            check_installed(Format.PARQUET)
        # Samples are arrays, without columns.
        schemas = {kind: Schema() for kind in new.totals if is_tabular and kind != "samples"}
        kinds = {
            kind: await upload.records(kind, totals, dict(new.counts[kind]), schemas.get(kind))
            for kind, totals in new.totals.items()
        }
        tables = {kind: await upload.table(kind, schema) for kind, schema in schemas.items()}
        manifest = manifests.encode(
            Manifest(
                delivery=new.id,
                job=str(new.key),
                spider=new.spider,
                created=self._store.clock(),
                metadata=msgspec.Raw(new.metadata),
                kinds=kinds,
                tables=tables,
                comments=await upload.comments() if "items" in kinds else None,
            )
        )
        await self._store.deliveries.check(lease, new)
        await upload.target.create(f"{upload.folder}/{MANIFEST}", manifest)
        delivered = [Delivered(kind, each.object, each.records, each.size, each.sha256) for kind, each in kinds.items()]
        done = DoneDelivery(delivered, len(manifest), hashlib.sha256(manifest).hexdigest())
        await self._store.deliveries.finish(lease, new, done)

    async def _discard(self, attempt: Attempt) -> None:
        """Remove the objects of a delivery that is not complete, the manifest first, then its row."""
        root = root_of(attempt.folder, self._targets)
        if root is None:
            raise TargetError(f"{attempt.folder} is in no allowed target: start the server with its --archive-target")
        target = self._opened(root.rstrip("/"))
        await target.remove_folder(attempt.folder[len(target.url) + 1 :], MANIFEST)
        await self._store.deliveries.forget_attempt(attempt.key, attempt.id)
