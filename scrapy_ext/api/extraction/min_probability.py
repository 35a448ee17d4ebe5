"""``minProbability``: items and entries of a lower probability are left out of a result, whose ``leftOut`` has them.

Both sides use it: the service, and the client for services that do not have the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from scrapy_ext.api.extraction.records import LeftOut

#: Lists of items whose entries have probabilities of their own.
ENTRIES: Final = ("articles", "products", "items", "subCategories", "posts")


class Kept(NamedTuple):
    """An item without what is left out of it."""

    #: None: the item itself is left out.
    item: dict[str, Any] | None
    #: What is left out, by the kind or by the list of the item.
    left_out: dict[str, LeftOut]


def without_doubtful(kind: str, item: Mapping[str, Any], least: float) -> Kept:
    """Return an item of a kind without entries of a lower probability than ``least``; None for such an item.

    What has no probability stays. A list whose entries are all left out is no field of the item.
    """
    sure = _probability_of(item)
    if sure is not None and sure < least:
        return Kept(None, {kind: LeftOut(1, sure)})
    kept, left_out = dict(item), {}
    for name in ENTRIES:
        entries = item.get(name)
        doubtful = [sure for each in _listed(entries) if (sure := _probability_of(each)) is not None and sure < least]
        if not doubtful:
            continue
        left_out[name] = LeftOut(len(doubtful), max(doubtful))
        kept[name] = [each for each in _listed(entries) if (sure := _probability_of(each)) is None or sure >= least]
        if not kept[name]:
            del kept[name]
    return Kept(kept, left_out)


def _listed(entries: object) -> list[Any]:
    return entries if isinstance(entries, list) else []


def _probability_of(item: object) -> float | None:
    """Return the probability in the metadata of an item or entry; None without one, or if it is no number."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    sure = metadata.get("probability") if isinstance(metadata, Mapping) else None
    return sure if isinstance(sure, int | float) and not isinstance(sure, bool) else None
