"""Arguments of a spider in the form that runs it: those of its code, and values of the last runs, without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.argument_types import FIELD, type_of
from scrapy_ext.api.platform.jobs import RUN_PARAMETERS, SHOWN_STATES
from scrapy_ext.api.platform.versions import SpiderArgument, SpiderInfo
from scrapy_ext.server.jobs.versions.environments import BuildError
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, arguments_of
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.argument_text import NUMBER, Earlier, text_of
from scrapy_ext.server.ui.frame import Visit

#: Jobs whose arguments are suggested, and those with different ones that the form is filled from.
_READ: Final = 30
_RUNS: Final = 5
#: Maximum arguments that only earlier runs had, suggestions of one, and characters of a suggestion.
_UNDECLARED: Final = 20
_SUGGESTED: Final = 10
_LONG: Final = 200
#: Texts offered for an argument that is true or false.
_FLAGS: Final = ("True", "False")


class Control(NamedTuple):
    """The control of an argument; ``field`` names it in the form, ``place`` is its ID."""

    name: str
    field: str
    place: str
    value: str
    #: Annotation, or the type of the last value in words; and the default, as code.
    kind: str
    default: str
    help: str
    required: bool
    #: The only values; none for any text.
    choices: Sequence[str]
    suggestions: Sequence[str]
    #: Value of the last run that had the argument, "" for none.
    last: str
    is_number: bool


class EarlierRun(NamedTuple):
    """A job with other arguments than the later ones."""

    key: str
    changed: int
    arguments: str


class Known(NamedTuple):
    """``spider``: what the code declares, None if it is not known; ``runs``: the last jobs of the spider."""

    spider: SpiderInfo | None
    runs: Sequence[StoredJob]

    @property
    def arguments(self) -> Sequence[SpiderArgument]:
        return self.spider.arguments if self.spider else ()

    def earlier(self, given: Mapping[str, Any]) -> Earlier:
        """Return the arguments ``given`` to the job that the form is filled from, and of others the last values."""
        values = dict(given)
        for job in self.runs:
            for name, value in arguments_of(job.metadata)[0].items():
                values.setdefault(name, value)
        return Earlier(values, {each.name: each.annotation for each in self.arguments})


async def spiders_of(visit: Visit, version: str) -> list[SpiderInfo]:
    """Return the spiders of a version ("": the current one, or the server's own project where nothing is deployed)."""
    environments = visit.services.environments
    if version or environments is None or not environments.has_read_local:
        return await visit.store.versions.spiders(visit.project, version or None)
    try:
        return await environments.spiders(visit.project)
    except BuildError:  # the job reports it
        return []


async def known_of(visit: Visit, spider: str, spiders: Sequence[SpiderInfo]) -> Known:
    """Return what is known of a spider, "" for none yet."""
    if not spider:
        return Known(None, [])
    which = JobFilter(spider=spider, states=SHOWN_STATES)
    runs = await visit.store.jobs.listed(visit.project, which, JobPage(_READ))
    return Known(next((each for each in spiders if each.name == spider), None), runs)


def controls_of(
    known: Known, values: Mapping[str, str], earlier: Earlier, further: Set[str] = frozenset()
) -> list[Control]:
    """Return the controls of the arguments that the code declares, that are given, and that the last runs had, but for
    those among the ``further`` ones."""
    suggested = _suggestions(known.runs)
    declared = {each.name: each for each in known.arguments if each.name not in RUN_PARAMETERS}
    found = [name for name in suggested if name not in declared and name not in values][:_UNDECLARED]
    names = dict.fromkeys(name for name in (*declared, *values, *found) if name in values or name not in further)
    return [
        _control(
            place,
            declared.get(name) or SpiderArgument(name),
            values.get(name, ""),
            suggested.get(name, ()),
            earlier.word(name),
        )
        for place, name in enumerate(names, 1)
    ]


def _control(place: int, argument: SpiderArgument, value: str, suggestions: Sequence[str], had: str) -> Control:
    """Return a control; ``had`` is the type of the argument's last value, "" for text."""
    wanted = type_of(argument.annotation)
    # True and false are written otherwise in JSON than in annotations.
    value = value.capitalize() if value in ("true", "false") and value.capitalize() in wanted.choices else value
    choices = [*wanted.choices, *([value] if value and value not in wanted.choices else [])] if wanted.choices else []
    flags = _FLAGS if wanted.kind == "bool" else ()
    return Control(
        argument.name,
        FIELD + argument.name,
        f"argument-{place}",
        value,
        argument.annotation or had,
        "" if argument.default in (None, "None") else argument.default or "",
        argument.help,
        argument.required,
        choices,
        list(dict.fromkeys([*flags, *suggestions]))[:_SUGGESTED],
        suggestions[0] if suggestions else "",
        wanted.kind in ("int", "float") or had == NUMBER,
    )


def _suggestions(runs: Sequence[StoredJob]) -> dict[str, list[str]]:
    """Return the values of each argument in the last jobs, the latest first, without secret and long ones."""
    found: dict[str, list[str]] = {}
    for job in runs:
        for name, value in shapes.hidden(arguments_of(job.metadata)[0]).items():
            if name in RUN_PARAMETERS or len(name) > _LONG:
                continue
            values = found.setdefault(name, [])
            text = text_of(value)
            if 0 < len(text) <= _LONG and text not in (shapes.HIDDEN, *values):
                values.append(text)
    return found


def earlier_runs(known: Known) -> list[EarlierRun]:
    """Return the last jobs with different arguments."""
    found: dict[str, EarlierRun] = {}
    for job in known.runs:
        arguments, words = arguments_of(job.metadata)
        shown = shapes.hidden({**arguments, "": words} if words else arguments)
        text = ", ".join(
            f"{name}={shapes.cell(value)}" if name else shapes.cell(value) for name, value in shown.items()
        )
        found.setdefault(text, EarlierRun(str(job.key), job.changed, text))
    return list(found.values())[:_RUNS]
