"""SVG charts drawn on the server, without scripts; colours come from the style sheet.

Each chart has a title and a textual description for screen readers. The values of a place are the title of an element
over it, which browsers show on hover; the script shows them beside the title of the chart, on hover and by arrow keys.
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
#: Width of a digit in the largest text of a chart, that of narrow places.
_CHARACTER: Final = 11.5
#: Possible distances between time marks, in milliseconds.
_STEPS: Final = tuple(
    1000 * seconds
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
)
_STRIP: Final = (Markup('<ol class="strip">'), Markup("</ol>"))
_CELL: Final = Markup('<li><a class="cell %s" href="%s" title="%s, %s"></a></li>')
_DAY: Final = 86_400_000
_ids: Final = itertools.count(1)

Unit = Callable[[float], str]


class Series(NamedTuple):
    """A line: pairs of time (ms) and value, ordered by time. A value of None is a gap."""

    name: str
    points: Sequence[tuple[float, float | None]]

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points if value is not None]


class Bar(NamedTuple):
    """A bar; ``kind`` is a class of the style sheet (good, odd, bad or ""), ``link`` the path of its page."""

    label: str
    value: float
    kind: str = ""
    link: str = ""


def lines(title: str, series: Sequence[Series], unit: Unit) -> Markup:
    """Draw lines over time, with a legend for several; "" without data."""
    drawn = [each for each in series if len(each.values) > 1]
    if not drawn:
        return Markup()
    start = min(each.points[0][0] for each in drawn)
    end = max(start + 1, *(each.points[-1][0] for each in drawn))
    step = _step(max(value for each in drawn for value in each.values))
    top = step * _TICKS

    def x(time: float) -> float:
        return round(_LEFT + (time - start) / (end - start) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - max(value, 0) / top * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [_level(y(step * mark), unit(step * mark)) for mark in range(_TICKS + 1)]
    moment = Markup('<text class="time" x="{}" y="{}">{}</text>')
    parts += [moment.format(x(time), _HEIGHT - 6, text) for time, text in _times(start, end)]
    for number, each in enumerate(drawn, 1):
        for part in _unbroken(each.points):
            path = " ".join(f"{x(time)},{y(value)}" for time, value in part)
            parts.append(Markup('<polyline class="line s{}" points="{}"/>').format(number, path))
    parts.append(_values_of(drawn, unit, x))
    description = "; ".join(_description(each, unit) for each in drawn)
    return _figure(title, description, _names(drawn), (_WIDTH, _HEIGHT), parts)


def _unbroken(points: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of a line between its gaps."""
    part: list[tuple[float, float]] = []
    for time, value in points:
        if value is not None:
            part.append((time, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _values_of(drawn: Sequence[Series], unit: Unit, x: Callable[[float], float]) -> Markup:
    """Return an element over each time with a value, whose title has the values of all lines."""
    times = sorted({time for each in drawn for time, _ in each.points})
    known = [(each.name, dict(each.points)) for each in drawn]
    ends = [x(times[0]), *(round((x(a) + x(b)) / 2, 1) for a, b in itertools.pairwise(times)), x(times[-1])]
    form = "%H:%M:%S" if times[-1] - times[0] < _DAY else "%m-%d %H:%M"
    place = Markup('<rect x="{}" width="{}" height="{}"><title>{}: {}</title></rect>')
    places = []
    for number, time in enumerate(times):
        found = [(name, values[time]) for name, values in known if values.get(time) is not None]
        texts = [
            unit(value) if len(drawn) == 1 else f"{name} {unit(value)}" for name, value in found if value is not None
        ]
        if texts:
            wide = round(ends[number + 1] - ends[number], 1)
            places.append(
                place.format(ends[number], wide, _HEIGHT - _BOTTOM, f"{_moment(time, form)} UTC", ", ".join(texts))
            )
    return Markup('<g class="values">{}</g>').format(Markup().join(places))


def bars(title: str, values: Sequence[Bar], unit: Unit, note: str = "") -> Markup:
    """Draw one bar per value, one below the other, up to ``_MOST_BARS``; "" without data.

    ``note``: beside the title.
    """
    shown = values[:_MOST_BARS]
    if not shown:
        return Markup()
    most = max(1, *(each.value for each in shown))
    width = _WIDTH - _LABEL - 110
    parts = []
    for number, each in enumerate(shown):
        middle = number * _ROW + _ROW / 2 + 2
        long = round(max(each.value / most * width, 1), 1)
        bar = Markup(
            '<text class="label" x="{}" y="{}">{}</text>'
            '<rect class="bar-of {}" x="{}" y="{}" width="{}" height="14" rx="2"/>'
            '<text class="value" x="{}" y="{}">{}</text>'
        ).format(
            *(_LABEL - 10, middle + 4, each.label, each.kind, _LABEL, middle - 7, long),
            *(_LABEL + long + 8, middle + 4, unit(each.value)),
        )
        parts.append(_linked(each, f"{each.label}: {unit(each.value)}", bar))
    description = "; ".join(f"{each.label}: {unit(each.value)}" for each in shown)
    legend = Markup("<ul><li>{}</li></ul>").format(note) if note else Markup()
    return _figure(title, description, legend, (_WIDTH, len(shown) * _ROW + 4), parts, role=_role(shown))


def _linked(each: Bar, text: str, drawn: Markup) -> Markup:
    return Markup('<a href="{}" aria-label="{}">{}</a>').format(each.link, text, drawn) if each.link else drawn


def _role(values: Sequence[Bar]) -> str:
    """Return the role of an image; links in one would be out of the reach of readers."""
    return "group" if any(each.link for each in values) else "img"


def columns(title: str, values: Sequence[Bar], unit: Unit, ends: tuple[str, str], middle: float | None) -> Markup:
    """Draw one column per value, from left to right, with labels of the first and the last; "" without data.

    The label of a value is shown on hover, and the given median as a line if there are three values or more.
    """
    if not values:
        return Markup()
    step = _step(max(each.value for each in values))
    top, height = step * _TICKS, _HEIGHT - _TOP - _BOTTOM
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(values), _LEAST_COLUMNS)
    parts = [
        _level(round(_HEIGHT - _BOTTOM - height * mark / _TICKS, 1), unit(step * mark)) for mark in range(_TICKS + 1)
    ]
    columns = [_column(each, number, width, height / top, unit) for number, each in enumerate(values)]
    parts.append(Markup('<g class="values">{}</g>').format(Markup().join(columns)))
    legend, end = Markup(), round(_LEFT + width * len(values), 1)
    if middle is not None and len(values) > 2:
        level = round(_HEIGHT - _BOTTOM - height * middle / top, 1)
        line = Markup('<line class="median" x1="{}" x2="{}" y1="{y}" y2="{y}"/>')
        parts.append(line.format(_LEFT, end, y=level))
        legend = Markup('<ul><li><i class="median"></i>median {}</li></ul>').format(unit(middle))
    first, last = ends
    parts.append(Markup('<text class="first" x="{}" y="{}">{}</text>').format(_LEFT, _HEIGHT - 6, first))
    if last != first:
        place = max(end, _LEFT + _CHARACTER * (len(first) + len(last) + 1))
        parts.append(Markup('<text class="label" x="{}" y="{}">{}</text>').format(place, _HEIGHT - 6, last))
    shown = [each.value for each in values]
    description = f"{len(shown)} values, {unit(min(shown))} to {unit(max(shown))}, the last {unit(shown[-1])}"
    return _figure(title, description, legend, (_WIDTH, _HEIGHT), parts, role=_role(values))


def _column(each: Bar, number: int, width: float, scale: float, unit: Unit) -> Markup:
    high = round(max(each.value, 0) * scale, 1)
    text = f"{each.label}: {unit(each.value)}"
    bar = Markup('<rect class="bar-of {}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
        each.kind,
        *(round(_LEFT + number * width + width * 0.1, 1), round(_HEIGHT - _BOTTOM - high, 1)),
        *(round(width * 0.8, 1), max(high, 1), text),
    )
    return _linked(each, text, bar)


def sparkline(title: str, values: Sequence[float], unit: Unit) -> Markup:
    """Draw the course of a few values in the height of a line of text; "" for fewer than two."""
    if len(values) < 2:
        return Markup()
    width, height = 90, 22
    most = max(*values, 1)
    step = (width - 4) / (len(values) - 1)
    heights = [round(height - 3 - value / most * (height - 6), 1) for value in values]
    points = [(round(2 + place * step, 1), y) for place, y in enumerate(heights)]
    path = " ".join(f"{x},{y}" for x, y in points)
    text = f"{title}: {unit(min(values))} to {unit(max(values))}, the last {unit(values[-1])}"
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img"><title>{}</title><polyline points="{}"/>'
        '<circle cx="{}" cy="{}" r="2"/></svg>'
    ).format(width, height, text, path, *points[-1])


