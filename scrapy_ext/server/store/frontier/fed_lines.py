"""Lines of URLs and requests on their way into a frontier: all are parsed before the first is queued."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from scrapy_ext.api.platform.feeding import MAX_VIOLATIONS, Fed, FedCount, parsed
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.frontier.feeds import FeedStore, Push, pushed
from scrapy_ext.server.store.read_ahead import in_thread

#: Lines with their numbers, from 1.
Lines = Sequence[tuple[int, bytes]]


async def push_lines(feeds: FeedStore, push: Push, lines: Lines, name: str, start: int = 0) -> FedCount:
    """Push lines into a frontier, all or none; raises :class:`ContractError`.

    ``name``: ID of the push. ``start``: number of the first line in it.
    """
    requests, violations = await in_thread(_parsed, lines)
    if violations:
        raise ContractError(violations)
    if not requests:
        return FedCount(0, 0)
    numbered = [(start + number - 1, fed) for number, fed in requests]
    ready = await in_thread(partial(pushed, push=name), numbered)
    return await feeds.push(push._replace(names_fps=all(fed.names_fp for _, fed in requests)), ready)


def _parsed(lines: Lines) -> tuple[list[tuple[int, Fed]], list[Violation]]:
    """Return the requests of the lines, and the violations of the first invalid ones."""
    requests: list[tuple[int, Fed]] = []
    violations: list[Violation] = []
    for number, line in lines:
        place = f"line {number}"
        try:
            fed = parsed(line, place)
        except ContractError as error:
            violations += error.violations
            if len(violations) >= MAX_VIOLATIONS:
                break
            continue
        if fed.needs_fp:
            violations.append(_without_fp(place))
        requests.append((number, fed))
    return requests, violations


def _without_fp(place: str) -> Violation:
    return Violation(
        f"{place}.meta",
        "has extract_api fields, on which the fingerprint depends",
        "Push in the project: scrapy platform frontier add --spider NAME. Or give the line its fp.",
    )
