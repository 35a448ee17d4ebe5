"""What all kinds of items share: when they were made, how sure they are, how they become plain data."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from itemadapter import ItemAdapter
from zyte_common_items import Item, ZyteItemAdapter


class _Adapter(ItemAdapter):
    ADAPTER_CLASSES: Iterable[type] = (ZyteItemAdapter,)


def as_dict(item: Item) -> dict[str, Any]:
    """The item as plain data in its schema, fields without a value left out."""
    return dict(_Adapter(item).asdict())


def now() -> str:
    """The time in UTC, as metadata has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
