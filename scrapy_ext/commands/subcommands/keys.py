"""``scrapy platform keys``: API keys in a server's data. Servers that run on it follow within seconds."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.stores import add_store_options, check_there, chosen_store
from scrapy_ext.commands.subcommand import (
    FAILED,
    OK,
    CommandError,
    Subcommand,
    add_output_options,
    failure,
    project_number,
)
from scrapy_ext.commands.terminal.output import Column, Output
from scrapy_ext.commands.terminal.text import clock
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store import Store
    from scrapy_ext.server.store.engine.address import DatabaseUrl


def _allowed(key: Mapping[str, Any]) -> str:
    if key["suspended"]:
        return "nothing: suspended"
    platform = [] if key["projects"] == [] else ["read", "write"] if key["write"] else ["read"]
    return ", ".join([*platform, *(["extract"] if key["extraction"] else [])])


_COLUMNS: Final = (
    Column.field("name", "key"),
    Column("projects", lambda key: "all" if key["projects"] is None else ", ".join(map(str, key["projects"]))),
    Column("may", _allowed),
    Column("organisation", lambda key: key["organisation"] or ""),
    Column("made (UTC)", lambda key: clock(key["created"])[:16]),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "list", "remove", "suspend", "resume"), help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the key; list needs none")
    parser.add_argument(
        "--opens",
        choices=("platform", "extraction", "both"),
        help="with add: the service that the key opens (default: platform)",
    )
    parser.add_argument(
        "--organisation",
        metavar="NAME",
        help="with add: whose key of the extraction service it is; --key-domain-rate limits the keys of one together "
        "(default: each key by itself)",
    )
    parser.add_argument(
        "--project",
        type=project_number,
        action="append",
        metavar="N",
        help="with add: a project that the key opens (may be repeated; default: all)",
    )
    parser.add_argument("--read-only", action="store_true", help="with add: the key opens reading only")
    add_store_options(parser)
    add_output_options(parser)


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    # Only this command and those like it need the server's code.
    from scrapy_ext.server.store import StoreError

    try:
        _check(options)
        asyncio.run(_with_store(chosen_store(settings, options), options))
    except (CommandError, ContractError, StoreError, SettingError) as error:
        return _failed(error)
    return OK


def _failed(error: Exception) -> int:
    print(failure("keys", error), end="", file=sys.stderr)  # noqa: T201  # a command speaks
    return FAILED


def _check(options: argparse.Namespace) -> None:
    if options.action == "list" and options.name is not None:
        raise CommandError("list takes no name: it lists all keys")
    if options.action != "list" and options.name is None:
        raise CommandError(f"{options.action} needs a name, as in `scrapy platform keys {options.action} reports`")
    if options.action != "add" and (options.project or options.read_only or options.opens or options.organisation):
        raise CommandError("--opens, --organisation, --project and --read-only belong to add")
    if options.opens == "extraction" and (options.project or options.read_only):
        raise CommandError("--project and --read-only are about the platform, which --opens extraction leaves out")
    if options.organisation and options.opens not in ("extraction", "both"):
        raise CommandError("--organisation is about the extraction service; add --opens extraction or --opens both")


async def _with_store(where: Path | DatabaseUrl, options: argparse.Namespace) -> None:
    from scrapy_ext.server.store import Store

    if isinstance(where, Path) and options.action != "add":
        check_there(where)
    store = await Store.open(where)
    try:
        await _ACTIONS[options.action](store, options)
    finally:
        await store.close()


async def _add(store: Store, options: argparse.Namespace) -> None:
    from scrapy_ext.server.auth.keyring import add_key

    projects = None if options.project is None else frozenset(options.project)
    if options.opens == "extraction":
        projects = frozenset()
    key = await add_key(
        store,
        options.name,
        projects,
        may_write=not options.read_only,
        extraction=options.opens in ("extraction", "both"),
        organisation=options.organisation or "",
    )
    print(key)  # noqa: T201  # the command's output, alone, so that a program can take it
    print("This is shown once; only its hash is stored.", file=sys.stderr)  # noqa: T201


async def _list(store: Store, options: argparse.Namespace) -> None:
    keys = await store.keys.named()

    async def records() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            projects = None if key.projects is None else sorted(key.projects)
            yield {
                "name": key.name,
                "projects": projects,
                "write": key.may_write,
                "extraction": key.extraction,
                "organisation": key.organisation or None,
                "suspended": key.suspended,
                "created": key.created,
            }

    output = Output.of(options)
    await output.records(records(), _COLUMNS)
    await output.note(f"keys with names: {len(keys)}")


async def _remove(store: Store, options: argparse.Namespace) -> None:
    _must_be_there(options, await store.keys.remove(options.name))


async def _suspend(store: Store, options: argparse.Namespace) -> None:
    _must_be_there(options, await store.keys.suspend(options.name, options.action == "suspend"))


def _must_be_there(options: argparse.Namespace, found: bool) -> None:
    if not found:
        raise CommandError(f"there is no key {options.name[:80]}; `scrapy platform keys list` lists them")


_ACTIONS: Final = {"add": _add, "list": _list, "remove": _remove, "suspend": _suspend, "resume": _suspend}

SUBCOMMAND: Final = Subcommand(
    name="keys",
    examples=(
        ("scrapy platform keys add reports --project 7 --read-only", "a key that reads project 7; it is shown once"),
        ("scrapy platform keys list", "the keys that have names, and what they open"),
        ("scrapy platform keys add shop --opens extraction --organisation acme", "a key of the extraction service"),
        ("scrapy platform keys suspend shop", "it opens nothing until it is resumed"),
        ("scrapy platform keys remove reports", "requests with it are refused within seconds"),
    ),
    add_options=_add_options,
    run=_run,
)