def strip(cells: Sequence[Bar]) -> Markup:
    """Draw runs as small linked cells, coloured by their kind; a mark in a cell says the same. "" without runs.

    It is neither a template nor a format for each cell: a page has a thousand of them.
    """
    values = [text for each in cells for text in (each.kind, each.link, each.kind, each.label)]
    return (_STRIP[0] + _CELL * len(cells) + _STRIP[1]) % tuple(values) if cells else Markup()


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


def _names(drawn: Sequence[Series]) -> Markup:
    """Return the legend of several lines."""
    if len(drawn) < 2:
        return Markup()
    name = Markup('<li><i class="s{}"></i>{}</li>')
    return Markup("<ul>{}</ul>").format(
        Markup().join(name.format(number, each.name) for number, each in enumerate(drawn, 1))
    )


def _figure(
    title: str,
    description: str,
    legend: Markup,
    size: tuple[int, int],
    parts: Sequence[Markup],
    *,
    role: str = "img",
) -> Markup:
    own, drawn = next(_ids), Markup().join(parts)
    reading = Markup('<span class="reading" aria-live="polite"></span>') if 'class="values"' in drawn else ""
    # Arrow keys move over the values of an image; those that are links have the focus themselves.
    focus = Markup(' tabindex="0"') if role == "img" and reading else ""
    return Markup(
        '<figure class="chart"><figcaption>{title} {reading}{legend}</figcaption>'
        '<svg viewBox="0 0 {width} {height}" role="{role}" aria-labelledby="c{own}t c{own}d"{focus}>'
        '<title id="c{own}t">{title}</title><desc id="c{own}d">{description}</desc>{parts}</svg></figure>'
    ).format(
        title=title,
        legend=legend,
        reading=reading,
        width=size[0],
        height=size[1],
        own=own,
        role=role,
        focus=focus,
        description=description,
        parts=drawn,
    )


