"""The pages have the tables of the code, and its numbers."""

from __future__ import annotations

import importlib
import re
from typing import Any

import msgspec
import pytest

from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.settings import SETTINGS
from tests.support.docs_tables import DOCS
from tests.support.documented_names import described
from tools import restructured, tables

PAGES = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.rst"))}
WITH_TABLES = {name: found for name, path in PAGES.items() if (found := tables.names_in(path.read_text("utf-8")))}
VALUES: dict[str, list[str]] = tomllib.loads((DOCS / "values.toml").read_text("utf-8"))


@pytest.mark.parametrize("page", WITH_TABLES)
def test_a_page_has_the_tables_of_the_code(page: str) -> None:
    written = PAGES[page].read_text("utf-8")
    assert tables.rewritten(written) == written, f"run: {tables.COMMAND}"


def test_every_table_is_in_a_page_and_every_page_is_read_whole() -> None:
    kinds = {name.partition(" ")[0] for names in WITH_TABLES.values() for name in names}
    assert kinds == set(tables.PARTS)
    marks = sum(path.read_text("utf-8").count("This part is written by ``python -m tools.") for path in PAGES.values())
    assert marks == sum(map(len, WITH_TABLES.values()))


def test_every_setting_is_described() -> None:
    assert described("setting") == SETTINGS.keys()


def test_text_is_escaped_no_more_than_it_has_to_be() -> None:
    plain = r"PLATFORM_URL: ``a*b``, 2*3, `last`, name_ and some_name; MY_PLATFORM_URL, PLATFORM_URLS, C:\x"
    expected = (
        r":setting:`PLATFORM_URL`: ``a*b``, 2\*3, \`last\`, name\_ and some_name; MY_PLATFORM_URL, PLATFORM_URLS, C:\\x"
    )
    assert restructured.text(plain) == expected


@pytest.mark.parametrize("page", VALUES)
def test_a_page_has_the_numbers_of_the_code(page: str) -> None:
    text = " ".join((DOCS / page).read_text("utf-8").split())
    phrases = [re.sub(r"{([^}]+)}", lambda match: shown(value(match[1])), phrase) for phrase in VALUES[page]]
    assert [phrase for phrase in phrases if phrase not in text] == [], "correct the page, or docs/values.toml"


def value(path: str) -> Any:
    """Return a constant, ``module:NAME``, or the default of a record's field, ``module:Record.field``."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        fields = msgspec.structs.fields(found) if isinstance(found, type) and issubclass(found, msgspec.Struct) else ()
        defaults = {field.name: field.default for field in fields}
        found = defaults[part] if part in defaults else getattr(found, part)
    return found


def shown(found: Any) -> str:
    """Return a value as the pages have it: numbers with their thousands apart, whole mebibytes with their unit."""
    if isinstance(found, int) and found >= 2**20 and found % 2**20 == 0:
        return f"{found // 2**20} MiB"
    if isinstance(found, float):
        return f"{found:g}"
    if isinstance(found, int):
        return f"{found:,}".replace(",", " ")
    if isinstance(found, (tuple, list)):
        return ", ".join(map(shown, found))
    if isinstance(found, (set, frozenset)):
        return ", ".join(spans(found))
    return str(found)


def spans(numbers: set[int] | frozenset[int]) -> list[str]:
    """Return the numbers in order, with consecutive ones as a span."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first} to {last}" for first, last in found]
