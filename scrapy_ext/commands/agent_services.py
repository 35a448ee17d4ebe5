"""The services for the tools of agents over stdio: those of the settings, through the clients of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from scrapy_ext.api.extraction import OUTPUTS
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.budget import OverBudgetError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.extraction.run import ExtractService
from scrapy_ext.server.mcp.services import ApiAnswer, ApiCall, ApiError


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
