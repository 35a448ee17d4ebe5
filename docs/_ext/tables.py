"""Directives that generate reference tables from the tables of the code, so that both always agree.

``.. settings-of:: PREFIX`` describes the settings with this prefix; a setting that no page describes is a warning.
``.. extract-fields::``, ``.. extract-actions::``, ``.. extract-action-members::``, ``.. problem-types::`` and
``.. attempts::`` are the tables of the extraction API; ``.. server-options::`` is that of the server's options, and
``.. paths::`` that of all routes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.rst import escape

from scrapy_ext.api.extraction import FIELDS, PROBLEM_TYPES
from scrapy_ext.client.extraction.errors import error_of
from scrapy_ext.client.extraction.retry_policy import DEFAULT_RULES
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.session import zyte_api_names
from scrapy_ext.crawl.session.zyte_api_names import Equivalent
from scrapy_ext.server.config.command_line import OPTIONS
from scrapy_ext.server.config.option import Role
from scrapy_ext.settings import SETTINGS, Setting

logger = logging.getLogger(__name__)

_SETTING = re.compile(r"\b(?:EXTRACT_API|PLATFORM|FRONTIER|DUPEFILTER|SERVER|OPENTELEMETRY)_[A-Z_]+\b")


def text(plain: str) -> str:
    """Return plain text as reStructuredText: escaped, with links for names of settings."""
    pieces, last = [], 0
    for match in _SETTING.finditer(plain):
        if match[0] in SETTINGS:
            pieces += [escape(plain[last : match.start()]), rf":setting:`{match[0]}`"]
            last = match.end()
    return r"\ ".join([*pieces, escape(plain[last:])]) if pieces else escape(plain)


def code(value: object) -> str:
    """Return a value as inline code; an empty string for an empty value."""
    return f"``{value}``" if value not in ("", None) else ""


class Generated(SphinxDirective):
    """Directive whose content is generated as lines of reStructuredText; ``sources`` are the modules with its data."""

    sources: ClassVar[Sequence[str]] = ()

    def lines(self) -> Iterable[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        for name in (*self.sources, type(self).__module__):
            found = find_spec(name)
            if found is not None and found.origin is not None:
                self.env.note_dependency(found.origin)
        content = StringList(list(self.lines()), source=f"<{self.name}>")
        parent = nodes.container()
        parent.document = self.state.document
        self.state.nested_parse(content, self.content_offset, parent)
        return parent.children


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterable[str]:
    """Return the lines of a table."""
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield "   :class: reference-table"
    yield f"   :widths: {' '.join(map(str, widths))}"
    yield ""
    for row in (header, *rows):
        for index, cell in enumerate(row):
            yield f"   {'*' if index == 0 else ' '} - {cell}".rstrip()
    yield ""


# ── settings ──


class SettingsOf(Generated):
    """Settings whose names begin with a prefix."""

    required_arguments = 1
    sources = ("scrapy_ext.settings",)

    def lines(self) -> Iterable[str]:
        described = _described(self.env)
        for name, setting in SETTINGS.items():
            if name.startswith(self.arguments[0]):
                described.add(name)
                yield from _setting_lines(setting)


def _setting_lines(setting: Setting) -> Iterable[str]:
    default = "not set by default" if setting.default is None else f"default {code(repr(setting.default))}"
    environment = ", or a variable of this name in the environment or in ``.env``" if setting.environment else ""
    yield f".. setting:: {setting.name}"
    yield ""
    yield f"   {text(setting.meaning)}"
    yield ""
    yield "   .. rst-class:: of-setting"
    yield ""
    yield f"   {code(setting.type.value)}, {default}{environment}"
    yield ""


def _described(env: BuildEnvironment) -> set[str]:
    if not hasattr(env, "described_settings"):
        env.described_settings = set()
    found: set[str] = env.described_settings
    return found


def warn_of_missing(_app: Sphinx, env: BuildEnvironment) -> None:
    """Log a warning for settings that are on no page."""
    missing = SETTINGS.keys() - _described(env)
    if missing:
        logger.warning("no page describes the settings %s: add a settings-of directive", ", ".join(sorted(missing)))


# ── the extraction API ──


class ExtractFields(Generated):
    """Table of the fields of an extraction request."""

    sources = ("scrapy_ext.api.extraction.fields",)

    def lines(self) -> Iterable[str]:
        rows = []
        for field in FIELDS.values():
            meaning = text(field.meaning)
            if field.choices:
                meaning += f" One of {', '.join(map(code, field.choices))}."
            if field.extension:
                meaning += " Extension."
            kind = field.type.value + (" or null" if field.nullable else "")
            rows.append((code(field.name), kind, field.kind.value, meaning))
        yield from table(("Field", "Type", "Kind of request", "Meaning"), rows, (30, 15, 10, 45))


class ExtractActions(Generated):
    """Table of the browser actions of the included service."""

    sources = ("scrapy_ext.server.extraction.actions.handlers",)

    def lines(self) -> Iterable[str]:
        # Imports the browser's library, which only the build of this page needs.
        from scrapy_ext.server.extraction.actions.handlers import ACTIONS

        rows = [
            (code(kind.name), text(kind.meaning), ", ".join(map(code, kind.needs)), ", ".join(map(code, kind.takes)))
            for kind in ACTIONS.values()
        ]
        yield from table(("Action", "Effect", "Required members", "Optional members"), rows, (20, 35, 20, 25))


class ExtractActionMembers(Generated):
    """Table of the members of browser actions."""

    sources = ("scrapy_ext.server.extraction.actions.reading",)

    def lines(self) -> Iterable[str]:
        from scrapy_ext.server.extraction.actions.reading import MEMBERS

        rows = [(code(name), text(meaning)) for name, meaning in MEMBERS.items()]
        yield from table(("Member", "Meaning"), rows, (25, 75))


class ProblemTypes(Generated):
    """Table of the errors of the extraction service."""

    sources = ("scrapy_ext.api.extraction.problems", "scrapy_ext.client.extraction.errors")

    def lines(self) -> Iterable[str]:
        rows = [
            (
                str(problem.status),
                code(problem.type),
                text(problem.condition),
                "yes" if problem.retry_after else "",
                code(type(error_of(problem.status, {}, b"")).__name__),
            )
            for problem in PROBLEM_TYPES.values()
        ]
        header = ("Status", "Type", "Cause", "Retry-After", "Exception")
        yield from table(header, rows, (8, 28, 34, 10, 20))


class Attempts(Generated):
    """Table of the retry policy: attempts and waits by type of error."""

    sources = ("scrapy_ext.client.extraction.retry_policy",)

    def lines(self) -> Iterable[str]:
        rows = [
            (code(name), str(rule.attempts), f"{rule.wait:g}", f"{rule.longest:g}")
            for name, rule in DEFAULT_RULES.items()
        ]
        yield from table(("Error", "Attempts", "First wait (s)", "Longest wait (s)"), rows, (40, 20, 20, 20))


# ── the server ──


class ServerOptions(Generated):
    """Every option of ``scrapy platform serve``, ``worker`` and the commands that work on a store."""

    sources = ("scrapy_ext.server.config.config", "scrapy_ext.server.config.option")

    def lines(self) -> Iterable[str]:
        return server_options()


def server_options() -> Iterable[str]:
    """The lines of the table of the server's options."""
    taken_by = {Role.SERVER: "serve", Role.WORKER: "worker", Role.STORE: "backup, restore, migrate, vacuum"}
    rows = [
        (
            " ".join(map(code, option.options)),
            ", ".join(name for role, name in taken_by.items() if option.roles & role),
            option.unit or (option.metavar and code(option.metavar)) or ", ".join(map(code, option.choices or ())),
            text(option.default_text),
            " ".join(code(name) for name in dict.fromkeys((option.variable, option.setting)) if name),
            text(option.meaning) + (" May be repeated." if option.repeatable else ""),
        )
        for option in OPTIONS
    ]
    header = ("Option", "Of", "Value", "Default", "Variable or setting", "Meaning")
    return table(header, rows, (18, 10, 12, 15, 15, 30))


