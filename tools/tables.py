"""Tables of the documentation that are written from the tables of the code.

``python -m tools.tables --write`` writes them into the pages of docs/, each between two comments; without it, prints
the names of those that differ. A part is named in its first comment: ``agent-tools``, or ``settings EXTRACT_API_``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from scrapy_ext.api.extraction import FIELDS, PROBLEM_TYPES
from scrapy_ext.client.extraction.errors import error_of
from scrapy_ext.client.extraction.retry_policy import DEFAULT_RULES
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.extraction.without_effect import WITHOUT_EFFECT
from scrapy_ext.crawl.session import zyte_api_names
from scrapy_ext.crawl.session.zyte_api_names import Equivalent
from scrapy_ext.server.config.command_line import OPTIONS
from scrapy_ext.server.config.option import Role
from scrapy_ext.settings import SETTINGS, Setting
from tools import command_tables, figure_parts
from tools.restructured import code, text, wrapped

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
COMMAND: Final = "python -m tools.tables --write"
_PART: Final = re.compile(
    r"^\.\. This part is written by ``[^`\n]*``: (?P<name>[^\n]+)\.\n\n.*?^\.\. End of the written part\.$",
    re.MULTILINE | re.DOTALL,
)
_BEGIN: Final = ".. This part is written by ``{command}``: {name}."
_END: Final = ".. End of the written part."

Lines = Iterable[str]


def rewritten(page: str) -> str:
    """Return the text of a page with all its written parts as the code has them now."""

    def part(match: re.Match[str]) -> str:
        lines = "\n".join(lines_of(match["name"])).strip("\n")
        return f"{_BEGIN.format(command=COMMAND, name=match['name'])}\n\n{lines}\n\n{_END}"

    return _PART.sub(part, page)


def names_in(page: str) -> list[str]:
    """Return the names of the written parts of a page."""
    return [match["name"] for match in _PART.finditer(page)]


def lines_of(name: str) -> Lines:
    """Return the lines of the part with this name."""
    kind, _, argument = name.partition(" ")
    return PARTS[kind](argument)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Lines:
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


def settings(prefix: str) -> Lines:
    """Settings whose names begin with a prefix."""
    for name, setting in SETTINGS.items():
        if name.startswith(prefix):
            yield from _setting(setting)


def _setting(setting: Setting) -> Lines:
    default = "not set by default" if setting.default is None else f"default {code(repr(setting.default))}"
    environment = ", or a variable of this name in the environment or in ``.env``" if setting.environment else ""
    yield code(setting.name)
    yield from wrapped(text(setting.meaning), "   ")
    yield ""
    yield f"   {code(setting.type.value)}, {default}{environment}"
    yield ""


def without_effect(_: str) -> Lines:
    """Settings of Scrapy without effect on requests through the extraction service."""
    rows = [
        (", ".join(map(code, row.settings)), f"{text(row.reason)}.", f"{text(row.instead)}." if row.instead else "")
        for row in WITHOUT_EFFECT
    ]
    return table(("Settings", "Reason", "Instead"), rows, (35, 30, 35))


def zyte(names: str) -> Lines:
    """Names of scrapy-zyte-api, SETTINGS or META, with the names of this package."""
    known: Mapping[str, Equivalent] = getattr(zyte_api_names, names)
    role = "reqmeta" if names == "META" else "setting"
    rows = [
        (code(theirs), f":{role}:`{row.ours}`" if row.ours else "none", text(row.note)) for theirs, row in known.items()
    ]
    return table(("With scrapy-zyte-api", "Here", "Notes"), rows, (35, 25, 40))


# ── the extraction API ──


def extract_fields(_: str) -> Lines:
    """Fields of an extraction request."""
    rows = []
    for field in FIELDS.values():
        meaning = text(field.meaning)
        if field.choices:
            meaning += f" One of {', '.join(map(code, field.choices))}."
        if field.extension:
            meaning += " Extension."
        rows.append(
            (code(field.name), field.type.value + (" or null" if field.nullable else ""), field.kind.value, meaning)
        )
    return table(("Field", "Type", "Kind of request", "Meaning"), rows, (30, 15, 10, 45))


def extract_actions(_: str) -> Lines:
    """Browser actions of the included service."""
    # Imports the browser's library.
    from scrapy_ext.server.extraction.actions.handlers import ACTIONS

    rows = [
        (code(kind.name), text(kind.meaning), ", ".join(map(code, kind.needs)), ", ".join(map(code, kind.takes)))
        for kind in ACTIONS.values()
    ]
    return table(("Action", "Effect", "Required members", "Optional members"), rows, (20, 35, 20, 25))


def extract_action_members(_: str) -> Lines:
    """Members of browser actions."""
    from scrapy_ext.server.extraction.actions.reading import MEMBERS

    return table(("Member", "Meaning"), [(code(name), text(meaning)) for name, meaning in MEMBERS.items()], (25, 75))


def problem_types(_: str) -> Lines:
    """Errors of the extraction service."""
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
    return table(("Status", "Type", "Cause", "Retry-After", "Exception"), rows, (8, 28, 34, 10, 20))


def attempts(_: str) -> Lines:
    """Attempts and waits by type of error."""
    rows = [
        (code(name), str(rule.attempts), f"{rule.wait:g}", f"{rule.longest:g}") for name, rule in DEFAULT_RULES.items()
    ]
    return table(("Error", "Attempts", "First wait (s)", "Longest wait (s)"), rows, (40, 20, 20, 20))


# ── the server ──


def server_options(_: str = "") -> Lines:
    """Every option of ``scrapy platform serve``, ``worker`` and the commands that work on a store."""
    taken_by = {Role.SERVER: "serve", Role.WORKER: "worker", Role.STORE: "backup, restore, migrate, vacuum"}
    rows = [
        (
            " ".join(map(code, option.options)),
            ", ".join(name for role, name in taken_by.items() if option.roles & role),
            option.unit or (option.metavar and code(option.metavar)) or ", ".join(map(code, option.choices or ())),
            text(option.default_text),
            " ".join(code(name) for name in dict.fromkeys((option.variable, option.setting)) if name),
            text(option.meaning) + ("; may be repeated" if option.repeatable else ""),
        )
        for option in OPTIONS
    ]
    header = ("Option", "Of", "Value", "Default", "Variable or setting", "Meaning")
    return table(header, rows, (18, 10, 12, 15, 15, 30))


def paths(_: str) -> Lines:
    """Every path of both services by its first part, with who may call it, unless that is any API key."""
    # Imports the extraction libraries.
    from scrapy_ext.server.http.routes import Access
    from scrapy_ext.server.routes import ROUTES

    by_first: dict[str, list[str]] = {}
    for route in ROUTES:
        access = "" if route.access is Access.KEY else f" For {text(route.access.value)}."
        call = f"{code(f'{route.method} {route.shown}')}: {text(route.summary)}{access}"
        by_first.setdefault(route.first if len(route.parts) > 1 else "", []).extend(wrapped(call, "* "))
    for first, calls in sorted(by_first.items(), key=lambda each: (not each[0], each[0])):
        yield from (f".. rubric:: {code(f'/{first}/') if first else 'The server itself'}", "", *calls, "")


def agent_tools(_: str) -> Lines:
    """The tools of agents, and the right that each needs."""
    from scrapy_ext.server.mcp.tools import TOOLS

    rows = [(code(tool.name), text(tool.description), text(tool.need.value)) for tool in TOOLS]
    return table(("Tool", "Description", "Needs"), rows, (20, 68, 12))


# ── the package ──


def floors(folder: str) -> Lines:
    """The parts of a folder by floor, each with the first sentence of its docstring; without a name, of the package."""
    known = tomllib.loads((DOCS / "architecture" / "floors.toml").read_text("utf-8"))[folder]
    base = Path(str(files("scrapy_ext"))) / folder
    rows = [
        (str(number), code(name), text(_first_sentence(base, name)))
        for number, names in enumerate(known, 1)
        for name in names
    ]
    return table(("Floor", "Part", "Description"), rows, (8, 25, 67))


def _first_sentence(base: Path, name: str) -> str:
    path = base / name / "__init__.py" if (base / name).is_dir() else base / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    first = " ".join(docstring.partition("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`]*)`|``", r"\1", first)


PARTS: Final[Mapping[str, Callable[[str], Lines]]] = {
    "settings": settings,
    "settings-without-effect": without_effect,
    "zyte-api-names": zyte,
    "extract-fields": extract_fields,
    "extract-actions": extract_actions,
    "extract-action-members": extract_action_members,
    "problem-types": problem_types,
    "attempts": attempts,
    "server-options": server_options,
    "paths": paths,
    "agent-tools": agent_tools,
    "floors": floors,
    "figures": figure_parts.lines,
    "extract-command": command_tables.extract_command,
    "platform-commands": command_tables.platform_commands,
}


def main(arguments: Sequence[str]) -> None:
    """Write the parts that differ, or print their pages."""
    for path in sorted(DOCS.rglob("*.rst")):
        before = path.read_text("utf-8")
        after = rewritten(before)
        if after != before:
            print(path.relative_to(DOCS))
            if "--write" in arguments:
                path.write_text(after, "utf-8")
    if "--write" in arguments:
        figure_parts.draw(DOCS / figure_parts.CHARTS)


if __name__ == "__main__":
    main(sys.argv[1:])
