"""Archives that were changed to be endless, or to become large, are refused while they are read."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ext.api.compression import DamagedError
from scrapy_ext.server.delivery.manifest import DeliveredObject
from scrapy_ext.server.delivery.restoring import NotRestorableError, _inflater, _lines, _Text

MIB = 1024 * 1024


@pytest.mark.parametrize("name", ["items.jsonl.gz", "items.jsonl.zst"])
def test_a_line_without_an_end_is_refused_after_some_mebibytes(name: str) -> None:
    text = _Text(_inflater(name))
    with pytest.raises(DamagedError, match="a line of more than 16777216 bytes"):
        list(text.pages(_packed(name, bytes(64 * MIB))))
    assert len(text.rest) < 17 * MIB


def _packed(name: str, data: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(data, 9)
    zstd = pytest.importorskip("backports.zstd")
    packed: bytes = zstd.compress(data)
    return packed


async def test_an_object_that_does_not_end_is_refused_at_its_size() -> None:
    line = gzip.compress(b"{}\n" * 1000)

    async def endless(_path: str) -> AsyncIterator[bytes]:
        while True:
            yield line

    target: Any = SimpleNamespace(read=endless)
    delivered = DeliveredObject(object="items.jsonl.gz", size=10 * len(line), sha256="")
    with pytest.raises(NotRestorableError, match=r"items\.jsonl\.gz is not the object of its manifest: it is longer"):
        [page async for page in _lines(target, "1/2/3", delivered)]
