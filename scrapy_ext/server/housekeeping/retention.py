"""Application of the enabled retention rules, each to all projects that it covers.

A round over all rules takes as many runs as it needs, so that the other tasks of housekeeping go on. A new round begins
after an hour, and soon after the enabled rules have changed. Nothing but the removed data itself is remembered: after a
restart a new round begins.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from scrapy_ext.api.platform.retention import Rule
from scrapy_ext.server.store import Store

#: Seconds between two looks for changed rules; between two rounds; and at most of one run.
INTERVAL: Final = 30.0
ROUND: Final = 3600.0
_RUN: Final = 10.0


class Retention:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: list[Rule] = []
        self._round: AsyncGenerator[None, None] | None = None
        self._due = 0.0

    async def run(self) -> None:
        """Continue the round, or begin one that is due, for some seconds."""
        rules = await self._store.retention.enabled()
        if rules != self._rules:
            self._rules, self._due = rules, 0.0
            await self._end()
        if self._round is None and rules and time.monotonic() >= self._due:
            self._round, self._due = self._steps(rules), time.monotonic() + ROUND
        if self._round is not None:
            until = time.monotonic() + _RUN
            try:
                async for _ in self._round:
                    if time.monotonic() >= until:
                        return
            except Exception:
                self._due = 0.0  # the next run begins anew
                await self._end()
                raise
            await self._end()

    async def _end(self) -> None:
        if self._round is not None:
            await self._round.aclose()
            self._round = None

    async def _steps(self, rules: list[Rule]) -> AsyncGenerator[None, None]:
        projects = await self._store.jobs.projects()
        for rule in rules:
            for project in projects if rule.project is None else [rule.project]:
                async with aclosing(self._store.retention.apply(rule, project)) as steps:
                    async for done in steps:
                        yield
                        if done.over:
                            break
