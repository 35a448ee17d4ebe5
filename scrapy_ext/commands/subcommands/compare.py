"""``scrapy platform compare``: the items of two jobs by the value of a field: new, gone and changed ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.comparison import (
    ItemChanges,
    ItemIndex,
    changed_fields,
    compare_items,
    suggested_field,
)
from scrapy_ext.commands.options import argument, positive_number, repeated
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.selection import job_named
from scrapy_ext.commands.subcommand import CommandError, View, platform_command
from scrapy_ext.commands.text import shown

#: Changes shown of each kind, and items of each job that are compared, by default.
_SHOWN: Final = 50
_MOST: Final = 1_000_000

_COLUMNS: Final = (
    Column.field("change"),
    Column.field("value"),
    Column.field("item"),
    Column("fields", lambda record: ", ".join(map(_field, record["fields"])), wrap=True),
)


async def _compare(view: View) -> None:
    before, after = await job_named(view, view.options.job), await job_named(view, view.options.other)
    field = view.options.by or await _field_of(view, before, after)
    indexes = [await _index(view, key, field) for key in (before, after)]
    found = compare_items(*indexes, every_field=view.options.every_field)
    await view.output.records(_rows(view, (before, after), field, found), _COLUMNS)
    counts = f"new: {len(found.new)}, gone: {len(found.gone)}, changed: {len(found.changed)}, same: {found.same}"
    await view.output.note(f"items by {field}: {counts}")
    if found.aside:
        view.say(
            f"Not compared, since they differ in every pair: {', '.join(found.aside)}. --every-field compares them."
        )
    for key, index in zip((before, after), indexes, strict=True):
        if index.without or index.repeated:
            await view.output.note(
                f"job {key}: {index.without} without the field, {index.repeated} with a value of an earlier item"
            )
        if len(index.items) + index.without + index.repeated >= view.options.most:
            view.say(f"Only the first {view.options.most} items of job {key} were compared; --most N compares more.")


async def _field_of(view: View, before: JobKey, after: JobKey) -> str:
    counts = [(await view.client.items.stats(key)).counts for key in (before, after)]
    if (field := suggested_field(*counts)) is None:
        raise CommandError(
            "the items of these jobs have no field in common; compare jobs of one spider that have items"
        )
    return field


async def _index(view: View, key: JobKey, field: str) -> ItemIndex:
    index = ItemIndex(field, view.options.without)
    async with aclosing(view.client.items.stored(key)) as items:
        read = 0
        async for item in items:
            index.add(item.number, item.line)
            read += 1
            if read >= view.options.most:
                break
    return index


async def _rows(
    view: View, keys: tuple[JobKey, JobKey], field: str, found: ItemChanges
) -> AsyncIterator[dict[str, Any]]:
    count = view.options.count or _SHOWN
    for before, after in found.changed[:count]:
        old, new = await _item(view, keys[0], before), await _item(view, keys[1], after)
        fields = [
            {"field": change.name, "before": change.before, "after": change.after}
            for change in changed_fields(old, new, (*view.options.without, *found.aside))
        ]
        yield _row("changed", new.get(field), keys[1], after, fields)
    for change, key, numbers in (("new", keys[1], found.new), ("gone", keys[0], found.gone)):
        for number in sorted(numbers)[:count]:
            yield _row(change, (await _item(view, key, number)).get(field), key, number, [])


def _row(change: str, value: object, key: JobKey, number: int, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"change": change, "value": value, "item": str(key.entity(number)), "fields": fields}


async def _item(view: View, key: JobKey, number: int) -> dict[str, Any]:
    return await view.client.items.get(key.entity(number)) or {}


def _field(change: dict[str, Any]) -> str:
    return f"{change['field']}: {shown(change['before'])} → {shown(change['after'])}"


SUBCOMMANDS: Final = (
    platform_command(
        "compare",
        _compare,
        (
            ("scrapy platform compare 1/2/3 1/2/4", "new, gone and changed items of the second job"),
            ("scrapy platform compare 1/2/3 1/2/4 --by sku", "items with the same sku are the same item"),
            ("scrapy platform compare 1/2/3 1/2/4 --without scraped_at", "changes of this field do not count"),
        ),
        argument("job", metavar="JOB", help="the earlier job"),
        argument("other", metavar="OTHER", help="the later job"),
        argument("--by", metavar="FIELD", help="field that identifies an item (default: one that most items have)"),
        repeated("--without", metavar="FIELD", help="field that is not compared"),
        argument("--every-field", action="store_true", help="also compare fields that differ in every pair of items"),
        argument(
            "--count",
            type=positive_number,
            metavar="N",
            help=f"changes of each kind that are shown (default: {_SHOWN})",
        ),
        argument(
            "--most",
            type=positive_number,
            default=_MOST,
            metavar="N",
            help="items of each job that are compared (default: %(default)s)",
        ),
    ),
)
