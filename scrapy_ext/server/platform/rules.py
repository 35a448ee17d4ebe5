"""Paths about rules: ``/api/projects/<project>/<name>`` for those of a project, ``/api/<name>`` for the server's; here
those of retention rules, ``retention``.

:func:`declare` adds the same paths for each sort of rules. They are this package's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from starlette.responses import Response

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform import retention
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.rules import NextJob, RuleSort
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Handler, Routes
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.rules.rules import RuleStore

_MAX_BODY: Final = 64 * 1024

_CHANGE: Final[schemas.Schema] = schemas.record({"enabled": {"type": "boolean"}}, "enabled", only=True)


class RulePaths(Struct, frozen=True):
    """Paths about the rules of a sort."""

    sort: RuleSort[Any, Any, Any]
    #: Returns the rules of a store.
    rules: Callable[[Store], RuleStore[Any, Any]]
    #: The answer of a preview; and whether there is a list of the jobs that are next.
    found: str = ""
    has_next: bool = True

    def parse(self, call: Call, fields: dict[str, Any]) -> Any:
        """Return a new rule; raise :class:`ContractError`."""
        return self.sort.parse(fields)

    # ── handlers ──

    async def of_project(self, call: Call) -> Response:
        return json(await self.rules(call.store).in_force(call.project))

    async def of_server(self, call: Call) -> Response:
        return json(await self.rules(call.store).listed(None))

    async def next(self, call: Call) -> Response:
        project, rules = call.project, self.rules(call.store)
        enabled = [rule for rule in await rules.in_force(project) if rule.enabled]
        return json(await rules.next_jobs(enabled, [project]))

    async def add(self, call: Call) -> Response:
        rules = self.rules(call.store)  # refuses limited keys before the body is read
        call.noted["purpose"] = self.sort.name
        added = await rules.add(owner_of(call), await self._new(call))
        call.wrote(1)
        return json(added, 201)

    async def preview_new(self, call: Call) -> Response:
        rules = self.rules(call.store)  # as above
        return json(await self.preview_of(call, rules.unstored(owner_of(call), await self._new(call))))

    async def preview_one(self, call: Call) -> Response:
        rules = self.rules(call.store)
        rule = found(await rules.get(*_place(call)), _missing(call))
        return json(await self.preview_of(call, rule))

    async def preview_of(self, call: Call, rule: Any) -> Any:
        """Return the preview of a rule, which may not be stored."""
        return await self.rules(call.store).preview(rule, await projects_of(call))

    async def check(self, call: Call, new: Any) -> None:
        """Raise :class:`ContractError` for a new rule whose fault only a process finds."""

    async def _new(self, call: Call) -> Any:
        record: type[Struct] = self.sort.new
        new = self.parse(
            call, await json_bodies.known_fields(call.request, fields_of(record), self.sort.example, _MAX_BODY)
        )
        await self.check(call, new)
        return new

    async def read(self, call: Call) -> Response:
        return json(found(await self.rules(call.store).get(*_place(call)), _missing(call)))

    async def enable(self, call: Call) -> Response:
        rules = self.rules(call.store)  # as above
        call.noted["purpose"] = self.sort.name
        enabled = await json_bodies.flag_of(call.request, "enabled", _MAX_BODY)
        return json(found(await rules.enable(*_place(call), enabled), _missing(call)))

    async def remove(self, call: Call) -> Response:
        call.noted["purpose"] = self.sort.name
        if not await self.rules(call.store).remove(*_place(call)):
            raise not_found(_missing(call))
        return Response(status_code=204)


def declare(routes: Routes, paths: RulePaths) -> None:
    """Add the paths about the rules of a purpose."""
    sort = paths.sort
    of_project, of_server = f"/api/projects/{{project}}/{sort.name}", f"/api/{sort.name}"
    many = schemas.value("The rules.", schemas.Many(sort.rule))
    one = schemas.value("The rule.", sort.rule)
    data = f"The data that would be {sort.done} now, and the jobs that are next."
    preview = schemas.value(paths.found or data, sort.preview)
    new, change = schemas.Body(schemas.JSON, sort.new), schemas.Body(schemas.JSON, _CHANGE)
    jobs = schemas.value("The jobs, the next one first.", schemas.Many(NextJob))

    def add(path: str, summary: str, answer: schemas.AnswerShape, handler: Handler, **more: Any) -> None:
        access = Access.KEY if of_project in path else Access.SERVER
        routes.add(path, summary, answer, access=access, **more)(handler)

    summary = f"Read the {sort.noun}s that cover a project: those of the server (project: null), and its own."
    add(f"GET {of_project}", summary, many, paths.of_project)
    add(f"GET {of_server}", f"Read the {sort.noun}s of the server.", many, paths.of_server)
    if paths.has_next:
        summary = f"Read the jobs of a project whose data is {sort.done} next by the enabled {sort.noun}s, and when."
        add(f"GET {of_project}/next", summary, jobs, paths.next)
    for owner, base in (("a project", of_project), ("the server", of_server)):
        rule = f"a {sort.noun} of {owner}"
        add(
            f"POST {base}",
            f"Add {rule}. It is off unless enabled is true.",
            one,
            paths.add,
            status=201,
            body=new,
            event=ChangeEvents.RULE_CREATED,
        )
        add(f"POST {base}/preview", f"Preview {rule} without adding it.", preview, paths.preview_new, body=new)
        add(f"GET {base}/{{rule}}/preview", f"Preview {rule}, which may be off.", preview, paths.preview_one)
        add(f"GET {base}/{{rule}}", f"Read {rule}.", one, paths.read)
        add(
            f"PATCH {base}/{{rule}}",
            f"Enable or disable {rule}.",
            one,
            paths.enable,
            body=change,
            event=ChangeEvents.RULE_CHANGED,
        )
        removed = schemas.AnswerShape("It is removed.")
        add(
            f"DELETE {base}/{{rule}}",
            f"Remove {rule}.",
            removed,
            paths.remove,
            status=204,
            event=ChangeEvents.RULE_REMOVED,
        )


def owner_of(call: Call) -> int | None:
    return call.project if call.has_part("project") else None


async def projects_of(call: Call) -> list[int]:
    project = owner_of(call)
    return await call.store.jobs.projects() if project is None else [project]


def _place(call: Call) -> tuple[int | None, int]:
    return owner_of(call), call.part_number("rule")


#: Paths of the rules that need nothing else.
ROUTES: Final = Routes()
declare(ROUTES, RulePaths(retention.SORT, rules=lambda store: store.retention))


def _missing(call: Call) -> str:
    return f"There is no rule {_place(call)[-1]}. Use a number of the list of them."
