"""Migrations are never changed once a database may have them; others are added after them."""

from __future__ import annotations

import hashlib
import re

import pytest

from scrapy_ext.server.store import schema
from scrapy_ext.server.store.engine.errors import SchemaError

#: SHA-256 (its first 16 digits) of each migration. A changed one would leave databases that have it as they are, and
#: make others differ from them: write a new migration instead, and add its line.
DIGESTS = {
    100: "a2611a9127eadf52",
    101: "777cdb01d01fa669",
    102: "1ecc38202b4872fd",
    103: "9b3c32456bb4971c",
    104: "e223ff19a4349e20",
    105: "6f33e19f6289192d",
    106: "cb4fa517a12417a5",
    107: "f592f1ccc2f4ddee",
    108: "e781b927ec7b4b36",
    110: "217c74651336ac5f",
    120: "4ce3ec30708724ab",
    130: "98ef1edbfa54a9f0",
    150: "8ff7d25de2f1ddf8",
    160: "f3a99ef51a2b53ff",
    170: "c5c96f5831c29551",
    175: "7e900b23ef95ca20",
    180: "5e7ff1022de52045",
}


def test_a_migration_that_databases_have_is_not_changed() -> None:
    assert {version: hashlib.sha256(sql.encode()).hexdigest()[:16] for version, sql in schema.migrations()} == DIGESTS


@pytest.mark.parametrize("count", range(4))
def test_the_first_versions_in_any_number_are_migrated(count: int) -> None:
    schema._check_applied([100, 101, 120][:count], [100, 101, 120])


@pytest.mark.parametrize(
    ("applied", "reason"),
    [
        (
            [100, 101, 120, 121],
            "has schema version 121, but this version of scrapy-ext supports 120. Upgrade scrapy-ext",
        ),
        ([9999], "has schema version 9999, but this version of scrapy-ext supports 120. Upgrade scrapy-ext"),
        ([1], "has schema version 1, of a development version before the first release, which cannot be migrated"),
        ([100, 120], "has schema version 120 without version 101, of a development version"),
        ([100, 110, 120], "has schema version 120 without version 101, of a development version"),
        ([100, 110], "has schema version 110 without version 101, of a development version"),
        ([100, 101, 110], "has schema version 110, of a development version"),
    ],
)
def test_other_versions_are_refused_with_what_to_do(applied: list[int], reason: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(reason)) as caught:
        schema._check_applied(applied, [100, 101, 120])
    assert re.search(
        "Upgrade scrapy-ext, or use another data directory or database|Use a new data directory", str(caught.value)
    )
