"""``scrapy platform retention``: rules by which old data is removed."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.retention import WHAT, Preview, Rule, data_in_words, limits_in_words, rule_of
from scrapy_ext.commands.options import argument, repeated
from scrapy_ext.commands.rules import RuleActions, condition_fields, jobs_found, records_found
from scrapy_ext.commands.subcommand import with_actions
from scrapy_ext.commands.terminal.text import counted


def _fields(options: Any) -> dict[str, Any]:
    return {
        "what": options.what,
        **condition_fields(options),
        "collections": options.collection or None,
        "only_delivered": options.only_delivered or None,
    }


def _found(preview: Preview) -> str:
    if preview.collections:
        return f"Now these are {records_found(preview)} of {counted(preview.collections, 'collection')}."
    return jobs_found(preview)


_ACTIONS: Final = RuleActions(
    command="retention",
    verb="remove",
    does="removes",
    done="removed",
    rule=Rule,
    rules=lambda view: view.client.retention,
    fields=_fields,
    parse=rule_of,
    data=data_in_words,
    limits=limits_in_words,
    found=_found,
)
_NEW: Final = (
    argument("what", nargs="+", choices=WHAT, metavar="WHAT", help=f"data to remove: {', '.join(WHAT)}"),
    repeated("--collection", metavar="NAME", help="for collections: the name of one, or * for all"),
    argument("--only-delivered", action="store_true", help="only records that were delivered"),
)

SUBCOMMANDS: Final = (
    with_actions(
        "retention",
        _ACTIONS.actions(_NEW),
        (
            ("scrapy platform retention add items requests --older-than 90 --dry-run", "preview: jobs and bytes"),
            ("scrapy platform retention add jobs --keep-last 100 --spider books", "keep the newest 100 jobs"),
            ("scrapy platform retention", "the rules in force"),
            ("scrapy platform retention next", "the jobs that go next"),
        ),
    ),
)
