"""Permits and grants: the limits of a domain, and budgets, divided among the workers of a group.

Everything here is a pure function of the report of one worker, of what is stored for the others, and of the time (ms,
on the clock of the database). Rules:

- ``held`` is the most that a worker uses until it has the answer to its report. The server stores as ``amount`` the
  larger of that and of what it gives. So an amount is reduced only when its holder has confirmed the smaller one, and
  a lost answer changes nothing.
- What is given is at most the limit without the amounts of all others. Those of a domain expire; the holder counts
  fewer seconds, from the sending of its report.
- Start times of a domain with a delay are given in one sequence for all workers, each a delay after the one before.
  Those that a worker gives back are given again if they are the last ones.
- A grant of a budget does not expire. That of a worker that was killed counts as used. A worker that waits for a grant
  holds nothing but what it uses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

#: Domains and budgets of a report, at most.
MOST_DOMAINS: Final = 200
MOST_BUDGETS: Final = 8
#: Length of the name of a domain in a report.
MAX_DOMAIN: Final = 255
#: Seconds for which a holder uses a permit, and milliseconds after which others may have it.
SECONDS: Final = 6.0
LASTS: Final = 8_000
#: Milliseconds for which start times are reserved.
AHEAD: Final = 3_000
#: Start times in the answer to a report, of all domains: a worker uses some hundreds a second. 10 000 take 10 ms.
MOST_STARTS: Final = 10_000
#: Milliseconds after which another worker is the first to get what cannot be divided.
_TURN: Final = 30_000
#: A start is used up to this part of the delay late, so the time between two starts is drawn from less than Scrapy's
#: 0.5 to 1.5.
LATE: Final = 0.25
_SHORTEST, _LONGEST = 0.5 + LATE, 1.5 - LATE
#: Part of the rest of a budget that all workers together are granted at once.
_PART: Final = 5
_MOST: Final = 2**53

_Number = Annotated[int, Meta(ge=0, le=_MOST)]
#: A number of requests, or milliseconds.
_Small = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class DomainReport(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A domain in the report of a worker. ``limit``: requests at once; ``delay``: ms between two starts, ``randomize``:
    0.5 to 1.5 of it.

    ``want``: requests that are open or wait; ``open``: those that are open. ``held``: the most that are open until the
    answer. ``starts``: reserved start times that are left. ``pause``: seconds, as of a ``Retry-After``. Without
    ``held`` the worker gives its start times back, and without ``want`` its permit as well.
    """

    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    want: _Small = 0
    held: _Small = 0
    open: _Small = 0
    delay: _Small = 0
    randomize: bool = False
    starts: _Small = 0
    pause: Annotated[float, Meta(ge=0, le=86_400)] = 0.0


class Permit(msgspec.Struct, frozen=True, omit_defaults=True):
    """Permit for a domain. ``concurrency``: requests at once, for some ``seconds`` from the sending of the report.

    ``delay``: ms between two starts, for all workers; 0: no start times are needed. ``starts``: further start times, in
    ms from now. ``pause``: seconds in which no request starts. ``short``: another worker waits for a permit, of which
    there is none for it.
    """

    concurrency: int = 0
    seconds: float = SECONDS
    delay: int = 0
    starts: tuple[int, ...] = ()
    pause: float = 0.0
    short: bool = False


