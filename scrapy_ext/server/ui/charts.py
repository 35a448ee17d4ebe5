"""SVG charts drawn on the server, without scripts; colours come from the style sheet.

Each chart has a title and a textual description for screen readers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Final, NamedTuple

from markupsafe import Markup

_WIDTH: Final = 720
_HEIGHT: Final = 190
#: Margins for the labels of the axes.
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 8, 10, 24
_TICKS: Final = 4
_TIMES: Final = 6
_LABEL: Final = 110
_ROW: Final = 22
_MOST_BARS: Final = 20
#: Columns for which there is room at least, so that few are not wide.
_LEAST_COLUMNS: Final = 20
#: Possible distances between time marks, in milliseconds.
_STEPS: Final = tuple(
    1000 * seconds
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
)
_ids: Final = itertools.count(1)

Unit = Callable[[float], str]


class Series(NamedTuple):
    """A line: pairs of time (ms) and value, ordered by time."""

    name: str
    points: Sequence[tuple[float, float]]


class Bar(NamedTuple):
    """A bar; ``kind`` is a class of the style sheet (good, odd, bad or "")."""

    label: str
    value: float
    kind: str = ""


def lines(title: str, series: Sequence[Series], unit: Unit) -> Markup:
    """Draw lines over time, with a legend for several; "" without data."""
    drawn = [each for each in series if len(each.points) > 1]
    if not drawn:
        return Markup()
    start = min(each.points[0][0] for each in drawn)
    end = max(start + 1, *(each.points[-1][0] for each in drawn))
    step = _nice(max(value for each in drawn for _, value in each.points) / _TICKS)
    top = step * _TICKS

    def x(time: float) -> float:
        return round(_LEFT + (time - start) / (end - start) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - max(value, 0) / top * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [_level(y(step * mark), unit(step * mark)) for mark in range(_TICKS + 1)]
    moment = Markup('<text class="time" x="{}" y="{}">{}</text>')
    parts += [moment.format(x(time), _HEIGHT - 6, text) for time, text in _times(start, end)]
    for number, each in enumerate(drawn, 1):
        path = " ".join(f"{x(time)},{y(value)}" for time, value in each.points)
        parts.append(Markup('<polyline class="line s{}" points="{}"/>').format(number, path))
    description = "; ".join(_description(each, unit) for each in drawn)
    return _figure(title, description, drawn if len(drawn) > 1 else [], (_WIDTH, _HEIGHT), parts)


def bars(title: str, values: Sequence[Bar], unit: Unit) -> Markup:
    """Draw one bar per value, one below the other, up to ``_MOST_BARS``; "" without data."""
    shown = values[:_MOST_BARS]
    if not shown:
        return Markup()
    most = max(1, *(each.value for each in shown))
    width = _WIDTH - _LABEL - 110
    parts = []
    for number, each in enumerate(shown):
        middle = number * _ROW + _ROW / 2 + 2
        long = round(max(each.value / most * width, 1), 1)
        parts.append(
            Markup(
                '<text class="label" x="{}" y="{}">{}</text>'
                '<rect class="bar-of {}" x="{}" y="{}" width="{}" height="14" rx="2"/>'
                '<text class="value" x="{}" y="{}">{}</text>'
            ).format(
                *(_LABEL - 10, middle + 4, each.label, each.kind, _LABEL, middle - 7, long),
                *(_LABEL + long + 8, middle + 4, unit(each.value)),
            )
        )
    description = "; ".join(f"{each.label}: {unit(each.value)}" for each in shown)
    return _figure(title, description, [], (_WIDTH, len(shown) * _ROW + 4), parts)


def columns(title: str, values: Sequence[Bar], unit: Unit, ends: tuple[str, str]) -> Markup:
    """Draw one column per value, from left to right, with labels of the first and the last; "" without data.

    The label of a value is shown on hover.
    """
    if not values:
        return Markup()
    step = _nice(max(each.value for each in values) / _TICKS)
    top, height = step * _TICKS, _HEIGHT - _TOP - _BOTTOM
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(values), _LEAST_COLUMNS)
    parts = [
        _level(round(_HEIGHT - _BOTTOM - height * mark / _TICKS, 1), unit(step * mark)) for mark in range(_TICKS + 1)
    ]
    for number, each in enumerate(values):
        high = round(max(each.value, 0) / top * height, 1)
        parts.append(
            Markup('<rect class="bar-of {}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                each.kind,
                *(round(_LEFT + number * width + width * 0.1, 1), round(_HEIGHT - _BOTTOM - high, 1)),
                *(round(width * 0.8, 1), max(high, 1), f"{each.label}: {unit(each.value)}"),
            )
        )
    first, last = ends
    end = _LEFT + width * len(values)
    parts.append(Markup('<text class="first" x="{}" y="{}">{}</text>').format(_LEFT, _HEIGHT - 6, first))
    if last != first:
        parts.append(Markup('<text class="label" x="{}" y="{}">{}</text>').format(round(end, 1), _HEIGHT - 6, last))
    shown = [each.value for each in values]
    description = f"{len(shown)} values, {unit(min(shown))} to {unit(max(shown))}, the last {unit(shown[-1])}"
    return _figure(title, description, [], (_WIDTH, _HEIGHT), parts)


def rates(progress: Sequence[tuple[float, float]], start: float, end: float, number: int) -> list[tuple[float, float]]:
    """Return the growth per minute of a counter (pairs of time and value) in ``number`` equal parts of the time."""
    if end <= start or not progress:
        return []
    width = (end - start) / number
    known = [(start, 0.0), *((max(time, start), value) for time, value in progress)]
    edges = list(_values_at(known, [start + width * place for place in range(number + 1)]))
    return [
        (start + width * (place + 0.5), max(after - before, 0) * 60_000 / width)
        for place, (before, after) in enumerate(itertools.pairwise(edges))
    ]


def _values_at(known: Sequence[tuple[float, float]], times: Sequence[float]) -> Iterator[float]:
    """Interpolate the value linearly at each of ``times``."""
    place = 0
    for time in times:
        while place + 1 < len(known) and known[place + 1][0] < time:
            place += 1
        (before, low), (after, high) = known[place], known[min(place + 1, len(known) - 1)]
        share = 1.0 if after <= before else min(max((time - before) / (after - before), 0), 1)
        yield low + (high - low) * share


def _figure(
    title: str, description: str, legend: Sequence[Series], size: tuple[int, int], parts: Sequence[Markup]
) -> Markup:
    own = next(_ids)
    names = Markup().join(
        Markup('<li><i class="s{}"></i>{}</li>').format(number, each.name) for number, each in enumerate(legend, 1)
    )
    return Markup(
        '<figure class="chart"><figcaption>{title}{legend}</figcaption>'
        '<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="c{own}t c{own}d">'
        '<title id="c{own}t">{title}</title><desc id="c{own}d">{description}</desc>{parts}</svg></figure>'
    ).format(
        title=title,
        legend=Markup("<ul>{}</ul>").format(names) if legend else "",
        width=size[0],
        height=size[1],
        own=own,
        description=description,
        parts=Markup().join(parts),
    )


def _level(y: float, text: str) -> Markup:
    return Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/><text class="label" x="{}" y="{}">{}</text>'
    ).format(_LEFT, _WIDTH - _RIGHT, _LEFT - 8, y + 4, text, y=y)


def _description(each: Series, unit: Unit) -> str:
    values = [value for _, value in each.points]
    most, mean, last = max(values), sum(values) / len(values), values[-1]
    return f"{each.name}: {unit(most)} at most, {unit(mean)} on average, {unit(last)} last"


def _nice(value: float) -> float:
    """Round up to the next of 1, 2, 2.5, 5, 10, …"""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= value * 0.999)


def _times(start: float, end: float) -> Iterator[tuple[float, str]]:
    step = next((step for step in _STEPS if (end - start) / step <= _TIMES), (end - start) / _TIMES)
    time = math.ceil(start / step) * step
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < 86_400_000 else "%m-%d"
    while time <= end:
        # A label at the right edge would be cut off.
        if (time - start) / (end - start) < 0.97:
            yield time, datetime.fromtimestamp(time / 1000, timezone.utc).strftime(form)
        time += step
