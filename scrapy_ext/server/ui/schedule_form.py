"""The form of a periodic job: conversion of its tasks to text and back.

Arguments are ``name=value`` lines or a JSON object. Arguments that look secret are hidden; a hidden value that is sent
back keeps the stored value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, SCRIPT
from scrapy_ext.api.platform.periodic import MAX_TASKS, Task
from scrapy_ext.api.platform.schedules import MAX_CRONS
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui import shapes

#: Number of empty tasks at the end of the form.
_SPARE: Final = 1


class FormTask(NamedTuple):
    name: str = ""
    priority: str = str(DEFAULT_PRIORITY)
    arguments: str = ""

    @classmethod
    def of(cls, task: Task) -> Self:
        shown = shapes.hidden({"": task.script_args} if task.name.startswith(SCRIPT) else task.spider_args)
        arguments = shown[""] if task.name.startswith(SCRIPT) else _text_of(shown)
        return cls(task.name, str(task.priority), arguments)

    @classmethod
    def of_form(cls, form: Form) -> list[Self]:
        """Return the tasks of a submitted form, including empty ones."""
        names, priorities, arguments = (form.all(name)[: MAX_TASKS + _SPARE] for name in _TASK_FIELDS)
        return [cls(*task) for task in zip(names, priorities, arguments, strict=False)]

    @property
    def is_empty(self) -> bool:
        return not (self.name.strip() or self.arguments.strip())


_TASK_FIELDS: Final = ("task", "priority", "arguments")


def form_tasks(tasks: Sequence[Task]) -> list[FormTask]:
    """Return tasks for a form, followed by empty ones."""
    return [*(FormTask.of(task) for task in tasks), *[FormTask()] * _SPARE]


def fields_of(form: Form, stored: Sequence[Task] = ()) -> dict[str, Any]:
    """Return the fields of a schedule in a form that showed the ``stored`` tasks; raises :class:`ContractError` with
    all violations."""
    tasks: list[dict[str, Any]] = []
    faults: list[Violation] = []
    for task in FormTask.of_form(form):
        if task.is_empty:
            continue
        try:
            tasks.append(_task(task, stored))
        except ContractError as error:
            faults += error.violations
    if faults:
        raise ContractError(faults)
    return {
        "cron": " ".join((form.get("cron") or "").split()),
        "description": (form.get("description") or "").strip(),
        "addtags": list(dict.fromkeys(filter(None, map(str.strip, (form.get("addtags") or "").splitlines())))),
        "disabled": form.get("disabled") is not None,
        "tasks": tasks,
    }


def crons_of_form(form: Form) -> list[str]:
    """Return the cron expressions of a form, without empty ones."""
    return [cron for text in form.all("cron")[:MAX_CRONS] if (cron := " ".join(text.split()))]


def _task(task: FormTask, stored: Sequence[Task]) -> dict[str, Any]:
    name = task.name.strip()
    if not task.priority.strip().isdecimal() or len(task.priority) > 3:
        raise refused("tasks.priority", f"must be a number, got {task.priority[:20]!r}", "Choose one from the list.")
    fields: dict[str, Any] = {"name": name, "priority": int(task.priority)}
    if name.startswith(SCRIPT):
        words = task.arguments.strip()
        before = (each.script_args for each in stored if each.name == name and words == shapes.HIDDEN)
        return {**fields, "script_args": next(before, words)}
    arguments = dict(_arguments(task.arguments))
    for argument in [each for each, value in arguments.items() if value == shapes.HIDDEN]:
        arguments[argument] = _shown_before(name, argument, stored)
    return {**fields, "spider_args": arguments}


def _shown_before(name: str, argument: str, stored: Sequence[Task]) -> Any:
    """Return the stored value of a hidden argument."""
    for task in stored:
        if task.name == name and argument in task.spider_args:
            return task.spider_args[argument]
    raise refused("tasks.arguments", f"has no value of {argument[:60]!r} to keep", "Write the value.")


def _arguments(text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip().startswith("{"):
        try:
            yield from bodies.value(text.encode(), "tasks.arguments").items()
        except ContractError as error:
            rule = error.violations[0].rule
            raise refused("tasks.arguments", rule, 'Write {"name": "value"}, or one name=value per line.') from None
        return
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise refused("tasks.arguments", f"must be name=value on each line, got {line[:60]!r}", "Add the name.")
        yield name.strip(), value.strip()


def _text_of(arguments: dict[str, Any]) -> str:
    """Return ``name=value`` lines if they lose nothing, else JSON."""
    lines = [f"{name}={value}" for name, value in arguments.items()]
    try:
        if dict(_arguments("\n".join(lines))) == arguments:
            return "\n".join(lines)
    except ContractError:
        pass
    return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
