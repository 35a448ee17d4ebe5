"""Errors of a log in groups: lines with the same exception, message and place count as one.

The message is compared without its numbers, IDs and addresses, so that ``row 7 of /page/7`` and ``row 8 of /page/8``
are one. The status of a response is kept where its reason follows: ``503 Service Unavailable``. The title of a group
has the values that all its lines share, and ``N``, ``URL`` or ``<request>`` in place of others: ``row N of /data2``.
The place is the last frame of the traceback in the project's own code, and the callback the first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

#: Maximum groups that are kept; lines of further ones are counted together.
MOST_GROUPS: Final = 50
#: Characters of a title, and of an example.
_TITLE: Final = 300
_EXAMPLE: Final = 16_000

#: Characters at the begin and at the end of a traceback that are parsed: some hundred frames each. A page of a log may
#: have a hundred lines of a megabyte each.
_PARSED: Final = 16_000
_HEAD: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^ *(?:\| *)?File "(?P<path>[^"]+)", line (?P<line>[0-9]+), in (?P<function>.+)$')
#: An address in angle brackets, as Scrapy writes requests and responses, or alone.
_REQUEST: Final = re.compile(r"<(?:[0-9]{3}|[A-Z]+) [a-z][a-z0-9+.-]*:[^>]*>")
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|[0-9]+(?:[.,:][0-9]+)*")
#: A UUID, or a hash with digits and letters.
_HEX: Final = "[0-9a-fA-F]"
_ID: Final = re.compile(
    rf"(?<![^\W_])(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
    rf"|(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F]){_HEX}{{8,}})(?![^\W_])"
)
#: What stands for a value that differs between lines, by the form of the value; the first form that fits counts.
_FORMS: Final = (("<request>", _REQUEST), ("URL", _URL), ("N", _ID), ("N", _NUMBER))
_VALUE: Final = re.compile("|".join(form.pattern for _, form in _FORMS))
_REASONS: Final = {str(status.value): f" {status.phrase}" for status in HTTPStatus}
#: Parts of a path that say that the project did not write the file.
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "<frozen ")
_STANDARD: Final = re.compile(r"/lib/python3[.0-9]*/|/lib64/python3[.0-9]*/|\\Lib\\")
#: Installed packages that run a project's code: a frame elsewhere is nearer to the cause.
_FRAMEWORKS: Final = frozenset(("scrapy", "twisted", "scrapy_ext", "parsel", "w3lib", "itemadapter", "lxml", "asyncio"))


class Frame(NamedTuple):
    """A frame of a traceback, with the line of its code."""

    path: str
    line: int
    function: str
    code: str = ""

    @property
    def place(self) -> str:
        """File and line: ``shop.py:34``."""
        return f"{PurePosixPath(self.path.replace(chr(92), '/')).name}:{self.line}"


class ParsedError(NamedTuple):
    """An error line. ``exception``: its last line, ``KeyError: 'headline'``; "" when the line has no traceback."""

    lead: str
    frames: list[Frame]
    exception: str

    @property
    def own_frames(self) -> list[Frame]:
        """The frames in the project's code; of one that is installed, those that are not of frameworks."""
        own = [frame for frame in self.frames if not _is_installed(frame.path)]
        return own or [frame for frame in self.frames if not _is_framework(frame.path)]


class ErrorGroup(msgspec.Struct, omit_defaults=True):
    """Lines of the log that are the same error.

    ``title``: the exception with its message, or the line. ``first`` and ``last``: times (ms). ``line``: number of the
    first line in the log. ``example``: that line, whole up to a bound. ``parts``: those of the title, alternately a
    text and a value, or what stands for a value; none in groups that an older version has stored.
    """

    title: str
    count: int
    first: int
    last: int
    line: int
    example: str
    callback: str = ""
    place: str = ""
    parts: list[str] = []

    @property
    def pattern(self) -> str:
        """The title without values, which is the same for the same error of other jobs."""
        return _pattern_of(self.parts) if self.parts else self.title

    def leave_out(self, parts: Sequence[str]) -> None:
        """Take out of the title the values that differ from those of a line, or of a group, of the same error."""
        if not parts or len(parts) != len(self.parts):
            self.parts, self.title = [], self.pattern
            return
        for place in range(1, len(parts), 2):
            if self.parts[place] != parts[place]:
                self.parts[place] = _stand_in(self.parts[place])
        self.title = _shortened("".join(self.parts))

    @property
    def in_a_line(self) -> str:
        """Title, count and place: ``KeyError: 'headline' × 12 (parse, shop.py:34)``."""
        times = f" × {self.count}" if self.count > 1 else ""
        place = f" ({', '.join(filter(None, (self.callback, self.place)))})" if self.place else ""
        return f"{self.title}{times}{place}"


class RecurringError(NamedTuple):
    """An error of several jobs. ``jobs``: their numbers, newest first; the line and the example are those of the first.

    ``group`` has the numbers of all of them.
    """

    group: ErrorGroup
    jobs: list[int]


