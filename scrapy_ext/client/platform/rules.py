"""Rules of projects and of the server, of any purpose. The hosted platform does not have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.rules import NextJob, RuleRecord
from scrapy_ext.client.platform.calls import JSON, delete, get, path, send_json
from scrapy_ext.client.platform.resource import Resource

RuleT = TypeVar("RuleT", bound=RuleRecord)
PreviewT = TypeVar("PreviewT")

_Jobs = list[NextJob]
_Many = list[RuleT]


class Rules(Resource, Generic[RuleT, PreviewT]):
    """Rules of a purpose. ``project`` None: those of the server."""

    #: Last part of the paths of the rules.
    _name: ClassVar[str]
    _rule: type[RuleT]
    _rules: type[_Many[RuleT]]
    _preview: type[PreviewT]

    async def list(self, project: int | None) -> _Many[RuleT]:
        """Return the rules that cover a project: those of the server, and its own."""
        return await self._json(get(Host.APP, self._path(project), accept=JSON), self._rules)

    async def create(self, project: int | None, fields: Mapping[str, Any]) -> RuleT:
        """Add a rule. Sent once: a second attempt could add another."""
        return await self._json(send_json("POST", self._path(project), dict(fields), repeatable=False), self._rule)

    async def preview(self, project: int | None, rule: int | Mapping[str, Any]) -> PreviewT:
        """Return the data that a rule, given by number or fields, would apply to now."""
        if isinstance(rule, int):
            return await self._json(get(Host.APP, self._path(project, rule, "preview"), accept=JSON), self._preview)
        return await self._json(send_json("POST", self._path(project, "preview"), dict(rule)), self._preview)

    async def next(self, project: int) -> _Jobs:
        """Return the jobs that the enabled rules apply to next."""
        return await self._json(get(Host.APP, self._path(project, "next"), accept=JSON), _Jobs)

    async def enable(self, project: int | None, id: int, enabled: bool) -> RuleT:
        """Enable a rule, or disable it."""
        return await self._json(send_json("PATCH", self._path(project, id), {"enabled": enabled}), self._rule)

    async def delete(self, project: int | None, id: int) -> None:
        """Remove a rule; its effects stay."""
        await self._transport.send(delete(Host.APP, self._path(project, id)))

    def _path(self, project: int | None, *rest: int | str) -> str:
        return path("api", *(() if project is None else ("projects", project)), self._name, *rest)