def _level(y: float, text: str) -> Markup:
    return Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/><text class="label" x="{}" y="{}">{}</text>'
    ).format(_LEFT, _WIDTH - _RIGHT, _LEFT - 8, y + 4, text, y=y)


def _description(each: Series, unit: Unit) -> str:
    values = each.values
    most, mean, last = max(values), sum(values) / len(values), values[-1]
    return f"{each.name}: {unit(most)} at most, {unit(mean)} on average, {unit(last)} last"


def _step(most: float) -> float:
    """Return the distance of the levels below a greatest value: the next whole one of 1, 2, 5, 10, 20, 25, 50, …"""
    value = most / _TICKS
    if value <= 1 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    factors = (1, 2, 5, 10) if power < 10 else (1, 2, 2.5, 5, 10)
    return next(power * factor for factor in factors if power * factor >= value * 0.999)


def _times(start: float, end: float) -> Iterator[tuple[float, str]]:
    step = next((step for step in _STEPS if (end - start) / step <= _TIMES), (end - start) / _TIMES)
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < _DAY else "%m-%d"
    # A label at the right edge would be cut off.
    last = start + 0.97 * (end - start)
    marks = [number * step for number in range(math.ceil(start / step), math.floor(last / step) + 1)]
    # Within a second there is no mark.
    for time in marks or [start]:
        yield time, _moment(time, form)


def _moment(time: float, form: str) -> str:
    return datetime.fromtimestamp(time / 1000, timezone.utc).strftime(form)
