"""The text of SQL is made of fixed text alone; values are arguments of the statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.server import store

STORE = Path(store.__file__).parent
SQL = re.compile(r"\b(SELECT|INSERT INTO|DELETE FROM|UPDATE|WHERE|VALUES|ORDER BY|FROM|AND|LIMIT)\b")
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
#: Functions that return numbers, or the placeholders of arguments.
NUMBERS = {"from_rows", "int", "len", "marks", "pairs"}
#: What else the statements of a module contain. Each is made of fixed text, placeholders and names of the schema: none
#: has a value of a caller.
TEXTS = {
    "collections/collections.py": {
        "kind",
        "name",
        "_number('$2', f'${name}')",
        "condition",
        "_number('$2', '$3')",
        "name + 1",
        "name + 2",
        "name + 3",
        "name + 4",
    },
    "collections/selections.py": {"held", "condition", "place"},
    "collections/writes.py": {"condition", "len(arguments) + 3"},
    "copying.py": {
        "is_kept('collection_records')",
        "is_kept('frontier_batches')",
        "kind",
        "columns",
        "table.name",
        "where",
        "key",
        "_visible(table.name)",
        "', '.join(table.columns)",
        "marks",
    },
    "deliveries.py": {"'FOR SHARE' if lock else ''"},
    "engine/postgresql/transaction.py": {
        "sql",
        "_set_mark(arguments)",
        "changed",
        "head",
        "tail",
        "_given(types)",
        "_of_given(group)",
        "_of_given(sql)",
    },
    "expiry/frontiers.py": {"query"},
    "expiry/expiry.py": {"before", "_due('$1')", "_due('$4')", "table", "condition"},
    "frontier/fingerprint_runs.py": {"comparison", "self._table"},
    "frontier/frontier.py": {"condition"},
    "frontier/overview.py": {"_OTHERS.replace('$3', '$4')", "which"},
    "jobs/placing.py": {"which", "f' AND project NOT IN ({marks})' if held else ''", "marks"},
    "jobs/queries.py": {
        "source",
        "condition.text",
        "keys",
        "page.order",
        "part",
        "state.value",
        "number",
        "columns",
        "order",
        "most",
        "_FEW + 1",
        "bound",
        "tagged",
        "of_chosen",
        "', '.join(kinds)",
        "text.format(self.marks(values))",
    },
    "monitors/facts.py": {"within"},
    "incidents.py": {"where"},
    "monitors/monitors.py": {"where"},
    "periodic_jobs.py": {"query"},
    "removals.py": {
        "table.name",
        "condition",
        "table.size",
        "table.key",
        "owned",
        "len(numbers) + 1",
        "marks",
        "kind",
        "table",
        "number",
        "column",
        "each.condition",
    },
    "rules/rows.py": {
        "held",
        "_OF_JOB.format('s')",
        "kinds",
        "int(now) - RESTORED_DAYS * DAY_MS",
        "_OF_JOB.format('d')",
        "done",
        "before",
        "_OF_JOB.format('e')",
        "deliveries.JOB",
        "stays",
        "delivered",
    },
    "rules/selection.py": {
        "column",
        "kinds or \"''\"",
        "condition",
        "tag",
        "_scope(wanted, '$2')",
        "wanted.left.jobs",
        "_totals('sum(t.records)', wanted, wanted.records)",
        "_totals('sum(COALESCE(t.stored, t.bytes))', wanted, wanted.records)",
        "self.left.records",
        "_totals('1', wanted, wanted.records)",
        "state",
        "_totals('1', wanted, 't.records > 0')",
        "_selected(wanted)",
        "limit",
        "counted(_STATE)",
    },
    "spiders.py": {"limit", "bound", "marks"},
    "verdicts.py": {"marks", "where"},
    "usage.py": {"key", "marks", "table.size", "table.records", "table.name", "following", "of_project", "table"},
}


def contents(source: str) -> Iterator[ast.expr]:
    """Yield what is formatted into the text of statements, or added to it."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr] = []
        match node:
            case ast.JoinedStr(values=parts):
                pass
            case ast.BinOp(op=ast.Add() | ast.Mod(), left=left, right=right):
                parts = [left, right]
            case ast.Call(func=ast.Attribute(value=text, attr="format"), args=given):
                parts = [text, *given]
        if any(isinstance(part, ast.Constant) and SQL.search(str(part.value)) for part in parts):
            others = (part.value if isinstance(part, ast.FormattedValue) else part for part in parts)
            yield from (each for each in others if not isinstance(each, ast.Constant | ast.JoinedStr))


def needs_a_look(content: ast.expr) -> bool:
    match content:
        case ast.Name(id=name):
            return not CONSTANT.fullmatch(name)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name not in NUMBERS
        case _:
            return True


@pytest.mark.parametrize("module", sorted(STORE.rglob("*.py")), ids=lambda path: str(path.relative_to(STORE)))
def test_statements_contain_fixed_text_and_numbers_alone(module: Path) -> None:
    found = {ast.unparse(each) for each in contents(module.read_text("utf-8")) if needs_a_look(each)}
    assert found == TEXTS.get(str(module.relative_to(STORE)), set())


def test_the_texts_are_those_of_modules_that_exist() -> None:
    assert {STORE / name for name in TEXTS} <= set(STORE.rglob("*.py"))


@pytest.mark.parametrize(
    "statement",
    [
        """f"SELECT 1 FROM jobs WHERE spider = '{spider}' LIMIT 1\"""",
        "'SELECT 1 FROM jobs WHERE spider = ' + spider",
        "'SELECT 1 FROM jobs WHERE spider = %s' % spider",
        "'SELECT 1 FROM jobs WHERE spider = {}'.format(spider)",
    ],
)
def test_a_value_in_a_statement_is_found(statement: str) -> None:
    (found,) = contents(statement)
    assert needs_a_look(found)