class ZyteApiNames(Generated):
    """Names of scrapy-zyte-api, SETTINGS or META, with the names of this package."""

    required_arguments = 1
    sources = ("scrapy_ext.crawl.session.zyte_api_names",)

    def lines(self) -> Iterable[str]:
        names: Mapping[str, Equivalent] = getattr(zyte_api_names, self.arguments[0])
        role = "reqmeta" if self.arguments[0] == "META" else "setting"
        rows = [
            (code(theirs), f":{role}:`{row.ours}`" if row.ours else "none", text(row.note))
            for theirs, row in names.items()
        ]
        yield from table(("With scrapy-zyte-api", "Here", "Notes"), rows, (35, 25, 40))


class Paths(Generated):
    """Every path of both services, as it is declared, by its first part."""

    sources = ("scrapy_ext.server.http.routes",)

    def lines(self) -> Iterable[str]:
        # Imports the extraction libraries, which only the build of this page needs.
        from scrapy_ext.server.routes import ROUTES

        by_first: dict[str, list[tuple[str, str, str]]] = {}
        for route in ROUTES:
            row = (f"{route.method} {code(route.shown)}", text(route.summary), text(route.access.value))
            by_first.setdefault(route.first if len(route.parts) > 1 else "", []).append(row)
        for first, rows in sorted(by_first.items(), key=lambda each: (not each[0], each[0])):
            title = code(f"/{first}/") if first else "The server itself"
            yield from (f".. rubric:: {title}", "", *table(("Call", "Meaning", "For"), rows, (40, 40, 20)))


