"""Cases as data: the files, and the comparison of a result with what is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest

from scrapy_ext.compatibility.toml import tomllib

FOLDER = Path(__file__).parent
Form = Literal["pages", "crawls", "calls", "operation"]
#: Result of the first try: ``wrong`` is a wrong value without a word, ``empty`` no value where there is one, ``error``
#: a failure that names no fault of the input.
First = Literal["right", "wrong", "empty", "error"]


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields of every case."""

    #: The behaviour that a user may rely on.
    name: str
    #: Tool and number of the public report; "first use" of this package; or "sibling" of one of these.
    source: str
    #: Kind of fault, by which rates are counted.
    kind: str
    first: First
    language: str = "en"
    #: Belongs to the set that was collected after the repairs and tried once (``set = "fresh"``), or to the tuned ones.
    set: Literal["tuned", "fresh"] = "tuned"
    #: Takes long: runs in ``make test-long``.
    long: bool = False


class Page(Case, kw_only=True):
    """A page and a request to extract it."""

    ask: dict[str, Any]
    path: str = "/page"
    html: str | None = None
    #: Bytes of the answer, for encodings and broken bodies.
    body_hex: str | None = None
    type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = {}
    status: int = 200
    browser: bool = False
    #: Values by their dotted paths in the answer.
    right: dict[str, Any] = {}
    absent: list[str] = []
    contains: dict[str, list[str]] = {}
    lacks: dict[str, list[str]] = {}
    #: Status of the service, and a part of the type of its problem.
    answer: int = 200
    problem: str = ""
    #: Text of ``httpResponseBody``.
    body: str | None = None

    @property
    def content(self) -> bytes:
        """Body that the site sends."""
        return bytes.fromhex(self.body_hex) if self.body_hex is not None else (self.html or "").encode()


class Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An answer of a site, with ``{site}`` for its URL in headers and text."""

    status: int = 200
    #: Names and values, in their order; a name may stand more than once.
    headers: list[tuple[str, str]] = []
    body: str = ""
    type: str = "text/html; charset=utf-8"


class Crawl(Case, kw_only=True):
    """A spider, its site and its settings."""

    #: Source of a spider named ``s``; ``{site}`` is the URL of the site.
    spider: str
    pages: dict[str, str] = {}
    #: Answers of a path, one after another; the last one is repeated. Calls of all runs count.
    answers: dict[str, list[Answer]] = {}
    #: Seconds until the site answers.
    latency: float = 0
    #: With ``{port}`` for that of the site.
    settings: dict[str, Any] = {}
    arguments: list[str] = []
    environment: dict[str, str] = {}
    #: The same command so many times. A spider may kill its process in a former run.
    runs: int = 1
    #: Names of files that the last run leaves, which are read as ``files.NAME``.
    files: list[str] = []
    #: Number of the job whose items are compared; 0: one job for each run.
    stored_job: int = 0
    #: ``items``, ``exit``, ``reason``, ``stats.NAME``, ``paths`` (what the site was asked for, in order),
    #: ``sent.PATH.header`` (of the last request of a path, with ``{site}`` for the site's URL), and
    #: ``received`` (method, path and body of each request, the bytes as Latin-1) of the last run.
    right: dict[str, Any] = {}
    #: Least mean time between two requests to the site, in seconds.
    least_gap: float = 0
    #: Greatest numbers of the last run.
    at_most: dict[str, float] = {}
    log_has: list[str] = []
    log_lacks: list[str] = []
    #: Stored items as JSON, for values that TOML lacks.
    stored_json: str = ""
    #: Patterns that the log of the job on the platform has, and has not.
    stored_log_has: list[str] = []
    stored_log_lacks: list[str] = []
    #: Any of these that is as without the add-on.
    same_as_scrapy: list[str] = []


class Call(Case, kw_only=True):
    """Python that calls a server and sets ``result``."""

    code: str
    right: Any


class Step(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A command line and what it must do."""

    run: str
    exit: int = 0
    has: list[str] = []
    lacks: list[str] = []


class Operation(Case, kw_only=True):
    """Command lines, one after another, in the folder of a project."""

    steps: list[Step]
    files: dict[str, str] = {}
    #: Pages of a site, whose URL is ``{site}`` in the steps and files.
    pages: dict[str, str] = {}


_FORMS: Mapping[str, type[Case]] = {"pages": Page, "crawls": Crawl, "calls": Call, "operation": Operation}
assert set(_FORMS) == set(get_args(Form))


def cases_of(form: Form) -> list[Any]:
    """The cases of a form, from all of its files."""
    found = []
    for file in sorted((FOLDER / form).glob("*.toml")):
        for number, table in enumerate(tomllib.loads(file.read_text("utf-8")).get("case", []), 1):
            try:
                found.append(msgspec.convert(table, _FORMS[form]))
            except msgspec.ValidationError as error:
                raise ValueError(f"{file.name}, case {number} ({table.get('name')!r}): {error}") from None
    return found


def parameters(cases: list[Any]) -> list[Any]:
    """Cases as parameters of a test, with their names; the long ones in the lane of the long tests.

    Long ones whose first result was right found nothing to repair: they run in ``make test-full``.
    """
    return [pytest.param(case, id=case.name, marks=_marks(case)) for case in cases]


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    if not case.long:
        return []
    return [pytest.mark.full if case.first == "right" else pytest.mark.long]


def value_of(answer: Any, path: str) -> Any:
    """Value at a dotted path of an answer; None where a step of it is missing. A dot in a name is written ``\\.``."""
    for step in re.split(r"(?<!\\)\.", path):
        name = step.replace("\\.", ".")
        if isinstance(answer, list):
            answer = (
                answer[int(name)] if name.lstrip("-").isdigit() and -len(answer) <= int(name) < len(answer) else None
            )
        elif isinstance(answer, Mapping):
            answer = answer.get(name)
        else:
            return None
    return answer


def faults_of(case: Page, answer: Mapping[str, Any]) -> Iterator[str]:
    """Differences between an answer of the extraction service and what is right."""
    for path, right in case.right.items():
        if (found := value_of(answer, path)) != right:
            yield f"{path} is {found!r}, not {right!r}"
    for path in case.absent:
        if (found := value_of(answer, path)) not in (None, "", []):
            yield f"{path} is {found!r}, and has no value on the page"
    for path, parts in case.contains.items():
        text, start = _text(value_of(answer, path)), 0
        for part in parts:
            place = text.find(part, start)
            if place < 0:
                yield f"{path} lacks {part!r}: {text!r}"
                break
            start = place + len(part)
    for path, parts in case.lacks.items():
        text = _text(value_of(answer, path))
        yield from (f"{path} has {part!r}: {text!r}" for part in parts if part in text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
