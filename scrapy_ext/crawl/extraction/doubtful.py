"""``minProbability`` in requests and answers: sent to a service that has the field, else applied here to its answer."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import EXTRACT_TYPES, check
from scrapy_ext.api.extraction.fields import LEFT_OUT, MIN_PROBABILITY
from scrapy_ext.api.extraction.min_probability import without_doubtful
from scrapy_ext.api.extraction.records import LeftOut
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.violations import ContractError

logger = logging.getLogger(__name__)

#: Stats of a run, by what they count.
LEFT_OUT_STATS: Final = {name: f"extract_api/left_out/{name}" for name in ("items", "entries")}


def params_for(params: Mapping[str, Any], asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields for every request that count for one with the fields ``asked``: a probability counts with a
    kind of item alone."""
    if MIN_PROBABILITY not in params or any({**params, **asked}.get(kind) for kind in EXTRACT_TYPES):
        return params
    return {name: value for name, value in params.items() if name != MIN_PROBABILITY}


def for_service(fields: Mapping[str, Any], accepted: Collection[str]) -> dict[str, Any]:
    """Return the fields of a request without ``minProbability``, unless the service accepts it.

    Raises :class:`ContractError` where it breaks a rule, as the client does for the fields that are sent.
    """
    if MIN_PROBABILITY not in fields or MIN_PROBABILITY in accepted:
        return dict(fields)
    faults = [fault for fault in check(fields, extra_fields=accepted) if fault.field == MIN_PROBABILITY]
    if faults:
        raise ContractError(faults)
    return {name: value for name, value in fields.items() if name != MIN_PROBABILITY}


def is_left_out(result: Mapping[str, Any], kind: str) -> bool:
    """Return true for a result without the requested item of a kind, which is left out for its probability."""
    members = result.get(LEFT_OUT)
    return result.get(kind) is None and isinstance(members, Mapping) and kind in members


def without_doubts(fields: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request without what is below its ``minProbability``. A service may have left it out, and
    one may accept the field and ignore it, or have a ``leftOut`` of its own."""
    least = fields.get(MIN_PROBABILITY)
    if least is None:
        return result
    kind = next((kind for kind in EXTRACT_TYPES if isinstance(result.get(kind), Mapping)), None)
    if kind is None:
        return result
    item, left_out = without_doubtful(kind, result[kind], least)
    if not left_out and isinstance(result.get(LEFT_OUT), Mapping):
        return result
    changed = {**result, kind: item, LEFT_OUT: msgspec.to_builtins(left_out)}
    if item is None:
        del changed[kind]
        # They are of the fields of the item.
        changed.pop("fieldSources", None)
    return changed


def left_out_of(result: Mapping[str, Any]) -> Iterator[tuple[str, LeftOut]]:
    """Yield what is left out of a result: the kind or the list of its item, with the number and the probability."""
    members = result.get(LEFT_OUT)
    for name, member in members.items() if isinstance(members, Mapping) else ():
        try:
            yield name, msgspec.convert(member, LeftOut)
        except msgspec.ValidationError:  # of a service with another meaning of the member
            continue


class Doubts:
    """Counts of items and entries that are left out in a run, with a line of the log for each page."""

    def __init__(self) -> None:
        #: Numbers by what they count: ``items`` or ``entries``.
        self.by_name: dict[str, int] = {}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers by the names of stats."""
        return {LEFT_OUT_STATS[name]: count for name, count in self.by_name.items()}

    def add(self, fields: Mapping[str, Any], result: Mapping[str, Any], url: str) -> None:
        """Count what is left out of the result of a request, and log it."""
        least = fields.get(MIN_PROBABILITY)
        for name, left_out in left_out_of(result) if least is not None else ():
            counted = "items" if name in EXTRACT_TYPES else "entries"
            self.by_name[counted] = self.by_name.get(counted, 0) + left_out.count
            logger.debug(
                "Left out of %s: %d of %s, with a probability of %s at most (%s is %s)",
                without_user(url), left_out.count, name, left_out.probability, MIN_PROBABILITY, least,
            )  # fmt: skip