def parse_error(message: str) -> ParsedError:
    """Return the parts of an error line with a traceback: of several exceptions, the frames of the last one; of a long
    traceback, those at its begin and its end."""
    before, _, after = message.rpartition(_HEAD)
    if not before and not after.startswith("\n"):
        return ParsedError(message.strip(), [], "")
    lead = message.partition(_HEAD)[0].strip()
    frames: list[Frame] = []
    rest: list[str] = []
    if len(after) > 2 * _PARSED:
        after = f"{after[:_PARSED]}\n{_end_of(after)}"
    for line in after.split("\n")[1:]:
        if found := _FRAME.match(line):
            frames.append(Frame(found["path"], int(found["line"]), found["function"]))
            rest = []
        elif line.startswith(" ") and frames and not rest:
            if not frames[-1].code and line.strip().strip("~^ "):
                frames[-1] = frames[-1]._replace(code=line.strip())
        elif line.strip():
            rest.append(line.strip())
    return ParsedError(lead, frames, "\n".join(rest))


def _end_of(traceback: str) -> str:
    """Return the last part of a long traceback, from the begin of a line: at a long message, from its last frame on."""
    start = len(traceback) - _PARSED
    last = traceback.rfind('\n  File "', _PARSED, start)
    if last >= 0 and traceback.find('\n  File "', start) < 0:
        return traceback[last + 1 : last + 1 + _PARSED]
    return traceback[start:].partition("\n")[2]


def title_of(error: ParsedError) -> str:
    """Return what stands for all lines of a group, with all values taken out."""
    return _pattern_of(parts_of(error))


def parts_of(error: ParsedError) -> list[str]:
    """Return the parts of the title of an error: alternately a text and a value, beginning and ending with a text."""
    text = error.exception or error.lead
    first = next((line for line in text.split("\n") if line.strip()), "")[: 4 * _TITLE]
    parts, end = [""], 0
    for value in _VALUE.finditer(first):
        reason = _REASONS.get(value[0])
        if reason and first.startswith(reason, value.end()):
            continue
        parts[-1] += first[end : value.start()]
        parts += (value[0], "")
        end = value.end()
    parts[-1] += first[end:]
    return parts


def _pattern_of(parts: Sequence[str]) -> str:
    return _shortened("".join(_stand_in(part) if place % 2 else part for place, part in enumerate(parts)))


def _stand_in(value: str) -> str:
    """Return what stands for a value; of what stands for one, itself."""
    return next((name for name, form in _FORMS if form.fullmatch(value)), value)


def _shortened(title: str) -> str:
    return title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"


def group_errors(lines: Iterable[tuple[int, int, str]]) -> list[ErrorGroup]:
    """Group error lines, given as number in the log, time (ms) and message; the most frequent first."""
    groups: dict[tuple[str, str], ErrorGroup] = {}
    for number, time, message in lines:
        error = parse_error(message)
        own = error.own_frames
        place = own[-1].place if own else ""
        parts = parts_of(error)
        key = (_pattern_of(parts), place)
        group = groups.get(key)
        if group is None and len(groups) >= MOST_GROUPS:
            key = (f"further errors, of more than {MOST_GROUPS} sorts", "")
            group, place, own, parts = groups.get(key), "", [], []
        if group is None:
            callback = own[0].function if own else ""
            title = _shortened("".join(parts)) if parts else key[0]
            groups[key] = ErrorGroup(title, 1, time, time, number, message[:_EXAMPLE], callback, place, parts)
            continue
        group.leave_out(parts)
        group.count += 1
        group.first, group.last = min(group.first, time), max(group.last, time)
    return sorted(groups.values(), key=lambda group: (-group.count, group.line))


def recurring_errors(jobs: Iterable[tuple[int, Sequence[ErrorGroup]]]) -> list[RecurringError]:
    """Return the errors of some jobs, given newest first: those of the newest job first, then the most frequent."""
    found: dict[tuple[str, str], RecurringError] = {}
    for job, groups in jobs:
        for group in groups:
            known = found.get((group.pattern, group.place))
            if known is None:
                own = msgspec.structs.replace(group, parts=list(group.parts))
                found[group.pattern, group.place] = RecurringError(own, [job])
                continue
            known.jobs.append(job)
            known.group.leave_out(group.parts)
            known.group.count += group.count
            known.group.first = min(known.group.first, group.first)
            known.group.last = max(known.group.last, group.last)
    newest = max((error.jobs[0] for error in found.values()), default=0)
    return sorted(found.values(), key=lambda error: (error.jobs[0] != newest, -error.group.count))


def _is_installed(path: str) -> bool:
    return any(part in path for part in _INSTALLED) or _STANDARD.search(path) is not None


def _is_framework(path: str) -> bool:
    if "/site-packages/" not in path and "/dist-packages/" not in path:
        return True  # the standard library
    package = re.split(r"/(?:site|dist)-packages/", path)[-1].split("/")[0].removesuffix(".py")
    return package in _FRAMEWORKS