class BudgetReport(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A budget in the report of a worker, in whole units. ``limit``: of the job. ``former``: used before its group.

    ``used``: by this attempt. ``held``: the most that it uses until the answer. ``want``: the least that it needs
    beyond that.
    """

    limit: _Number = 0
    used: _Number = 0
    held: _Number = 0
    want: _Number = 0
    former: _Number = 0


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """Grant of a budget. ``amount``: the total that this attempt may use. ``over``: what it wants is more than is left
    in the whole group."""

    amount: int = 0
    over: bool = False


# ── domains ──


class Share(NamedTuple):
    """Share of a domain that a worker has: ``amount`` requests, until it ``expires`` (ms)."""

    attempt: int
    limit: int
    want: int
    amount: int
    delay: int
    expires: int


class Domain(NamedTuple):
    """Times (ms) of a domain: the first one that is not reserved, and the end of a pause."""

    next_start: int = 0
    paused_until: int = 0


class Decision(NamedTuple):
    """Share and times to store for a domain, and the permit to answer. ``share``: None if it was given back."""

    share: Share | None
    domain: Domain
    permit: Permit


def decide(
    attempt: int,
    report: DomainReport,
    others: Sequence[Share],
    domain: Domain,
    now: int,
    *,
    most_starts: int = MOST_STARTS,
    drawn: Callable[[float, float], float] = random.uniform,
) -> Decision:
    """Give a worker its permit. ``others``: shares of the other workers; expired ones do not count. ``most_starts``:
    those that are left of the answer."""
    live = [share for share in others if share.expires > now]
    delay = max([report.delay, *(share.delay for share in live)])
    domain = _at(_with_returned(domain, report, live), now, delay, report.pause)
    pause = max(domain.paused_until - now, 0)
    if not (report.want or report.held):
        return Decision(None, domain, Permit(seconds=0.0, delay=delay, pause=pause / 1000))
    concurrency = _concurrency(attempt, report, live, now)
    starts: list[int] = []
    if delay and concurrency:
        gap = (_SHORTEST * delay, _LONGEST * delay) if report.randomize else (delay, delay)
        # One without a permit starts nothing.
        workers = 1 + sum(share.amount > 0 for share in live)
        most = min(report.want - report.starts, -(-AHEAD // (workers * delay)), most_starts)
        while len(starts) < most and domain.next_start <= now + AHEAD:
            starts.append(domain.next_start - now)
            domain = domain._replace(next_start=domain.next_start + round(drawn(*gap)))
    share = Share(attempt, report.limit, report.want, max(report.held, concurrency), report.delay, now + LASTS)
    short = any(share.want and not share.amount for share in live)
    return Decision(share, domain, Permit(concurrency, SECONDS, delay, tuple(starts), pause / 1000, short))


def _with_returned(domain: Domain, report: DomainReport, live: Sequence[Share]) -> Domain:
    """Return the times of a domain with those that a worker gives back, unless others may have later ones."""
    if report.held or not report.starts or any(share.amount for share in live):
        return domain
    gap = round(_SHORTEST * report.delay) if report.randomize else report.delay
    return domain._replace(next_start=domain.next_start - report.starts * gap)


def _at(domain: Domain, now: int, delay: int, pause: float) -> Domain:
    """Return the times of a domain now. A time that is too far ahead is cut: the delay was longer before, or the clock
    of the database has jumped back."""
    until = max(domain.paused_until, now + round(pause * 1000) if pause else 0)
    latest = now + AHEAD + round(_LONGEST * delay)
    return Domain(max(min(domain.next_start, latest), now, until), until)


def _concurrency(attempt: int, report: DomainReport, live: Sequence[Share], now: int) -> int:
    """Return the number of requests that a worker may have open: its part, as far as the others leave it."""
    limit = min([report.limit, *(share.limit for share in live)])
    wants = sorted([(attempt, report.want), *((share.attempt, share.want) for share in live)])
    parts = divided(limit, [want for _, want in wants], now // _TURN % len(wants))
    free = limit - sum(share.amount for share in live)
    return max(min(parts[wants.index((attempt, report.want))], free), 0)


def divided(most: int, wants: Sequence[int], first: int = 0) -> list[int]:
    """Divide a number among workers. Each gets what it wants, or an equal part; nobody gets any who wants none.

    What is left is divided equally, so that they need not wait for a report to use it. ``first``: place of the worker
    from which they take turns at what cannot be divided. If there is less than one for each, the turn alone decides:
    what a worker wants changes with each report.
    """
    turns = [*range(first, len(wants)), *range(first)]
    wanting = [place for place in turns if wants[place]]
    wanting = wanting[-most:] if 0 < most < len(wanting) else sorted(wanting, key=wants.__getitem__)
    parts = [0] * len(wants)
    left = most
    for number, place in enumerate(wanting):
        parts[place] = min(wants[place], left // (len(wanting) - number))
        left -= parts[place]
    for number, place in enumerate(wanting):
        more = left // (len(wanting) - number)
        parts[place] += more
        left -= more
    return parts


# ── budgets ──


class BudgetShare(NamedTuple):
    """Grant of a worker, and what it has used. ``ended``: it uses nothing more, and its whole grant counts as used."""

    amount: int
    used: int
    ended: bool


def granted(
    reports: Mapping[str, BudgetReport], others: Mapping[str, Sequence[BudgetShare]], workers: int
) -> dict[str, Grant]:
    """Grant a worker its parts of what is left of the budgets, by name. ``workers``: number of those alive.

    It gets all that it wants or nothing: otherwise two workers could have half of it each, and wait for ever.
    """
    grants = {name: _granted(report, others[name], workers) for name, report in reports.items()}
    held = {name: max(report.held, report.used) for name, report in reports.items()}
    if any(report.want and grants[name].amount < held[name] + report.want for name, report in reports.items()):
        return {name: Grant(held[name], grant.over) for name, grant in grants.items()}
    return grants


def _granted(report: BudgetReport, others: Sequence[BudgetShare], workers: int) -> Grant:
    held = max(report.held, report.used)
    if not report.want:
        return Grant(held)
    left = report.limit - held - sum(share.amount for share in others)
    if left >= report.want:
        return Grant(held + max(report.want, left // (_PART * max(workers, 1))))
    unused = sum(share.amount - share.used for share in others if not share.ended)
    return Grant(held, over=left + unused < report.want)
