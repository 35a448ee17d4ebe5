"""Texts of alerts, for a person at night: the spider, what is wrong with numbers, since when, a link to the job,
its verdict, and the errors of its log in groups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final

from scrapy_ext.api.platform.alerts import ALERT, RECOVERY, REMINDER, TEST, AlertTarget
from scrapy_ext.api.platform.verdicts import MONITOR
from scrapy_ext.server.store.incidents import OpenIncident
from scrapy_ext.server.store.monitors.alerts import Composed, GroupNews
from scrapy_ext.server.store.verdicts import JobVerdict

#: Incidents that one message lists, and characters of a sentence.
_LISTED: Final = 10
_LONGEST: Final = 400
#: Jobs of a message whose errors are listed, and groups of each.
_DETAILED: Final = 3
_GROUPS: Final = 5


class Messages:
    """Texts with links to the pages of a server at ``url``; None: without links."""

    def __init__(self, url: str | None) -> None:
        self._url = url

    def compose(self, news: GroupNews, now: int) -> Composed:
        """Return the message about a spider; see :class:`GroupNews`."""
        failing = [*news.new, *news.lasting]
        place = f"{_line(news.subject.spider)} (project {_project(news.subject.project, news.project_name)})"
        if not failing:
            title = f"{place}: over, {_monitors(news.over, 'passes', 'pass')} again"
            return Composed(RECOVERY, title, self._body(news, now))
        what = _monitors(failing, "fails", "fail")
        kind, still = (ALERT, "") if news.new else (RECOVERY, "still ") if news.over else (REMINDER, "still ")
        return Composed(kind, f"{place}: {still}{what}", self._body(news, now))

    def test(self, target: AlertTarget) -> Composed:
        """Return the trial message to a target."""
        title = f"Test of alerts (project {target.project})"
        link = self._link(f"/ui/{target.project}/monitors")
        return Composed(TEST, title, f"Alerts of project {target.project} reach {target.name!r}.{link}")

    def _body(self, news: GroupNews, now: int) -> str:
        parts: list[str] = []
        details = dict(_details(news))
        for heading, some in (("", news.new), ("Still failing:", news.lasting), ("Over:", news.over)):
            if not some:
                continue
            if heading and (news.new or parts or heading != "Over:"):
                parts.append(heading)
            parts += [
                self._entry(each, now, news.verdicts.get(each.job or "")) + details.pop(each.job or "", "")
                for each in some[:_LISTED]
            ]
            if len(some) > _LISTED:
                parts.append(f"And {len(some) - _LISTED} more.")
        page = self._link(f"/ui/{news.subject.project}/monitors")
        return "\n\n".join(parts) + (f"\n\nAll monitors:{page}" if page else "")

    def _entry(self, each: OpenIncident, now: int, verdict: JobVerdict | None) -> str:
        name, sentence = _line(each.rule.name), _line(each.sentence)
        if each.over is not None:
            length = _duration(each.over - each.since)
            return f"{name}: passes again since {_time(each.over)}, after {length}. It was: {sentence}."
        jobs = f", {each.jobs} jobs" if each.jobs > 1 else ""
        since = f"Since {_time(each.since)} ({_duration(now - each.since)}){jobs}."
        judged = f" ({verdict.verdict.text})" if verdict else ""
        job = "" if each.job is None else f"\nJob {each.job}{judged}{self._link(f'/ui/{each.job}', ':')}"
        return f"{name}: {sentence}.\n{since}{job}"

    def _link(self, path: str, before: str = "") -> str:
        return "" if self._url is None else f"{before} {self._url}{path}"


def _details(news: GroupNews) -> Iterator[tuple[str, str]]:
    """Yield the first jobs, each with the other reasons of its verdict, and the errors of its log."""
    listed = [*news.new[:_LISTED], *news.lasting[:_LISTED]]
    for job in list(dict.fromkeys(each.job for each in listed if each.job is not None))[:_DETAILED]:
        if (verdict := news.verdicts.get(job)) is None:
            continue
        also = "; ".join(_line(reason.sentence) for reason in verdict.reasons if reason.kind != MONITOR)
        lines = [f"Also: {also}."] if also else []
        if verdict.errors:
            lines += ["Errors of its log:", *(f"- {_line(group.in_a_line)}" for group in verdict.errors[:_GROUPS])]
        if len(verdict.errors) > _GROUPS:
            lines.append(f"- and {len(verdict.errors) - _GROUPS} more groups")
        yield job, "".join(f"\n{line}" for line in lines)


def _monitors(some: list[OpenIncident], one: str, many: str) -> str:
    names = list(dict.fromkeys(_line(each.rule.name) for each in some))
    return f"{names[0]} {one}" if len(names) == 1 else f"{len(names)} monitors {many}"


def _line(text: str) -> str:
    """Return foreign text as one line without control characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _project(number: int, name: str | None) -> str:
    return f"{number}, {_line(name)}" if name else str(number)


def _time(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000, timezone.utc):%Y-%m-%d %H:%M} UTC"


def _duration(milliseconds: int) -> str:
    minutes = max(milliseconds, 0) // 60_000
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"
