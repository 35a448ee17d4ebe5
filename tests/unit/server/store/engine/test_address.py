"""Addresses of PostgreSQL databases."""

from __future__ import annotations

import pytest

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGPORT", raising=False)


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("postgresql://me:secret@one:1,two:2/db?target_session_attrs=read-write", ["one:1", "two:2"]),
        ("postgresql://me@one/db", ["one:5432"]),
        ("postgresql://one,two:7/db", ["one:5432", "two:7"]),
        ("postgresql://me@[::1]:77,[::2]/db", ["[::1]:77", "[::2]:5432"]),
        ("postgresql://%2Frun%2Fpostgresql/db", ["/run/postgresql:5432"]),
        ("postgresql:///db?host=one,two&port=1,2", ["one:1", "two:2"]),
        ("postgresql:///db?host=/run/postgresql&port=99", ["/run/postgresql:99"]),
        ("postgresql:///db", []),
    ],
)
def test_an_address_may_have_several_servers(url: str, servers: list[str]) -> None:
    assert list(map(str, DatabaseUrl(url).servers)) == servers


@pytest.mark.parametrize("wanted", ["standby", "prefer-standby", "read-only"])
def test_an_address_of_a_standby_is_refused_without_its_password(wanted: str) -> None:
    with pytest.raises(StoreError, match=f"target_session_attrs={wanted}.*use read-write") as caught:
        DatabaseUrl(f"postgresql://me:secret@one/db?target_session_attrs={wanted}")
    assert "secret" not in str(caught.value)