class AgentTools(Generated):
    """The tools of agents, and the right that each needs."""

    sources = ("scrapy_ext.server.mcp.tools",)

    def lines(self) -> Iterable[str]:
        from scrapy_ext.server.mcp.tools import TOOLS  # as above

        rows = [(code(tool.name), text(tool.description), text(tool.need.value)) for tool in TOOLS]
        return table(("Tool", "Description", "Needs"), rows, (20, 68, 12))


class Floors(Generated):
    """Table of the floors of a folder, by default of the whole package: ``.. floors:: FOLDER``.

    Each part has the first sentence of its docstring.
    """

    optional_arguments = 1

    def lines(self) -> Iterable[str]:
        """Return the lines of the table."""
        folder = self.arguments[0] if self.arguments else ""
        table_of = Path(self.env.srcdir) / "architecture" / "floors.toml"
        self.env.note_dependency(str(table_of))
        floors = tomllib.loads(table_of.read_text("utf-8"))[folder]
        base = Path(str(files("scrapy_ext"))) / folder
        rows = [
            (str(number), f"``{name}``", text(_first_sentence(base, name)))
            for number, names in enumerate(floors, 1)
            for name in names
        ]
        return table(("Floor", "Part", "Description"), rows, (8, 25, 67))


def _first_sentence(base: Path, name: str) -> str:
    path = base / name / "__init__.py" if (base / name).is_dir() else base / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    first = " ".join(docstring.partition("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`]*)`|``", r"\1", first)


def setup(app: Sphinx) -> dict[str, Any]:
    directives: dict[str, type[Directive]] = {
        "settings-of": SettingsOf,
        "extract-fields": ExtractFields,
        "extract-actions": ExtractActions,
        "extract-action-members": ExtractActionMembers,
        "problem-types": ProblemTypes,
        "attempts": Attempts,
        "server-options": ServerOptions,
        "zyte-api-names": ZyteApiNames,
        "floors": Floors,
        "paths": Paths,
        "agent-tools": AgentTools,
    }
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("env-check-consistency", warn_of_missing)
    # Only the process that read a page knows its settings.
    return {"parallel_read_safe": False}
