"""``/ui/<project>/retention`` and ``/ui/<project>/deliveries``: the rules that cover a project, and the jobs that they
apply to next; ``/new``: a form; ``/<number>``: one rule with a preview.

A rule is enabled from a page that has its preview. The form for a new one shows the preview first, and adds an enabled
rule only with the fields that it was shown for. Rules of the server are changed by those who manage all projects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform import deliveries, retention
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.rules import KEEP, JobsPreview, RuleRecord, RuleSort
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.ui.frame import Link, MissingError, PageServices, UiPage, Visit, field_errors
from scrapy_ext.server.ui.record_form import controls, default_texts, given_fields, texts_of

_NOT_EVERYWHERE: Final = (
    "This is a rule of the server. Only those who manage all projects change it: log in with such a key."
)


class _Row(NamedTuple):
    rule: RuleRecord
    #: Why an enabled rule is not applied now.
    failure: str | None
    data: str
    limits: str
    more: Sequence[str]
    may_change: bool


@dataclass(frozen=True)
class _Purpose:
    """Pages of the rules of a sort."""

    sort: RuleSort[Any, Any, Any]
    #: The sentence about no rules.
    none: str
    #: The sentence about jobs with the tag ``keep``, and the event of the activity.
    kept: str
    event: str
    #: The time within which due jobs are handled; and the sentence about none.
    round: str
    no_jobs: str
    #: What an enabled rule does, and the end of a removed one, in sentences.
    enabling: str
    removing: str
    rules: Callable[[Store], RuleStore[Any, Any]]
    #: Returns the rule with the given fields; raises :class:`ContractError`.
    parse: Callable[[PageServices, Mapping[str, Any]], Any]
    #: Returns the preview of a rule for which these jobs were found; None: the jobs are all of it.
    previewed: Callable[[PageServices, Any, JobsPreview], Awaitable[JobsPreview]] | None = None

    @property
    def name(self) -> str:
        return self.sort.name

    def _path(self, visit: Visit) -> str:
        return f"/ui/{visit.project}/{self.name}"

    # ── the list ──

    async def show(self, visit: Visit) -> Response:
        rules = self.rules(visit.store)
        found = await rules.in_force(visit.project)
        enabled = [rule for rule in found if rule.enabled]
        return visit.rendered(
            "rules.html",
            purpose=self,
            rows=[self._row(visit, rule) for rule in found],
            jobs=await rules.next_jobs(enabled, [visit.project]),
            enabled=len(enabled),
            path=self._path(visit),
            now=visit.store.clock(),
        )

    def _row(self, visit: Visit, rule: Any) -> _Row:
        sort = self.sort
        more = [text(rule) for text in sort.columns.values()]
        may_change = visit.may_write if rule.project is not None else visit.grant.may_everywhere(Action.MANAGE)
        return _Row(rule, getattr(rule, "failure", None), sort.data(rule), sort.limits(rule), more, may_change)

    # ── one rule ──

    async def one(self, visit: Visit) -> Response:
        owner = None if visit.text("of_server") == "1" else visit.project
        rule = await self.rules(visit.store).get(owner, visit.request.path_params["rule"])
        if rule is None:
            raise MissingError
        return visit.rendered(
            "rule.html",
            purpose=self,
            row=self._row(visit, rule),
            # Without it, nothing is read of the jobs that an enabled rule has handled.
            preview=await self._preview(visit, rule) if not rule.enabled or visit.text("preview") else None,
            path=self._path(visit),
            now=visit.store.clock(),
        )

    async def _preview(self, visit: Visit, rule: Any) -> JobsPreview:
        everywhere = rule.project is None and visit.grant.all_projects
        projects = await visit.store.jobs.projects() if everywhere else [visit.project]
        found = await self.rules(visit.store).preview(rule, projects)
        return found if self.previewed is None else await self.previewed(visit.services, rule, found)

    async def act(self, visit: Visit) -> Response:
        """Enable, disable or remove a rule."""
        action, owner = visit.form.get("action"), self._owner(visit)
        number = number_of(visit.form.get("number") or "", "number", "Use the buttons of the page.")
        rules = self.rules(visit.store)
        match action:
            case "enable" | "disable":
                found: object = await rules.enable(owner, number, action == "enable")
            case "remove":
                found = await rules.remove(owner, number)
            case _:
                raise refused("action", "must be enable, disable or remove", "Use the buttons of the page.")
        if not found:
            raise MissingError
        event = ChangeEvents.RULE_REMOVED if action == "remove" else ChangeEvents.RULE_CHANGED
        await self._note(visit, owner, event, rule=number)
        return visit.redirect(self._path(visit), "removed" if action == "remove" else "saved")

    def _owner(self, visit: Visit) -> int | None:
        """Return the owner of the rule of a form: the project, or None for the server."""
        if not visit.form.get("of_server"):
            return visit.project
        if not visit.grant.may_everywhere(Action.MANAGE):
            raise Refusal(403, _NOT_EVERYWHERE)
        return None

    async def _note(self, visit: Visit, owner: int | None, event: str, **fields: object) -> None:
        note = visit.note_server if owner is None else visit.note
        await note(event, purpose=self.name, **fields)

    # ── a new rule ──

    async def form(self, visit: Visit) -> Response:
        visit.require_write()
        given = {**default_texts(self.sort.new), "spider": visit.text("spider")}
        return await self._rendered(visit, given, {})

    async def save(self, visit: Visit) -> Response:
        """Add a rule, or show its preview above the form."""
        given, owner = texts_of(self.sort.new, visit.form), self._owner(visit)
        try:
            new = self.parse(visit.services, {"what": [], **given_fields(self.sort.new, given)})
            previewed = sha256(msgspec.json.encode((new, owner))).hexdigest()
            action = visit.form.get("action")
            if action != "off" and (action != "add" or visit.form.get("previewed") != previewed):
                rule = self.rules(visit.store).unstored(owner, new)
                return await self._rendered(visit, given, {}, (rule, previewed))
            added = await self.rules(visit.store).add(owner, msgspec.structs.replace(new, enabled=action == "add"))
        except ContractError as error:
            return await self._rendered(visit, given, field_errors(error), status=error.status)
        await self._note(visit, owner, ChangeEvents.RULE_CREATED, id=added.id)
        return visit.redirect(self._path(visit), "saved")

    async def _rendered(
        self,
        visit: Visit,
        given: Mapping[str, str],
        errors: Mapping[str, str],
        shown: tuple[Any, str] | None = None,
        status: int = 200,
    ) -> Response:
        """Render the form; ``shown`` is the rule of a preview, and the text that stands for its fields."""
        rule, previewed = shown or (None, "")
        return visit.rendered(
            "rule_form.html",
            status,
            purpose=self,
            controls=controls(self.sort.new),
            given=given,
            errors=errors,
            of_server=bool(visit.form.get("of_server")),
            may_be_of_server=visit.grant.may_everywhere(Action.MANAGE),
            row=self._row(visit, rule) if rule else None,
            preview=await self._preview(visit, rule) if rule else None,
            previewed=previewed,
            targets=visit.services.archive.urls,
            spiders=[each.name for each in await visit.store.spiders.listed(visit.project, 0, 500)],
            path=self._path(visit),
            now=visit.store.clock(),
        )


_RETENTION: Final = _Purpose(
    retention.SORT,
    none="No rules: nothing is removed by age or number.",
    kept=f"Jobs with the tag {KEEP} are never touched.",
    event=retention.REMOVED_EVENT,
    round="hour",
    no_jobs="No job is outside the limits of the enabled rules, or gets outside by its age.",
    enabling="It removes this data within the hour, and more as it gets old. Removed data cannot be brought back, "
    "except from deliveries and backups.",
    removing="What it has removed stays removed.",
    rules=lambda store: store.retention,
    parse=lambda _, fields: retention.rule_of(fields),
)
_DELIVERIES: Final = _Purpose(
    deliveries.SORT,
    none="No rules: no job is delivered to other storage.",
    kept=f"Jobs with the tag {KEEP} are delivered, too.",
    event=deliveries.DELIVERED_EVENT,
    round="minutes",
    no_jobs="The enabled rules have delivered each job that they cover.",
    enabling="It delivers this data within minutes, and later jobs after their end.",
    removing="What it has delivered stays where it is.",
    rules=lambda store: store.deliveries,
    parse=lambda services, fields: services.archive.rule_of(fields),
    previewed=lambda services, rule, found: services.archive.preview(rule, found),
)
_PURPOSES: Final = (_RETENTION, _DELIVERIES)

PAGES: Final = tuple(
    page
    for each in _PURPOSES
    for path in (f"/ui/{{project:number}}/{each.name}",)
    for page in (
        UiPage(path, each.name, each.show, each.act),
        UiPage(f"{path}/new", each.name, each.form, each.save),
        UiPage(f"{path}/{{rule:number}}", each.name, each.one),
    )
)
LINKS: Final = tuple(
    Link(each.name, each.name.capitalize(), f"/ui/{{project}}/{each.name}", under="settings") for each in _PURPOSES
)
