"""``/ui/<project>/<spider>/<job>/items``: the items of a job, searched, filtered and sorted, and single items.

The columns that a person has chosen for the items of a spider are in a cookie that only the pages of this spider get.
It has names of fields alone, so that the choice needs no place in the database, and works for keys that may only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.where import MAX_WHERE, OPERATORS, STATES, Clause, parse_where, written
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http.cookies import cookie_of, is_encrypted
from scrapy_ext.server.record_search import (
    MOST_SORTED,
    Found,
    Order,
    item_filter,
    records_of,
    search_records,
    sort_records,
)
from scrapy_ext.server.store.records.removal import RecordOwner, removal_error
from scrapy_ext.server.ui import item_values, shapes
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import HEADERS, MissingError, UiPage, Visit, field_errors
from scrapy_ext.server.ui.job_records import PATH, job_context, lines_page

_PER_PAGE: Final = 50
#: Columns of the table without a choice.
_COLUMNS: Final = 8
#: Fields whose coverage is listed, and that can be chosen.
_LISTED: Final = 200
#: Maximum columns of a table.
_MOST_COLUMNS: Final = 60
_COOKIE: Final = "item_columns"
#: Browsers keep cookies of up to 4096 bytes.
_MOST_BYTES: Final = 3500
_SECONDS: Final = 365 * 24 * 3600
_VIEWS: Final = ("table", "cards", "json")
#: Characters of an item in the view of JSON; its own page has more.
_JSON: Final = 4000
#: Bytes of items that are decoded and formatted in a thread: the loop would wait for them.
_LARGE: Final = 512 * 1024
#: Operators by what the form calls them.
_CHOICES: Final = (
    ("~", "contains"),
    ("!~", "does not contain"),
    ("=", "is"),
    ("!=", "is not"),
    (">", "is more than"),
    (">=", "is at least"),
    ("<", "is less than"),
    ("<=", "is at most"),
    *((state, state) for state in STATES),
    ("matches", "matches the regular expression"),
)


_names: Final = msgspec.json.Decoder(list[str]).decode


class _Query(NamedTuple):
    """The parameters of the page. ``errors`` has those that are wrong."""

    text: str
    where: str
    clauses: Sequence[Clause]
    order: Order | None
    errors: Mapping[str, str]

    @property
    def is_search(self) -> bool:
        return bool(self.text or self.where)


def _query(visit: Visit) -> _Query:
    where, errors = visit.request.query_params.get("where", "").strip(), dict[str, str]()
    clauses: list[Clause] = []
    try:
        clauses = parse_where(where) if where else []
    except ContractError as error:
        errors.update(field_errors(error))
    field = visit.request.query_params.get("sort", "")[:MAX_WHERE]
    at = min(visit.number("at"), MOST_SORTED - _PER_PAGE)
    order = Order(field, bool(visit.text("desc")), range(at, at + _PER_PAGE)) if field else None
    return _Query(visit.text("q"), where, clauses, order, errors)


async def _items(visit: Visit) -> Response:
    if (answer := _redirected(visit)) is not None:
        return answer
    query = _query(visit)
    counts = (await visit.store.items.stats(visit.key)).counts
    context = await job_context(visit, "items")
    lines, paging, found = list[tuple[int, bytes]](), None, None
    if not query.errors and (query.order is not None or query.is_search):
        try:
            found = await _found(visit, query)
        except ContractError as error:  # an expression that takes too long
            query = query._replace(errors=field_errors(error))
        lines = found.records if found else []
    elif not query.errors:
        lines, paging = await lines_page(visit, visit.store.items, visit.key, _PER_PAGE)
    chosen = _remembered(visit)
    view = visit.text("view") if visit.text("view") in _VIEWS else _VIEWS[0]
    show = partial(_shown, lines, counts, chosen, view, every=bool(visit.text("all")))
    is_large = sum(len(line) for _, line in lines) > _LARGE
    return visit.rendered(
        "items.html",
        400 if query.errors else 200,
        **context,
        **(await in_data_thread(show) if is_large else show()),
        query=query,
        view=view,
        views=_VIEWS,
        images=visit.services.images is not None,
        chosen=chosen,
        every=bool(visit.text("all")),
        paging=paging,
        found=found,
        at=query.order.shown.start if query.order else 0,
        most_sorted=MOST_SORTED,
        per_page=_PER_PAGE,
        choices=_CHOICES,
        conditions=[(clause.text, _without(query.clauses, place)) for place, clause in enumerate(query.clauses)],
        same=visit.address("/", where=query.where, q=query.text)[1:],
    )


def _shown(
    lines: Sequence[tuple[int, bytes]], counts: Mapping[str, int], chosen: Sequence[str], view: str, *, every: bool
) -> dict[str, Any]:
    """Return what the page shows of some items: their rows and columns, and the fields of all items."""
    records = records_of(lines)
    shown = [record for _, record in records]
    fields = item_values.ordered(counts, shown)
    names = _columns(fields, shown, chosen, every=every)
    values = item_values.Values()
    return {
        "rows": [_row(number, item, names, view, values) for number, item in records],
        "columns": [_column(name, counts.get(name, 0), shown) for name in names],
        "fields": [(name, counts.get(name, 0)) for name in fields[:_LISTED]],
        "field_count": len(fields),
        "has_more": len(fields) > len(names),
    }


async def _found(visit: Visit, query: _Query) -> Found:
    wanted = item_filter(query.where, query.text)
    start, store = visit.number("start"), visit.store.items
    if query.order is None:
        assert wanted is not None  # noqa: S101 - there is a text or a condition
        return await search_records(store, visit.key, start, wanted.chooses, _PER_PAGE)
    chooses = None if wanted is None else wanted.chooses
    return await sort_records(store, visit.key, start, chooses, query.order)


def _without(clauses: Sequence[Clause], place: int) -> str:
    """Return the conditions without one of them, as text."""
    return " and ".join(clause.text for number, clause in enumerate(clauses) if number != place)


def _redirected(visit: Visit) -> Response | None:
    """Redirect after a form of this page: columns that were chosen, or a condition that was put together."""
    given = visit.request.query_params
    if "columns" in given or "reset" in given:
        answer = visit.redirect(visit.address(columns=None, reset=None, all=None))
        _remember(visit, answer, [] if "reset" in given else given.getlist("columns"))
        return answer
    if "operator" not in given:
        return None
    field, operator, value = (given.get(name, "").strip() for name in ("field", "operator", "value"))
    if not field:
        raise refused("field", "must be the name of a field", "Go back and choose one.")
    if not value and operator in OPERATORS:
        raise refused("value", f"must not be empty with {operator}", "Go back and type what to compare with.")
    where = " and ".join(part for part in (given.get("where", "").strip(), written(field, operator, value)) if part)
    changes = dict.fromkeys(("field", "operator", "value", "start", "at"))
    return visit.redirect(visit.address(**changes, where=where))


def _remembered(visit: Visit) -> list[str]:
    """Return the chosen columns; none without a choice."""
    text = cookie_of(visit.request, _COOKIE)
    try:
        return list(dict.fromkeys(_names(unquote(text))))[:_MOST_COLUMNS] if text else []
    except (msgspec.DecodeError, UnicodeError):
        return []


def _remember(visit: Visit, answer: Response, names: Sequence[str]) -> None:
    """Store the chosen columns, as many of the first as a cookie holds; none removes the choice."""
    kept = list(dict.fromkeys(names))[:_MOST_COLUMNS]
    while len(value := quote(msgspec.json.encode(kept))) > _MOST_BYTES:
        kept.pop()
    path = f"/ui/{visit.key.project}/{visit.key.spider}"
    answer.set_cookie(
        _COOKIE, value if kept else "", max_age=_SECONDS if kept else 0, path=path, secure=is_encrypted(visit.request),
        httponly=True, samesite="strict",
    )  # fmt: skip


def _columns(
    fields: Sequence[str], shown: Sequence[Mapping[str, Any]], chosen: Sequence[str], *, every: bool
) -> list[str]:
    """Return the chosen columns, else the first fields of those that any shown item has."""
    if every:
        return list(fields[:_MOST_COLUMNS])
    if chosen:
        return list(chosen)
    return [name for name in fields if not shown or any(name in record for record in shown)][:_COLUMNS]


def _column(name: str, occurrences: int, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a field with the number of items that have it, and the types of its shown values."""
    kinds = sorted({shapes.kind_of(record[name]) for record in records if name in record})
    return {"name": name, "count": occurrences, "kinds": kinds}


