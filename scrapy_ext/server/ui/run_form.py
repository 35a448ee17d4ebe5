"""The form that starts a job: its texts, empty, submitted or of an earlier job, and the fields of ``run.json`` in them.

An argument of one line has a control of its own; others are in the text of further arguments. What is secret in an
earlier job is hidden, and sent back hidden it is taken from that job.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform import jobs
from scrapy_ext.api.platform.argument_types import FIELD
from scrapy_ext.api.platform.jobs import JOB_TIMEOUT, RUN_PARAMETERS, SCRIPT
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import Checks, ContractError, Violation, escaped, refused
from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.http.forms import Form, check_name, check_tags
from scrapy_ext.server.store.jobs.reruns import custom_metadata, metadata_of_rerun
from scrapy_ext.server.store.jobs.rows import StoredJob, arguments_of, tags_of
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.argument_text import (
    Earlier,
    arguments_of_text,
    is_of_lines,
    text_of,
    text_of_arguments,
    with_stored,
)

#: Texts of a new form; the other fields are empty.
_DEFAULTS: Final = {"priority": str(jobs.DEFAULT_PRIORITY), "units": str(jobs.DEFAULT_UNITS)}
_TEXTS: Final = (
    *("spider", "version", "arguments", "priority", "units", JOB_WORKERS, "tags", "timeout"),
    *("job_settings", "environment", "cmd_args", "node_tags", "meta"),
)
#: Fields that a periodic job does not have.
_OF_ONE_RUN: Final = ("version", "units", "timeout", "job_settings", "environment", "node_tags", "meta")
#: Names of ``run.json`` in violations, and those of the form.
_NAMES: Final = {"add_tag": "tags"}
#: Members of the metadata with a field of their own.
_PLACED: Final = (
    *("spider_args", "priority", "units", "tags", "job_settings", "environment", "cmd_args", "node_tags", "version"),
    *("spider_type", JOB_WORKERS),
)


class RunForm(NamedTuple):
    """``texts``: of each field; ``values``: of the arguments with a control; ``again``: key of the job it is filled
    from, "" for none."""

    texts: dict[str, str]
    values: dict[str, str]
    again: str = ""

    @classmethod
    def new(cls, spider: str) -> Self:
        return cls(dict.fromkeys(_TEXTS, "") | _DEFAULTS | {"spider": spider}, {})

    @classmethod
    def submitted(cls, form: Form) -> Self:
        texts = {name: form.get(name) or "" for name in _TEXTS}
        texts |= {name: texts[name] or default for name, default in _DEFAULTS.items()}
        # A field that is empty is an argument that is not given.
        given = {name[len(FIELD) :]: value.strip() for name, value in form.fields if name.startswith(FIELD)}
        values = {name: value for name, value in given.items() if value}
        return cls(texts | {"spider": texts["spider"].strip()}, values, form.get("again") or "")

    @classmethod
    def of_job(cls, job: StoredJob) -> Self:
        """Return the form for another run of a job."""
        metadata = metadata_of_rerun(job)
        arguments, words = arguments_of(metadata)
        shown = shapes.hidden(arguments)
        values = {name: text for name, value in shown.items() if _fits(text := text_of(value))}
        settings = _object(metadata, "job_settings")
        timeout = settings.pop(JOB_TIMEOUT, "")
        texts = {
            "spider": job.spider,
            "arguments": text_of_arguments({name: value for name, value in shown.items() if name not in values}),
            "tags": text_of_tags(tags_of(metadata)),
            "timeout": text_of(timeout),
            JOB_WORKERS: text_of(metadata.get(JOB_WORKERS, "")),
            "job_settings": _json(shapes.hidden(settings)),
            "environment": _json(dict.fromkeys(_object(metadata, "environment"), shapes.HIDDEN)),
            "cmd_args": shapes.hidden({"": words})[""],
            "node_tags": text_of_tags(metadata.get("node_tags") or ()),
            "meta": _json(shapes.hidden(custom_metadata(metadata))),
        }
        numbers = {name: str(metadata.get(name, default)) for name, default in _DEFAULTS.items()}
        return cls(dict.fromkeys(_TEXTS, "") | texts | numbers, values, str(job.key))

    @property
    def is_script(self) -> bool:
        return self.texts["spider"].startswith(SCRIPT)

    def further_names(self) -> frozenset[str]:
        """Return the names in the text of further arguments, none of one that is wrong."""
        try:
            return frozenset(arguments_of_text(self.texts["arguments"], "arguments"))
        except ContractError:
            return frozenset()

    def arguments(self, stored: Mapping[str, Any], earlier: Earlier) -> dict[str, Any]:
        """Return all arguments, hidden ones from the ``stored`` metadata, those with an ``earlier`` value of its type;
        raises ``ContractError``."""
        others = arguments_of_text(self.texts["arguments"], "arguments")

        def place(name: str) -> str:
            return FIELD + name if name in self.values else "arguments"

        for name in others:
            if name in self.values:
                rule = f"has {name[:60]}, which has a field of its own"
                raise refused("arguments", rule, "Remove it from one of the two.")
        found = {**self.values, **others}
        for name, value in found.items():
            if name in RUN_PARAMETERS:
                raise refused(place(name), f"has {name}, which is no argument", "Use the field of that name.")
            if "\0" in f"{name}{value}":
                raise refused(place(name), "has the character NUL", "Remove it.")
        found |= earlier.typed(found if is_of_lines(self.texts["arguments"]) else self.values, place)
        return with_stored(found, _object(stored, "spider_args"), "arguments")


def run_fields(form: RunForm, stored: Mapping[str, Any], earlier: Earlier) -> Form:
    """Return the fields of ``run.json``; ``stored`` is the metadata of the job that the form is filled from.

    Raises ``ContractError`` with all violations of texts that are no values of a field.
    """
    texts, checks = form.texts, Checks()
    checks.passed(lambda: check_name("spider", texts["spider"]))
    arguments: dict[str, Any] = checks.passed(lambda: form.arguments(stored, earlier)) or {}
    settings: dict[str, Any] = checks.passed(lambda: _settings(texts, stored)) or {}
    environment: dict[str, Any] = checks.passed(lambda: _given(texts, "environment", stored)) or {}
    words = checks.passed(lambda: _words(texts["cmd_args"], stored))
    tags: tuple[str, ...] = checks.passed(lambda: tags_of_text(texts["tags"])) or ()
    meta: dict[str, Any] = checks.passed(lambda: _meta(texts, stored)) or {}
    checks.end()
    if any(not isinstance(value, str) for value in arguments.values()):
        # Fields of ``run.json`` are texts.
        meta["spider_args"], arguments = arguments, {}
    objects = {"job_settings": settings, "environment": environment, "meta": meta}
    return Form(
        [
            *((name, texts[name]) for name in ("spider", *_DEFAULTS)),
            *(("add_tag", tag) for tag in tags),
            *arguments.items(),
            *((name, msgspec.json.encode(value).decode()) for name, value in objects.items() if value),
            *([("cmd_args", words)] if words else []),
            *([(JOB_WORKERS, workers)] if (workers := texts[JOB_WORKERS].strip()) else []),
        ]
    )


def _settings(texts: Mapping[str, str], stored: Mapping[str, Any]) -> dict[str, Any]:
    settings, timeout = _given(texts, "job_settings", stored), texts["timeout"].strip()
    if not timeout:
        return settings
    if JOB_TIMEOUT in settings:
        rule = f"is given, and {JOB_TIMEOUT} among the settings too"
        raise refused("timeout", rule, "Remove one of the two.")
    return {**settings, JOB_TIMEOUT: int(timeout) if timeout.isascii() and timeout.isdigit() else timeout}


def _meta(texts: Mapping[str, str], stored: Mapping[str, Any]) -> dict[str, Any]:
    meta = _given(texts, "meta", {"meta": custom_metadata(stored)})
    if placed := [name for name in _PLACED if name in meta]:
        raise refused("meta", f"has {placed[0]}, which is no part of it here", "Use the field of that name.")
    if version := texts["version"].strip():
        meta["version"] = version
    if tags := tags_of_text(texts["node_tags"], "node_tags"):
        meta["node_tags"] = list(tags)
    return meta


def _given(texts: Mapping[str, str], name: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a field."""
    try:
        given = Form([(name, texts[name].strip())]).object(name) or {}
    except ContractError as error:
        raise refused(name, error.violations[0].rule, 'Write one JSON object, such as {"NAME": 1}.') from None
    return with_stored(given, _object(stored, name), name)


