"""``/ui/<project>/retention`` and ``/ui/<project>/deliveries``: the rules that cover a project, and the jobs that they
apply to next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform import deliveries, retention
from scrapy_ext.api.platform.rules import KEEP, RuleRecord
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.ui.frame import Link, UiPage, Visit


class _Row(NamedTuple):
    rule: RuleRecord
    #: Why an enabled rule is not applied now.
    failure: str | None
    data: str
    limits: str
    more: Sequence[str]


@dataclass(frozen=True)
class _Purpose:
    """Page of the rules of a purpose."""

    name: str
    title: str
    does: str
    #: Past participle of the effect, and the sentence about no rules.
    done: str
    none: str
    #: The sentence about jobs with the tag ``keep``, and the event of the activity.
    kept: str
    event: str
    #: The time within which due jobs are handled; and the sentence about none.
    round: str
    no_jobs: str
    rules: Callable[[Store], RuleStore[Any, Any]]
    data: Callable[[Any], str]
    limits: Callable[[Any], str]
    #: Titles of further columns, and their cells.
    columns: Sequence[str] = ()
    cells: Callable[[Any], Sequence[str]] = lambda _: ()

    async def show(self, visit: Visit) -> Response:
        rules = self.rules(visit.store)
        found = await rules.in_force(visit.project)
        enabled = [rule for rule in found if rule.enabled]
        return visit.rendered(
            "rules.html",
            purpose=self,
            rows=[self._row(rule) for rule in found],
            jobs=await rules.next_jobs(enabled, [visit.project]),
            enabled=len(enabled),
            now=visit.store.clock(),
        )

    def _row(self, rule: Any) -> _Row:
        return _Row(rule, getattr(rule, "failure", None), self.data(rule), self.limits(rule), self.cells(rule))


_RETENTION: Final = _Purpose(
    name="retention",
    title="Retention",
    does="Removes",
    done="Removed",
    none="No rules: nothing is removed by age or number.",
    kept=f"Jobs with the tag {KEEP} are never touched.",
    event=retention.REMOVED_EVENT,
    round="hour",
    no_jobs="No job is outside the limits of the enabled rules, or gets outside by its age.",
    rules=lambda store: store.retention,
    data=retention.data_in_words,
    limits=retention.limits_in_words,
)
_DELIVERIES: Final = _Purpose(
    name="deliveries",
    title="Deliveries",
    does="Delivers",
    done="Delivered",
    none="No rules: no job is delivered to other storage.",
    kept=f"Jobs with the tag {KEEP} are delivered, too.",
    event=deliveries.DELIVERED_EVENT,
    round="minutes",
    no_jobs="The enabled rules have delivered each job that they cover.",
    rules=lambda store: store.deliveries,
    data=deliveries.data_in_words,
    limits=deliveries.limits_in_words,
    columns=("Format",),
    cells=lambda rule: (deliveries.format_in_words(rule),),
)
_PURPOSES: Final = (_RETENTION, _DELIVERIES)

PAGES: Final = tuple(UiPage(f"/ui/{{project:number}}/{each.name}", each.name, each.show) for each in _PURPOSES)
LINKS: Final = tuple(Link(each.name, each.title, f"/ui/{{project}}/{each.name}") for each in _PURPOSES)