def _row(
    number: int, item: Mapping[str, Any], names: Sequence[str], view: str, values: item_values.Values
) -> dict[str, Any]:
    """Return what a view shows of an item."""
    row: dict[str, Any] = {
        "number": number,
        "title": item_values.title_of(item),
        "has_image": item_values.image_of(item) is not None,
    }
    if view == "json":
        row["json"] = msgspec.json.format(msgspec.json.encode(item), indent=2).decode()
        row["is_cut"] = len(row["json"]) > _JSON
        row["json"] = row["json"][:_JSON]
    else:
        row["values"] = [values.of(item[name], name) if name in item else None for name in names]
    return row


#: A file that runs nothing, loads nothing and has an origin of its own; a browser may keep it for a day.
_IMAGE_HEADERS: Final = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=86400",
}


async def _image(visit: Visit) -> Response:
    """Send the image of an item, which the server fetches; 404 unless there is one that can be had."""
    images = visit.services.images
    found = await visit.store.items.at(visit.key, [visit.request.path_params["number"]]) if images else []
    url = item_values.image_of(msgspec.json.decode(found[0].lines[0])) if found else None
    image = None if images is None or url is None else await images.fetch(url)
    if image is None:
        return Response(b"", 404, HEADERS)
    return Response(image.data, 200, _IMAGE_HEADERS, media_type=image.type)


async def _item(visit: Visit) -> Response:
    number = visit.request.path_params["number"]
    found = await visit.store.items.at(visit.key, [number])
    if not found:
        if (removal := await visit.store.items.removal(visit.key)) is not None:
            raise removal_error(RecordOwner(visit.key.project, "items", visit.key.spider, visit.key.job), removal)
        raise MissingError
    # Decoding shows letters where the bytes may have escapes.
    decoded = msgspec.json.decode(found[0].lines[0])
    text = msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()
    values = item_values.Values()
    names = item_values.ordered(dict.fromkeys(decoded, 1), [decoded])[:_LISTED]
    return visit.rendered(
        "item.html",
        **await job_context(visit, "items"),
        number=number,
        indexes=await visit.store.items.indexes(visit.key),
        text=text,
        stored=found[0].ts,
        title=item_values.title_of(decoded),
        has_image=visit.services.images is not None and item_values.image_of(decoded) is not None,
        values=[values.of(decoded[name], name) for name in names],
        more=len(decoded) - len(names),
    )


PAGES: Final = (
    UiPage(PATH + "/items", "jobs", _items, action=Action.RUN),
    UiPage(PATH + "/items/{number:number}", "jobs", _item),
    UiPage(PATH + "/items/{number:number}/image", "jobs", _image),
    UiPage(PATH + "/items.{format}", "jobs", download("items")),
)
