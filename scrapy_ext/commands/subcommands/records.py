"""``scrapy platform items``, ``requests`` and ``logs``: the records of a job."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform import EntityKey, JobKey
from scrapy_ext.api.platform.conditions import EVERYWHERE, RecordFilter
from scrapy_ext.api.platform.records import LEVELS, Stats
from scrapy_ext.client.platform.records import JobRecords
from scrapy_ext.commands.conditions import condition_options, conditions_of, filter_by
from scrapy_ext.commands.download import Download, Select, download_options, save, wants_file
from scrapy_ext.commands.follow import Rows, first_of, followed
from scrapy_ext.commands.options import JOB, argument, follow_options, paging_options
from scrapy_ext.commands.output import Column, reading
from scrapy_ext.commands.selection import selected_job
from scrapy_ext.commands.subcommand import CommandError, View, note_shown, platform_command
from scrapy_ext.commands.text import TIME_WIDTH, clock, length

Row = dict[str, Any]
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode

#: Fields that are named where none is like an unknown one.
_NAMED: Final = 10

# ── items ──


def _field_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("must be names of fields with commas between them, such as name,price")
    return names


async def _items(view: View) -> None:
    options, key = view.options, await selected_job(view)
    if wants_file(view):
        await _save_items(view, key)
        return
    stats = await view.client.items.stats(key, hidden=True)
    fields: Sequence[str] = options.fields or ()
    conditions = conditions_of(options)
    meta = ("_key", "_ts") if options.meta else ()
    csv_fields = fields or [*meta, *sorted(stats.counts)]
    columns = [Column.field(name) for name in fields] if fields else None
    start = first_of(view, stats.totals.input_values)
    if not options.follow:
        _say_unknown(view, stats, (*fields, *(field for field, *_ in conditions if field != EVERYWHERE)))
    if options.follow:
        if view.output.form == "csv" and not csv_fields:
            raise CommandError("the job has no item yet, so the columns of CSV are unknown; name them with --fields")
        # Conditions are checked here: the platform would begin after the last item that meets them in each poll.
        stored = followed(view, key, view.client.items, start=start, meta=meta)
        groups = _selected_groups(stored, filter_by(conditions), options.count)
        await view.output.live(_changed_groups(groups, start, lambda item, _: _chosen(view, item)), columns, csv_fields)
        return
    count, last = view.output.count(options), list[str]()
    records = view.client.items.keyed(key, count=count, start=start or None, meta=meta, filters=conditions)
    items = _changed(_without_keys(records, last), start, lambda item, _: _chosen(view, item))
    number = await view.output.records(items, columns, csv_fields)
    if not conditions:
        await note_shown(view, f"items of job {key}", number, stats.totals.input_values)
    elif number == count and last:
        following = EntityKey.parse(last[0]).number + 1
        await view.output.note(f"items of job {key}: the first {number} found; the next: --start {following}")
    else:
        await view.output.note(f"items of job {key}: {number} found among {stats.totals.input_values}")


def _say_unknown(view: View, stats: Stats, fields: Iterable[str]) -> None:
    """Name the fields that no item has, with the nearest ones. A field may be a path, whose first part is counted."""
    known = [name for name in stats.counts if not name.startswith("_")]
    for field in dict.fromkeys(fields) if stats.totals.input_values else ():
        first = re.split(r"[.\[]", field, maxsplit=1)[0]
        if not {field, first} & stats.counts.keys() and not field.startswith("_"):
            named = ", ".join(get_close_matches(field, known, 3) or known[:_NAMED]) or "none"
            view.say(f"no item has the field {field}; fields of items are {named}")


def _selected(wanted: RecordFilter, count: int | None, lines: Iterable[bytes]) -> Iterable[bytes]:
    """Return the lines of the first ``count`` records that meet the conditions."""
    return islice(filter(wanted.chooses, lines), count)


def _scope(options: argparse.Namespace, wanted: RecordFilter | None) -> tuple[int, int | None] | None:
    """Return the start and count of the records to read for a file, as :func:`_save` takes them.

    With conditions, all are read: a repeated command continues after those that it has, whether they meet the
    conditions or not.
    """
    return None if wanted is None else (options.start, None)


async def _selected_groups(
    groups: AsyncIterator[Rows], chosen: RecordFilter | None, count: int | None
) -> AsyncIterator[Rows]:
    """Yield groups of the records that meet the conditions, ``count`` records in all."""
    async with reading(groups) as each:
        async for group in each:
            rows = group if chosen is None else [row for row in group if chosen.chooses(_encode(row))]
            rows = rows if count is None else rows[:count]
            count = None if count is None else count - len(rows)
            if rows:
                yield rows
            if count == 0:
                return


async def _without_keys(records: AsyncIterator[tuple[str, Row]], last: list[str]) -> AsyncIterator[Row]:
    """Yield records without their keys; ``last`` gets the key of the last one."""
    async with reading(records) as each:
        async for key, record in each:
            last[:] = [key]
            yield record


async def _save(
    view: View,
    key: JobKey,
    noun: str,
    records: JobRecords,
    *,
    meta: Sequence[str] = (),
    fields: Sequence[str] = (),
    select: Select | None = None,
    scope: tuple[int, int | None] | None = None,
) -> None:
    """Save the records of a job to a file. ``scope``: start and count of those to read, from which ``select`` chooses;
    without it, those of ``--start`` and ``--count``."""
    start, count = scope or (view.options.start, view.options.count)
    total = max((await records.stats(key)).totals.input_values - start, 0)
    total = total if count is None else min(total, count)

    def read(number: int, _: Row | None) -> AsyncIterator[Row]:
        return records.iter(key, start=start + number or None, count=total - number, meta=meta)

    selection = {"records": records.resource, "job": str(key), "start": start, "count": count, "meta": meta}
    await save(view, Download(noun, f"job {key}", total, selection, read, fields, select))


async def _save_items(view: View, key: JobKey) -> None:
    fields: Sequence[str] = view.options.fields or ()
    wanted = filter_by(conditions_of(view.options))

    def chosen(lines: Iterable[bytes]) -> Iterable[bytes]:
        if wanted is not None:
            lines = _selected(wanted, view.options.count, lines)
        return map(_only, lines) if fields else lines

    def _only(line: bytes) -> bytes:
        item = _decode(line)
        return _encode({name: item[name] for name in fields if name in item})

    select = chosen if fields or wanted is not None else None
    meta = ("_key", "_ts") if view.options.meta else ()
    await _save(
        view,
        key,
        "item",
        view.client.items,
        meta=meta,
        fields=fields,
        select=select,
        scope=_scope(view.options, wanted),
    )


def _chosen(view: View, item: Row) -> Row:
    """Return the fields of ``--fields`` as JSON shows them; the other forms choose them as columns."""
    names = view.options.fields
    return {name: item[name] for name in names if name in item} if names and view.output.form == "json" else item


async def _changed_groups(
    groups: AsyncIterator[Rows], index: int, change: Callable[[Row, int], Row]
) -> AsyncIterator[Rows]:
    """Yield groups of records changed by a function of the record and its index."""
    async with reading(groups) as each:
        async for group in each:
            yield [change(record, number) for number, record in enumerate(group, index)]
            index += len(group)


def _keyless(record: Row) -> tuple[Row, int]:
    """Return a record without its key, and its index."""
    return {name: value for name, value in record.items() if name != "_key"}, EntityKey.parse(record["_key"]).number


async def _numbered(records: AsyncIterator[tuple[str, Row]], change: Callable[[Row, int], Row]) -> AsyncIterator[Row]:
    """Yield records changed by a function of the record and its index, which its key has."""
    async with reading(records) as each:
        async for key, record in each:
            yield change(record, EntityKey.parse(key).number)


async def _changed(records: AsyncIterator[Row], index: int, change: Callable[[Row, int], Row]) -> AsyncIterator[Row]:
    """Yield records changed by a function of the record and its index."""
    async with reading(records) as each:
        async for record in each:
            yield change(record, index)
            index += 1


# ── requests ──

#: Field that a row has besides those of its record.
_INDEX: Final = "_index"
_REQUESTS: Final = (
    Column.field(_INDEX, "index", right=True, least=5),
    Column("started (UTC)", lambda record: clock(record.get("time")), least=TIME_WIDTH),
    Column.field("method"),
    Column.field("status", right=True),
    Column("took", lambda record: length(record.get("duration")), right=True, least=6),
    Column.field("parent", right=True, least=6),
    Column.field("url"),
    # The last column is the first to be left out of a narrow terminal.
    Column.field("rs", "bytes", right=True, least=8),
)


async def _requests(view: View) -> None:
    options, key = view.options, await selected_job(view)
    conditions = conditions_of(options)
    wanted = filter_by(conditions)
    if wants_file(view):
        select = None if wanted is None else partial(_selected, wanted, options.count)
        await _save(view, key, "request", view.client.requests, select=select, scope=_scope(options, wanted))
        return
    total = (await view.client.requests.stats(key)).totals.input_values
    start = first_of(view, total)

    def numbered(record: Row, index: int) -> Row:
        return {_INDEX: index, **record} if view.output.form == "table" else record

    if options.follow:
        stored = followed(view, key, view.client.requests, start=start, meta=("_key",))
        groups = _selected_groups(stored, wanted, options.count)
        await view.output.live(_changed_groups(groups, start, lambda record, _: numbered(*_keyless(record))), _REQUESTS)
        return
    count = view.output.count(options)
    records = view.client.requests.keyed(key, count=count, start=start or None, filters=conditions)
    number = await view.output.records(_numbered(records, numbered), _REQUESTS)
    if conditions:
        await view.output.note(f"requests of job {key}: {number} found among {total}")
    else:
        await note_shown(view, f"requests of job {key}", number, total)
    if number:
        await view.output.note(f"one request in full: scrapy platform requests {key} --start INDEX --count 1 --json")


# ── logs ──

_LEVELS: Final = {logging.getLevelName(level): level for level in LEVELS}
#: Messages of Scrapy at the start of a crawl: a heading, and about twenty lines of components or settings.
_LIST: Final = re.compile(r"(Enabled [a-z ]+|Overridden settings|Versions):\n")


def _log_columns(message: Callable[[str], str]) -> tuple[Column, ...]:
    return (
        Column("time (UTC)", lambda record: clock(record.get("time")), least=TIME_WIDTH),
        Column("level", lambda record: _level_name(record.get("level")), least=len("CRITICAL")),
        Column("message", lambda record: message(str(record.get("message", ""))), wrap=True),
    )


def _folded(message: str) -> str:
    """Return the heading of a list that Scrapy logs at the start of a crawl, and any other message unchanged."""
    found, lines = _LIST.match(message), message.count("\n")
    return f"{found[1]}: … ({lines} lines; logs --full)" if found and lines > 1 else message


#: Columns of log records, with Scrapy's lists folded or in full.
LOG_COLUMNS: Final = _log_columns(_folded)
_FULL_LOG_COLUMNS: Final = _log_columns(str)


def _level_name(level: object) -> str:
    return str(logging.getLevelName(level)) if isinstance(level, int) else ""


async def _logs(view: View) -> None:
    options, key = view.options, await selected_job(view)
    if wants_file(view):
        await _save_log(view, key)
        return
    counts = (await view.client.logs.stats(key)).counts
    lowest = _LEVELS[options.level]
    total = sum(count for level, count in counts.items() if level.isdigit() and int(level) >= lowest)
    start, columns = first_of(view, total), _FULL_LOG_COLUMNS if options.full else LOG_COLUMNS
    if options.follow:
        await view.output.live(_followed_log(view, key, lowest, start, options.count), columns)
        return
    number = await view.output.records(_log_records(view, key, lowest, start), columns)
    await note_shown(view, f"log records of job {key}", number, total)


async def _save_log(view: View, key: JobKey) -> None:
    options, lowest = view.options, _LEVELS[view.options.level]
    every = lowest <= min(LEVELS)

    def chosen(lines: Iterable[bytes]) -> Iterable[bytes]:
        stop = None if options.count is None else options.start + options.count
        return islice((line for line in lines if _has_level(_decode(line), lowest)), options.start, stop)

    # The platform numbers all records of a job, so those of a level are chosen from all.
    select, scope = (None, None) if every else (chosen, (0, None))
    await _save(view, key, "log record", view.client.logs, select=select, scope=scope)


async def _followed_log(view: View, key: JobKey, lowest: int, start: int, count: int | None) -> AsyncIterator[Rows]:
    """Yield groups of records of a level and above, without the first ``start`` of them."""
    place, last = 0, None if count is None else start + count
    every = lowest <= min(LEVELS)
    stored = followed(view, key, view.client.logs, start=start if every else 0, count=count if every else None)
    async with reading(stored) as groups:
        async for group in groups:
            if every:
                yield group
                continue
            chosen = [record for record in group if _has_level(record, lowest)]
            shown = chosen[max(start - place, 0) : None if last is None else max(last - place, 0)]
            place += len(chosen)
            if shown:
                yield shown
            if last is not None and place >= last:
                return


async def _log_records(view: View, key: JobKey, lowest: int, first: int) -> AsyncIterator[Row]:
    count = view.output.count(view.options)
    # The platform numbers all records of a job, so those of a level are counted here.
    every = lowest <= min(LEVELS)
    last = None if every or count is None else first + count
    place = 0
    stored = view.client.logs.iter(key, start=first or None, count=count) if every else view.client.logs.iter(key)
    async with reading(stored) as records:
        async for record in records:
            if place == last:
                return
            if every:
                yield record
            elif _has_level(record, lowest):
                if place >= first:
                    yield record
                place += 1


def _has_level(record: Row, lowest: int) -> bool:
    level = record.get("level")
    return isinstance(level, int) and level >= lowest


SUBCOMMANDS: Final = (
    platform_command(
        "items",
        _items,
        (
            ("scrapy platform items", "items of the newest job"),
            ("scrapy platform items 1/2/3 --fields name,price", "two fields of a job's items"),
            ("scrapy platform items 3 --start 1000 --count 100", "a hundred items, from index 1000 on"),
            ("scrapy platform items --where 'price > 20 and name ~ kettle'", "items that meet conditions"),
            ("scrapy platform items --search kettle", "items with a text in any field, whatever its case"),
            ("scrapy platform items --csv > items.csv", "all items of the newest job as CSV"),
            ("scrapy platform items 1/2/3 --output items.xlsx", "all items to a file; repeat the command to continue"),
            ("scrapy platform items --follow", "items of a running job, as they are stored"),
            ("scrapy platform items | jq .name", "in a pipe: all items, one JSON object per line"),
        ),
        JOB,
        argument("--fields", metavar="A,B,C", type=_field_names, help="only these fields, in this order"),
        *condition_options("items", "price > 20 and name ~ kettle"),
        argument("--meta", action="store_true", help="add _key, and _ts, the time when the item was stored"),
        follow_options("items"),
        paging_options("items"),
        download_options(),
        csv=True,
    ),
    platform_command(
        "requests",
        _requests,
        (
            ("scrapy platform requests", "requests of the newest job"),
            ("scrapy platform requests 3 --count 10", "the first ten requests of a job"),
            ("scrapy platform requests 3 --start 17 --count 1 --json", "the request with index 17, in full"),
            ("scrapy platform requests --follow", "requests of a running job, as they are stored"),
            ("scrapy platform requests --where 'status >= 400'", "requests that failed"),
            ("scrapy platform requests | jq .url", "in a pipe: all requests, one JSON object per line"),
        ),
        JOB,
        *condition_options("requests", "status >= 400 and url ~ kettle"),
        follow_options("requests"),
        paging_options("requests"),
        download_options(),
    ),
    platform_command(
        "logs",
        _logs,
        (
            ("scrapy platform logs", "log of the newest job"),
            ("scrapy platform logs 1/2/3 --level warning", "warnings and errors of a job"),
            ("scrapy platform logs -f --tail 20", "the end of the log, and new records of a running job"),
            ("scrapy platform logs --full", "with the lists of components and settings that Scrapy logs first"),
            ("scrapy platform logs --json --start 100 --count 50", "a part, as JSON lines"),
        ),
        JOB,
        argument(
            "--level", type=str.upper, choices=_LEVELS, default="DEBUG", help="only records of this level and above"
        ),
        argument(
            "--full",
            action="store_true",
            help="show the lists of components and settings at the start of a crawl in full",
        ),
        follow_options("records"),
        paging_options("records"),
        download_options(),
    ),
)
