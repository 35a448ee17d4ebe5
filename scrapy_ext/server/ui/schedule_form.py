"""The form of a periodic job: conversion of its tasks to text and back.

Arguments are ``name=value`` lines or a JSON object. Arguments that look secret are hidden; a hidden value that is sent
back keeps the stored value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.common_schedules import MAX_CRONS
from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, SCRIPT
from scrapy_ext.api.platform.periodic import MAX_TASKS, NewSchedule, Task
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.argument_text import arguments_of_text, text_of_arguments, with_stored
from scrapy_ext.server.ui.record_form import given_fields, texts_of

#: Number of empty tasks at the end of the form.
_SPARE: Final = 1


class FormTask(NamedTuple):
    name: str = ""
    priority: str = str(DEFAULT_PRIORITY)
    arguments: str = ""
    workers: str = ""

    @classmethod
    def of(cls, task: Task) -> Self:
        shown = shapes.hidden({"": task.script_args} if task.name.startswith(SCRIPT) else task.spider_args)
        arguments = shown[""] if task.name.startswith(SCRIPT) else text_of_arguments(shown)
        workers = "" if task.job_workers is msgspec.UNSET else task.job_workers
        return cls(task.name, str(task.priority), arguments, workers)

    @classmethod
    def of_form(cls, form: Form) -> list[Self]:
        """Return the tasks of a submitted form, including empty ones."""
        names, priorities, arguments, workers = (form.all(name)[: MAX_TASKS + _SPARE] for name in _TASK_FIELDS)
        # Forms of programs may leave the number of workers out.
        workers += ("",) * (len(names) - len(workers))
        return [cls(*task) for task in zip(names, priorities, arguments, workers, strict=False)]

    @property
    def is_empty(self) -> bool:
        return not (self.name.strip() or self.arguments.strip() or self.workers.strip())


_TASK_FIELDS: Final = ("task", "priority", "arguments", JOB_WORKERS)
#: Field of a task's arguments in violations.
_ARGUMENTS: Final = "tasks.arguments"
#: Values of the fields whose controls are empty.
_EMPTY: Final = msgspec.to_builtins(NewSchedule(cron="", tasks=[]))


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
    given = given_fields(NewSchedule, texts_of(NewSchedule, form))
    tags = [*dict.fromkeys(given.get("addtags", ()))]
    return {**_EMPTY, **given, "addtags": tags, "cron": " ".join((form.get("cron") or "").split()), "tasks": tasks}


def crons_of_form(form: Form) -> list[str]:
    """Return the cron expressions of a form, without empty ones."""
    return [cron for text in form.all("cron")[:MAX_CRONS] if (cron := " ".join(text.split()))]


def _task(task: FormTask, stored: Sequence[Task]) -> dict[str, Any]:
    name = task.name.strip()
    if not task.priority.strip().isdecimal() or len(task.priority) > 3:
        raise refused("tasks.priority", f"must be a number, got {task.priority[:20]!r}", "Choose one from the list.")
    fields: dict[str, Any] = {"name": name, "priority": int(task.priority)}
    if workers := task.workers.strip():
        fields[JOB_WORKERS] = workers
    if name.startswith(SCRIPT):
        words = task.arguments.strip()
        if words == shapes.HIDDEN:
            before = next((each.script_args for each in stored if each.name == name), None)
            if before is None:
                raise refused(_ARGUMENTS, "has no command line to keep", "Write it.")
            words = before
        return {**fields, "script_args": words}
    given_before = [each.spider_args for each in reversed(stored) if each.name == name]
    kept = {argument: value for arguments in given_before for argument, value in arguments.items()}
    arguments = with_stored(arguments_of_text(task.arguments, _ARGUMENTS), kept, _ARGUMENTS)
    return {**fields, "spider_args": arguments}
