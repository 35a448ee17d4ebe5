"""``scrapy platform keys``: the API keys of a server's store. Running servers apply a change within seconds."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext.api.platform.changes import ChangeEvents, change_event
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.options import argument, output_options, project_number
from scrapy_ext.commands.output import Column, StandardOutput
from scrapy_ext.commands.stores import add_store_options, check_exists, chosen_store
from scrapy_ext.commands.subcommand import OK, CommandError, Subcommand, failed
from scrapy_ext.commands.text import clock
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store import Store
    from scrapy_ext.server.store.engine.address import DatabaseUrl


def _access(key: Mapping[str, Any]) -> str:
    if key["suspended"]:
        return "none: suspended"
    write = ["write"] if key["write"] else ["run"] if key.get("run") else []
    platform = [] if key["projects"] == [] else ["read", *write]
    return ", ".join([*platform, *(["extract"] if key["extraction"] else [])])


_COLUMNS: Final = (
    Column.field("name", "key"),
    Column("projects", lambda key: "all" if key["projects"] is None else ", ".join(map(str, key["projects"]))),
    Column("access", _access),
    Column("organisation", lambda key: key["organisation"] or ""),
    Column("created (UTC)", lambda key: clock(key["created"])[:16]),
)


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    # Only some subcommands need the server's code.
    from scrapy_ext.server.store import StoreError

    try:
        _check(options)
        asyncio.run(_with_store(chosen_store(settings, options), options))
    except (CommandError, ContractError, StoreError, SettingError) as error:
        return failed("keys", error)
    return OK


def _check(options: argparse.Namespace) -> None:
    if options.action == "list" and options.name is not None:
        raise CommandError("list has no argument NAME: it lists all keys")
    if options.action != "list" and options.name is None:
        raise CommandError(f"{options.action} needs a name, as in `scrapy platform keys {options.action} reports`")
    if options.action != "add" and (
        options.project or options.read_only or options.run_only or options.opens or options.organisation
    ):
        raise CommandError(
            "--opens, --organisation, --project, --read-only and --run-only are options of add; leave them out"
        )
    if options.read_only and options.run_only:
        raise CommandError("--read-only and --run-only exclude each other; use one of them")
    if options.opens == "extraction" and (options.project or options.read_only or options.run_only):
        raise CommandError(
            "--project, --read-only and --run-only are for the platform, to which --opens extraction gives no "
            "access; leave them out, or write --opens both"
        )
    if options.organisation and options.opens not in ("extraction", "both"):
        raise CommandError("--organisation is for the extraction service; add --opens extraction or --opens both")


async def _with_store(where: Path | DatabaseUrl, options: argparse.Namespace) -> None:
    from scrapy_ext.server.store import Store
    from scrapy_ext.server.store.activity import SERVER

    if isinstance(where, Path) and options.action != "add":
        check_exists(where)
    store = await Store.open(where)
    try:
        await _ACTIONS[options.action](store, options)
        if options.action != "list":
            fields = {"key": options.name, "done": options.action}
            await store.activity.add(SERVER, [change_event(_EVENTS[options.action], _COMMAND, fields)])
    finally:
        await store.close()


async def _add(store: Store, options: argparse.Namespace) -> None:
    from scrapy_ext.server.auth.api_keys import add_key

    projects = None if options.project is None else frozenset(options.project)
    if options.opens == "extraction":
        projects = frozenset()
    key = await add_key(
        store,
        options.name,
        projects,
        may_write=not (options.read_only or options.run_only),
        may_run=options.run_only,
        extraction=options.opens in ("extraction", "both"),
        organisation=options.organisation or "",
    )
    sys.stdout.write(f"{key}\n")
    sys.stderr.write("The key is not shown again; only its hash is stored.\n")


async def _list(store: Store, options: argparse.Namespace) -> None:
    keys = await store.keys.named()

    async def records() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            projects = None if key.projects is None else sorted(key.projects)
            yield {
                "name": key.name,
                "projects": projects,
                "write": key.may_write,
                **({"run": True} if key.may_run else {}),
                "extraction": key.extraction,
                "organisation": key.organisation or None,
                "suspended": key.suspended,
                "created": key.created,
            }

    output = StandardOutput.of(options)
    await output.records(records(), _COLUMNS)
    await output.note(f"named keys: {len(keys)}")


async def _remove(store: Store, options: argparse.Namespace) -> None:
    _check_found(options, await store.keys.remove(options.name))


async def _suspend(store: Store, options: argparse.Namespace) -> None:
    _check_found(options, await store.keys.suspend(options.name, options.action == "suspend"))


def _check_found(options: argparse.Namespace, found: bool) -> None:
    if not found:
        raise CommandError(f"there is no key {options.name[:80]}; `scrapy platform keys list` lists the keys")


_COMMAND: Final = "scrapy platform keys"
_EVENTS: Final = {
    "add": ChangeEvents.KEY_CREATED,
    "remove": ChangeEvents.KEY_REMOVED,
    **dict.fromkeys(("suspend", "resume"), ChangeEvents.KEY_CHANGED),
}
_ACTIONS: Final = {"add": _add, "list": _list, "remove": _remove, "suspend": _suspend, "resume": _suspend}

SUBCOMMANDS: Final = (
    Subcommand(
        name="keys",
        examples=(
            ("scrapy platform keys add reports --project 7 --read-only", "a key that may read project 7; shown once"),
            ("scrapy platform keys list", "the named keys and their access"),
            ("scrapy platform keys add shop --opens extraction --organisation acme", "a key of the extraction service"),
            ("scrapy platform keys suspend shop", "requests with the key are refused until it is resumed"),
            ("scrapy platform keys remove reports", "requests with the key are refused within seconds"),
        ),
        arguments=(
            argument("action", choices=tuple(_ACTIONS), help="action; add prints the new key"),
            argument("name", nargs="?", metavar="NAME", help="name of the key (not for list)"),
            argument(
                "--opens",
                choices=("platform", "extraction", "both"),
                help="with add: services that the key has access to (default: platform)",
            ),
            argument(
                "--organisation",
                metavar="NAME",
                help="with add: organisation of a key of the extraction service; --key-domain-rate limits its keys "
                "together (default: each key by itself)",
            ),
            argument(
                "--project",
                type=project_number,
                action="append",
                metavar="N",
                help="with add: a project that the key has access to (may be repeated; default: all)",
            ),
            argument("--read-only", action="store_true", help="with add: the key may only read"),
            argument(
                "--run-only", action="store_true", help="with add: the key may read, run, stop and tag jobs, no more"
            ),
            add_store_options,
            output_options(),
        ),
        run=_run,
    ),
)
