"""Warnings about annotations of scrapy-zyte-api in callbacks and page objects, which this package does not provide.

Without them, a callback fails with a TypeError about an argument of a class that its project did not write.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints
from weakref import WeakSet

from scrapy_ext.api.extraction import EXTRACT_TYPES
from scrapy_ext.compatibility.items import item_class

logger = logging.getLogger(__name__)

_PACKAGES: Final = frozenset(("scrapy_zyte_api", "zyte_common_items"))
_ITEMS: Final = frozenset(map(item_class, EXTRACT_TYPES))
#: Classes whose data is a field of the result, by their names.
_FIELDS: Final = {
    "Actions": "actions",
    "CustomAttributes": "customAttributes",
    "Geolocation": "geolocation",
    "NetworkCapture": "networkCapture",
}


class ZyteApiAnnotations:
    """Checks each callback once, with the dependencies of its page objects."""

    def __init__(self) -> None:
        self._checked: WeakSet[Any] = WeakSet()

    def check(self, callback: Callable[..., Any], dependencies: Collection[Any]) -> None:
        while isinstance(callback, functools.partial):
            callback = callback.func
        function = getattr(callback, "__func__", callback)
        try:
            if function in self._checked:
                return
            self._checked.add(function)
            hints = [*get_type_hints(function, include_extras=True).values(), *dependencies]
        except (NameError, TypeError):  # an object that cannot be inspected
            return
        for remedy in dict.fromkeys(_remedies(hints)):
            logger.warning("%s: %s", getattr(function, "__qualname__", function), remedy)


def _remedies(hints: Iterable[Any]) -> Iterator[str]:
    for hint in hints:
        is_annotated = get_origin(hint) is Annotated
        kind = get_args(hint)[0] if is_annotated else hint
        name = getattr(kind, "__name__", "")
        if getattr(kind, "__module__", "").split(".")[0] not in _PACKAGES:
            continue
        if name in _FIELDS:
            field = _FIELDS[name]
            yield (
                f"{name} is of scrapy-zyte-api, and not provided. Write the field {field} into "
                f'meta["extract_api"] of the request, and read response.extract_result["{field}"].'
            )
        elif name == "Screenshot":
            yield (
                "Screenshot is of scrapy-zyte-api, and not provided. "
                "Use scrapy_ext.poet.provider.Screenshot instead, which is the bytes."
            )
        elif is_annotated and kind in _ITEMS:
            yield (
                f"Annotated[{name}, …] is of scrapy-zyte-api, and not provided. Annotate {name} alone, and write "
                'fields such as extractFrom into meta["extract_api"] of the request.'
            )
