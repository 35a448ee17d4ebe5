"""``scrapy platform mcp``: the tools for agents over standard input and output.

Standard output has the messages of the protocol alone; all else goes to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import OUTPUTS
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.budget import OverBudgetError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.extraction.run import ExtractService
from scrapy_ext.commands.options import argument, project_number
from scrapy_ext.commands.subcommand import INTERRUPTED, OK, CommandError, Subcommand, failed
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.extraction.from_settings import params_of
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.services import new_platform_client, services
from scrapy_ext.server.mcp.services import Agent, ApiAnswer, ApiCall, ApiError, Need, Services, decoded
from scrapy_ext.settings import SettingError

#: Bytes of a message, and of a read.
_MOST: Final = 2**20
_PIECE: Final = 64 * 1024
_MISSING: Final = "the extra mcp is not installed: pip install 'scrapy-ext[mcp]'"
#: Seconds to wait for the rights of the key, which an agent waits for.
_RIGHTS_SECONDS: Final = 5.0
#: The right of a key for the tools of each kind, and the reason without it.
_NEEDED: Final = {
    Need.RUN: ("run", "the key of PLATFORM_API_KEY may read, and not write."),
    Need.WRITE: ("manage", "the key of PLATFORM_API_KEY may not change schedules."),
}
_SWITCHED_OFF: Final = "the command was started without --allow-write."


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    if options.project is not None:
        settings = settings.copy()
        settings.set(names.PLATFORM_PROJECT.name, options.project, priority="cmdline")
    try:
        asyncio.run(_serve(settings, allow_write=options.allow_write))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (CommandError, PlatformError, EmbeddedServerError, SettingError, ContractError) as error:
        return failed("mcp", error)
    return OK


async def _serve(settings: BaseSettings, *, allow_write: bool) -> None:
    """Serve one agent until the end of standard input."""
    try:
        from mcp.server.stdio import stdio_server  # half a second, for this subcommand alone

        from scrapy_ext.server.mcp.sdk import new_server
    except ImportError:
        raise CommandError(_MISSING) from None
    params, extraction = params_of(settings), ExtractService(settings, None)
    withheld = {} if allow_write else dict.fromkeys((Need.RUN, Need.WRITE, Need.EXTRACT), _SWITCHED_OFF)
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(
            services(settings, extraction=allow_write, platform=True, runner=allow_write)
        )
        client = await stack.enter_async_context(new_platform_client(settings, found))
        if allow_write:
            await stack.enter_async_context(extraction.connected(found))
        reached = ClientServices(client, extraction, params)
        agent = Agent(reached, withheld or await _withheld(reached))
        server = new_server(lambda _: agent, f"The configured project is {found.project}.")
        # With its own reader of standard input, which waits in a thread, Ctrl-C would wait for the next message.
        messages = _Messages()
        async with stdio_server(cast("Any", messages)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        if messages.has_too_long:
            raise CommandError(f"a message has over {_MOST} bytes; send less")


class _User(msgspec.Struct):
    """The answer of ``/api/v2/users/me``; None: the platform does not report rights."""

    rights: list[str] | None = None


async def _withheld(services: Services) -> dict[Need, str]:
    """Return the reasons for which tools are not offered to the key; none where its rights are not known."""
    call = ApiCall(path="/api/v2/users/me", query=(("rights", "1"),))
    try:
        async with timeout_after(_RIGHTS_SECONDS):
            rights = decoded(await services.call(call), _User).rights
    except (ApiError, *TIMEOUT_ERRORS):
        return {}  # each tool reports the error
    if rights is None:
        return {}
    return {need: reason for need, (right, reason) in _NEEDED.items() if right not in rights}


class _Messages:
    """The lines of standard input, up to one that is too long."""

    def __init__(self) -> None:
        self.has_too_long = False

    async def __aiter__(self) -> AsyncIterator[str]:
        read, rest = BlockingCalls("standard input"), b""
        while not self.has_too_long and (data := await read(lambda: os.read(0, _PIECE))):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
            self.has_too_long = len(rest) > _MOST


class ClientServices:
    """The services through a client of each. ``params`` are the fields of EXTRACT_API_PARAMS."""

    def __init__(self, client: PlatformClient, extraction: ExtractService, params: Mapping[str, Any]) -> None:
        self._client = client
        self._extraction = extraction
        # A tool chooses what is returned, and these how pages are fetched.
        self._params = {name: value for name, value in params.items() if name not in OUTPUTS and value is not None}

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Make a call to the platform; raises :class:`ApiError`."""
        first = call.path.split("/")[1]
        made = ClientCall(
            method=call.method,
            host=Host.APP if first == "api" else Host.STORAGE,
            path=call.path,
            parameters=call.query,
            body=call.body or None,
            content_type=call.kind,
            accept=call.accept,
        )
        try:
            return ApiAnswer(*await self._client.beginnings.read(made, call.limit))
        except PlatformError as error:
            raise ApiError(str(error), error.status) from None

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of an extraction request; raises :class:`ApiError`."""
        params = {} if fields.get("serp") else self._params
        try:
            return await self._extraction.extract({**params, **fields}, _domain(fields["url"]))
        except ExtractError as error:
            raise ApiError(str(error), error.status) from None
        except (ContractError, OverBudgetError, Closing) as error:
            raise ApiError(str(error)) from None


def _domain(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


SUBCOMMANDS: Final = (
    Subcommand(
        "mcp",
        (
            ("scrapy platform mcp", "an agent reads jobs, items, logs and schedules"),
            ("scrapy platform mcp --allow-write", "it also runs and stops crawls, and fetches pages"),
            ("scrapy platform mcp --project 3", "the project that the agent uses, if its user names none"),
        ),
        (
            argument(
                "--allow-write",
                action="store_true",
                help="offer the tools that run, stop and schedule crawls, and those that fetch pages, too",
            ),
            argument("--project", type=project_number, metavar="ID", help="project of the agent (PLATFORM_PROJECT)"),
        ),
        _run,
        details="The agent starts this command, writes to its standard input and reads its standard output. It has the "
        "rights of the keys in the settings. Without PLATFORM_URL, an embedded server opens the project's data.",
    ),
)
