"""``/ui/<project>/collections``: collections, their records by key, and one record to read or edit."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.collections import CollectionName, check_name, parse_type
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import json_bodies
from scrapy_ext.server.store.collections.collections import CollectionRecord
from scrapy_ext.server.store.collections.selections import Collection, Range, RecordSelection, prefix_range
from scrapy_ext.server.store.collections.writes import checked
from scrapy_ext.server.ui.downloads import download_records
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit, field_errors

_PATH: Final = "/ui/{project:number}/collections"
_ONE: Final = _PATH + "/{type}/{name}"
#: Collections per page, and the limit of the count of each.
_COLLECTIONS: Final = 50
_COUNTED_IN_LIST: Final = 1000
#: Records per page, which ends earlier at this number of bytes.
_RECORDS: Final = 50
_PAGE_BYTES: Final = 4 * 1024 * 1024
#: Keys per counting step and steps per page; an inline read blocks other requests (``Engine.read_inline``).
_COUNTED: Final = 10_000
_STEPS: Final = 10
_MAX_KEY: Final = 32 * 1024

TYPES: Final = {
    "s": "records stay until they are deleted",
    "cs": "records expire after a month",
    "vs": "the last three copies of a record are kept",
    "vcs": "the last three copies of a record are kept, each for a month",
}


class _Listed(NamedTuple):
    name: CollectionName
    records: int
    more: bool
    path: str


class _Row(NamedTuple):
    key: str
    ts: int
    size: int
    shown: object


async def _list(visit: Visit) -> Response:
    search, offset = visit.text("q"), visit.number("offset")
    names = [each for each in await visit.store.collections.names(visit.project) if search in each.name]
    shown = []
    for name in names[offset : offset + _COLLECTIONS]:
        which = Collection(visit.project, parse_type(name.type), name.name)
        count = await visit.store.collections.count(which, RecordSelection((Range(b"", None),)), _COUNTED_IN_LIST)
        shown.append(_Listed(name, count.count, count.nextstart is not None, _path(which)))
    return visit.rendered(
        "collections.html",
        collections=shown,
        total=len(names),
        offset=offset,
        search=search,
        size=_COLLECTIONS,
        types=TYPES,
    )


def _path(which: Collection) -> str:
    return f"/ui/{which.project}/collections/{which.type.value}/{quote(which.name, safe='')}"


async def _which(visit: Visit) -> Collection:
    parameters = visit.request.path_params
    try:
        which = Collection(visit.project, parse_type(parameters["type"]), parameters["name"])
    except ContractError:
        raise MissingError from None
    if CollectionName(which.type.value, which.name) not in await visit.store.collections.names(visit.project):
        raise MissingError
    return which


def _key_of(visit: Visit, name: str) -> str:
    """Return a query parameter that is a key, unstripped."""
    key = visit.request.query_params.get(name, "")
    if len(key) > _MAX_KEY:
        raise refused(name, f"must be {_MAX_KEY} characters at most", "Write a shorter key in the address.")
    return key


async def _records(visit: Visit) -> Response:
    which = await _which(visit)
    prefix, after = _key_of(visit, "prefix"), _key_of(visit, "after")
    part = prefix_range(prefix.encode())
    if after:
        part = part._replace(low=max(part.low, after.encode()), after=after.encode() >= part.low)
    records, following = await _page(visit, which, part)
    count = await _count(visit, which, RecordSelection((prefix_range(prefix.encode()),)))
    return visit.rendered(
        "collection.html",
        which=which,
        path=_path(which),
        about=TYPES[which.type.value],
        prefix=prefix,
        after=after,
        rows=records,
        following=following,
        count=count[0],
        more=count[1],
    )


async def _page(visit: Visit, which: Collection, part: Range) -> tuple[list[_Row], str | None]:
    """Return some records, and the key after which more follow."""
    rows: list[_Row] = []
    held = 0
    async for page in visit.store.collections.scan(which, RecordSelection((part,)), _RECORDS + 1):
        for record in page:
            if len(rows) == _RECORDS or held > _PAGE_BYTES:
                return rows, rows[-1].key
            held += len(record.value)
            rows.append(_Row(record.key.decode(), record.ts, len(record.value), msgspec.json.decode(record.value)))
    return rows, None


async def _count(visit: Visit, which: Collection, selection: RecordSelection) -> tuple[int, bool]:
    """Return the number of selected records, and whether there are more than were counted."""
    total = 0
    for _ in range(_STEPS):
        count = await visit.store.collections.count(which, selection, _COUNTED)
        total += count.count
        if count.nextstart is None:
            return total, False
        (part,) = selection.ranges
        selection = RecordSelection((part._replace(low=count.nextstart.encode(), after=False),))
    return total, True


async def _change(visit: Visit) -> Response:
    which = await _which(visit)
    match visit.form.get("action"):
        case "rename":
            new_name = (visit.form.get("new_name") or "").strip()
            check_name(new_name, "new name")
            if not await visit.store.collections.rename(visit.project, which.name, new_name):
                raise MissingError
            await visit.note(ChangeEvents.COLLECTION_RENAMED, collection=new_name, before=which.name)
            return visit.redirect(_path(which._replace(name=new_name)), "renamed")
        case "delete":
            await visit.store.collections.drop(visit.project, which.name)
            await visit.note(ChangeEvents.COLLECTION_REMOVED, collection=which.name)
            return visit.removed(f"/ui/{visit.project}/collections")
        case _:
            raise refused("action", "must be rename or delete", "Use the buttons of the page.")


async def _record(visit: Visit) -> Response:
    """Show one record, or the form for a new one when the URL names no key."""
    which, key = await _which(visit), _key_of(visit, "key")
    copies = await _copies(visit, which, key) if key else []
    if key and not copies:
        raise MissingError
    text = _formatted(copies[0].value) if copies else "{\n  \n}"
    return _editor(visit, which, key, copies, text)


async def _copies(visit: Visit, which: Collection, key: str) -> list[CollectionRecord]:
    if which.type.copies > 1:
        return await visit.store.collections.copies(which, key.encode())
    found = await visit.store.collections.get(which, key.encode())
    return [found] if found else []


def _formatted(value: bytes) -> str:
    # Decoding shows letters where the bytes may have escapes.
    decoded = msgspec.json.decode(value)
    return msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()


def _editor(
    visit: Visit,
    which: Collection,
    key: str,
    copies: list[CollectionRecord],
    text: str,
    *,
    error: ContractError | None = None,
) -> Response:
    is_new = not _key_of(visit, "key")
    return visit.rendered(
        "record.html",
        error.status if error else 200,
        which=which,
        path=_path(which),
        own_path=visit.address(f"{_path(which)}/record", key=None if is_new else key),
        key=key,
        is_new=is_new,
        stored=copies[0].ts if copies and not is_new else None,
        older=[(copy.ts, _formatted(copy.value)) for copy in copies[1:]],
        text=text,
        errors=field_errors(error) if error else {},
    )


async def _save(visit: Visit) -> Response:
    which, form = await _which(visit), visit.form
    # The key of an existing record is in the URL: forms do not keep its line breaks.
    key = _key_of(visit, "key") or form.get("key") or ""
    if form.get("action") == "delete":
        await visit.store.collections.delete_keys(which, [key.encode()])
        await visit.note(ChangeEvents.COLLECTION_RECORD_CHANGED, collection=which.name, key=key, removed=True)
        return visit.redirect(_path(which), "removed")
    text = form.get("record") or ""
    copies = await _copies(visit, which, key) if key else []
    try:
        if not key:
            raise refused("key", "is required", "Give the record a key.")
        stored = str(copies[0].ts) if copies else ""
        if copies and not form.get("stored"):
            raise refused("key", "has a record already", "Choose another key, or open that record to edit it.")
        if stored != (form.get("stored") or ""):
            rule = "was changed since the page was loaded" if copies else "was deleted since the page was loaded"
            raise refused("record", rule, "Copy your text, reload the page, and edit again.")
        await visit.store.collections.write(which, _checked(key, text))
    except ContractError as error:
        return _editor(visit, which, key, copies, text, error=error)
    await visit.note(ChangeEvents.COLLECTION_RECORD_CHANGED, collection=which.name, key=key)
    return visit.redirect(f"{_path(which)}/record", "saved", key=key)


def _checked(key: str, text: str) -> list[tuple[bytes, bytes]]:
    """Return the edited record; raises ``ContractError`` that names ``record``."""
    value = json_bodies.given(text.encode(), "record")
    if not isinstance(value, dict):
        raise refused("record", "must be a JSON object", 'Write {"name": "value"}.')
    try:
        return checked([(1, text.encode(), value)], key)
    except ContractError as error:
        faults = [msgspec.structs.replace(fault, field="record") for fault in error.violations]
        raise ContractError(faults) from None


async def _download(visit: Visit) -> Response:
    return await download_records(visit, await _which(visit), _key_of(visit, "prefix"))


PAGES: Final = (
    UiPage(_PATH, "collections", _list),
    UiPage(_ONE, "collections", _records, _change),
    UiPage(_ONE + "/records.{format}", "collections", _download),
    UiPage(_ONE + "/record", "collections", _record, _save),
)
LINKS: Final = (Link("collections", "Collections", "/ui/{project}/collections"),)
