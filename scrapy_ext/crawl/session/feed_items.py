"""Items of feeds (``FEEDS``) in a crawl with several workers: their way to the platform, and back as they were.

One worker gives its items to Scrapy's exporters as they are. Several store them on the platform, as JSON, and the last
one reads all of them. JSON has no item classes, whose fields are the columns of a CSV file and have serializers, and no
dates. So an item that is not a dict of JSON values is stored with a note: the internal field ``_feed``, with its class
and the types of its fields. Types of nested values are not kept; a warning names the field.
"""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Callable, KeysView, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec
from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface
from scrapy import Item

logger = logging.getLogger(__name__)

#: Internal field of a stored item with its note.
NOTE: Final = "_feed"
_CLASS: Final = "class"
_TYPES: Final = "types"
#: Fields that warnings name.
_MOST_REPORTED: Final = 20

_PLAIN: Final = frozenset({str, bool, int, float, type(None)})
#: Types by their names in notes, with the function that makes a value of its JSON form.
_FORMS: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    datetime: ("datetime", datetime.fromisoformat),
    date: ("date", date.fromisoformat),
    time: ("time", time.fromisoformat),
    timedelta: ("timedelta", lambda seconds: timedelta(seconds=seconds)),
    Decimal: ("decimal", Decimal),
    UUID: ("uuid", UUID),
    bytes: ("bytes", base64.b64decode),
    tuple: ("tuple", tuple),
    set: ("set", set),
    frozenset: ("frozenset", frozenset),
}
_NAMES: Final = {kind: name for kind, (name, _) in _FORMS.items()}
_MAKERS: Final = dict(_FORMS.values())


# ── to the platform ──


class FeedNotes:
    """Notes of the items of one worker."""

    def __init__(self) -> None:
        #: Names of the item classes, None for one that cannot be imported.
        self._names: dict[type, str | None] = {}
        self._reported: set[str] = set()

    def noted(self, item: Any, record: bytes) -> bytes:
        """Return the JSON object ``record`` of an item with its note, if it needs one."""
        kind = type(item)
        members = item if isinstance(item, dict | Item) else ItemAdapter(item)
        note: dict[str, Any] = {}
        if not isinstance(item, dict) and (name := self._name(kind)) is not None:
            note[_CLASS] = name
        if types := {name: form for name, value in members.items() if (form := self._form(name, value)) is not None}:
            note[_TYPES] = types
        if not note:
            return record
        if NOTE in members:
            self._report(NOTE, f"Items have a field {NOTE}, so their classes and types are not kept for FEEDS")
            return record
        separator = b"," if len(record) > len(b"{}") else b""
        return record[:-1] + separator + msgspec.json.encode({NOTE: note})[1:]

    def _name(self, kind: type) -> str | None:
        if kind not in self._names:
            name = f"{kind.__module__}:{kind.__qualname__}"
            is_found = _class(name) is kind
            if not is_found:
                self._report(name, f"Items of {kind.__qualname__}, which cannot be imported, are dicts in FEEDS")
            self._names[kind] = name if is_found else None
        return self._names[kind]

    def _form(self, name: object, value: object) -> str | None:
        kind = type(value)
        if kind in _PLAIN:
            return None
        if kind in (list, dict):
            if not _is_plain(value):
                self._report(str(name), _NESTED.format(name))
            return None
        form = _NAMES.get(kind)
        if kind in (set, frozenset, tuple) and not all(type(member) in _PLAIN for member in value):  # type: ignore[attr-defined]
            form = None
        if form is None:
            self._report(str(name), _NESTED.format(name))
        return form

    def _report(self, name: str, sentence: str) -> None:
        if name not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported.add(name)
            logger.warning("%s", sentence)


_NESTED: Final = (
    "Field {} has a value that JSON lacks, as a nested item or date. With several workers, FEEDS have its stored form: "
    "as in JSON. To choose another one, convert it in a pipeline"
)


def _is_plain(value: object) -> bool:
    kind = type(value)
    if isinstance(value, dict) and kind is dict:
        return all(type(name) is str for name in value) and all(map(_is_plain, value.values()))
    return kind in _PLAIN or (isinstance(value, list) and kind is list and all(map(_is_plain, value)))


# ── and back ──


class FeedItem(dict[str, Any]):
    """An item of a class as exporters see it: its fields, with the names and the metadata of those of its class.

    For filters of a project, it is an instance of its class, and has its fields as attributes, too. It is not made by
    the class, which may change or refuse what it gets.
    """

    def __init__(self, members: Mapping[str, Any], item_class: type) -> None:
        super().__init__(members)
        self.item_class = item_class

    @property  # type: ignore[misc]  # as unittest.mock does
    def __class__(self) -> type:
        return self.item_class

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class FeedItemAdapter(AdapterInterface):
    """Adapter of :class:`FeedItem`."""

    item: FeedItem

    @classmethod
    def is_item(cls, item: object) -> bool:
        return type(item) is FeedItem

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        return item_class is FeedItem

    def field_names(self) -> KeysView[str]:
        names = ItemAdapter.get_field_names_from_class(self.item.item_class)
        return dict.fromkeys(self.item if names is None else names).keys()

    def get_field_meta(self, field_name: str) -> MappingProxyType[str, Any]:
        if field_name not in self.field_names():
            return MappingProxyType({})
        return ItemAdapter.get_field_meta_from_class(self.item.item_class, field_name)

    def __getitem__(self, name: str) -> Any:
        return self.item[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.item[name] = value

    def __delitem__(self, name: str) -> None:
        del self.item[name]

    def __iter__(self) -> Any:
        return iter(self.item)

    def __len__(self) -> int:
        return len(self.item)


def register_adapter() -> None:
    """Let itemadapter, and so Scrapy's exporters, know :class:`FeedItem`."""
    if FeedItemAdapter not in ItemAdapter.ADAPTER_CLASSES:
        ItemAdapter.ADAPTER_CLASSES = [FeedItemAdapter, *ItemAdapter.ADAPTER_CLASSES]


class FeedItems:
    """Items that are read from the platform for feeds."""

    def __init__(self) -> None:
        register_adapter()
        self._classes: dict[str, type | None] = {}

    def item(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a stored item as its worker had it: a dict, or a :class:`FeedItem`. ``record`` is changed."""
        note = record.get(NOTE)
        if not isinstance(note, dict) or not note.keys() <= {_CLASS, _TYPES}:
            return record
        del record[NOTE]
        for name, form in note.get(_TYPES, {}).items():
            record[name] = _MAKERS[form](record[name])
        item_class = self._class(note[_CLASS]) if _CLASS in note else None
        return record if item_class is None else FeedItem(record, item_class)

    def _class(self, name: str) -> type | None:
        if name not in self._classes:
            self._classes[name] = found = _class(name)
            if found is None:
                logger.warning(
                    "Item class %s is not imported by this worker: its items are dicts in FEEDS. To have it, import "
                    "it in the module of the spider",
                    name,
                )
        return self._classes[name]


def _class(name: str) -> type | None:
    """Return the item class of this name (``module:qualified.name``), None if there is none in the modules of the
    project that this process has imported: a name that comes with an item must not import one."""
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and ItemAdapter.is_item_class(found) else None


class ClassFilter:
    """Filter of a feed with ``item_classes``, as :class:`scrapy.extensions.feedexport.ItemFilter`."""

    def __init__(self, item_classes: tuple[type, ...]) -> None:
        self._classes = item_classes

    def accepts(self, item: object) -> bool:
        """Return true for an item of one of the classes."""
        return issubclass(item.item_class if type(item) is FeedItem else type(item), self._classes)