def _words(text: str, stored: Mapping[str, Any]) -> str:
    if text.strip() != shapes.HIDDEN:
        return text.strip()
    if not (words := arguments_of(stored)[1]):
        raise refused("cmd_args", "has no command line to keep", "Write it.")
    return words


def tags_of_text(text: str, field: str = "tags") -> tuple[str, ...]:
    """Parse tags separated by commas, one with a comma in quotes; raises ``ContractError``."""
    try:
        (found,) = csv.reader([text], skipinitialspace=True) if text else ([],)
    except (csv.Error, ValueError):
        raise refused(field, "must be tags in one line", "Separate them with commas.") from None
    return check_tags(field, tuple(dict.fromkeys(filter(None, map(str.strip, found)))))


def text_of_tags(tags: Iterable[object]) -> str:
    """Return tags as :func:`tags_of_text` parses them."""
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(map(str, tags))
    return written.getvalue().replace(",", ", ") if '"' not in written.getvalue() else written.getvalue()


def schedule_faults(form: RunForm) -> Iterator[Violation]:
    """Yield the violations of a form whose job is to run periodically."""
    for name in (*_OF_ONE_RUN, *([] if form.is_script else ["cmd_args"])):
        if form.texts[name].strip() not in ("", _DEFAULTS.get(name)):
            rule = "cannot be given to a periodic job, whose jobs have what the project and the spider have"
            remedy = f"Write {_DEFAULTS[name]}." if name in _DEFAULTS else "Leave it empty."
            yield Violation(name, rule, remedy)


def of_form(error: ContractError, form: RunForm) -> ContractError:
    """Return the error with the names of the form's fields in place of those of ``run.json``."""
    return ContractError([_of_form(each, form) for each in error.violations])


def _of_form(violation: Violation, form: RunForm) -> Violation:
    if violation.field.startswith(FIELD):
        return violation
    place, _, member = violation.field.partition(".")
    if member == JOB_TIMEOUT and form.texts["timeout"].strip():
        return msgspec.structs.replace(violation, field="timeout")
    rule = f"has {member}, which {violation.rule}" if member else violation.rule
    return msgspec.structs.replace(violation, field=_NAMES.get(place, place), rule=rule)


def _fits(value: str) -> bool:
    """Return true for a text that a control of one line keeps, and that is not taken for an argument not given."""
    return bool(value) and value == value.strip() and not re.search(r"[\r\n]", value) and escaped(value) == value


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() if value else ""


def _object(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = metadata.get(name)
    return dict(value) if isinstance(value, dict) else {}
