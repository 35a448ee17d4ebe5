"""Permits and grants of a group, with two servers on one database, killed workers and lost answers."""

from __future__ import annotations

import pytest

from scrapy_ext.server.store.engine.postgresql.transaction import PostgresqlTransaction
from scrapy_ext.server.store.engine.sqlite.transaction import SqliteTransaction
from tests.support.models.shares import check_shares
from tests.support.models.worlds import StoreWorld


@pytest.mark.long(keep=1)
# In full, minutes, and more on a busy machine.
@pytest.mark.timeout(3600)
def test_workers_never_exceed_a_limit_a_delay_or_a_budget(
    stores: StoreWorld, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def time(_: object) -> int:
        return stores.clock.now

    for transaction in (SqliteTransaction, PostgresqlTransaction):
        monkeypatch.setattr(transaction, "time", time)
    check_shares(stores, pytestconfig)
