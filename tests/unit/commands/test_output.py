"""Tables, JSON lines and CSV, written record by record."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, Literal

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from scrapy_ext.commands.output import Column, StandardOutput, TableWriter, one_line, status
from scrapy_ext.commands.subcommands.records import LOG_COLUMNS


async def each(records: Iterable[Mapping[str, Any]]) -> AsyncIterator[Mapping[str, Any]]:
    for record in records:
        yield record


async def written(
    form: Literal["table", "json", "csv"],
    records: Iterable[Mapping[str, Any]],
    *,
    terminal: bool = False,
    **options: Any,
) -> str:
    stream = io.BytesIO()
    await StandardOutput(form, stream, terminal=terminal).records(each(records), **options)
    return stream.getvalue().decode()


def plain(text: str) -> list[str]:
    return Text.from_ansi(text).plain.splitlines()


ITEMS = [
    {"name": "a", "price": 1.5, "tags": ["x"]},
    {"name": 'b, "c"\nd', "price": None},
    {"name": "\x1b[31me", "other": {"deep": True}},
]


async def test_json_lines_hold_the_records_as_they_are() -> None:
    text = await written("json", ITEMS)
    assert [json.loads(line) for line in text.splitlines()] == ITEMS


async def test_csv_has_a_header_and_the_named_fields() -> None:
    text = await written("csv", ITEMS, csv_fields=["name", "price", "other"])
    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "price", "other"],
        ["a", "1.5", ""],
        ['b, "c"\nd', "", ""],
        ["\x1b[31me", "", '{"deep":true}'],
    ]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
async def test_a_terminal_gets_no_control_character_of_an_item(form: Literal["table", "json", "csv"]) -> None:
    item = {"name": "x\x1b]0;title\x07\x9b2J", "\x1b[2Jkey": "\x1b[31mred"}
    text = await written(form, [item], terminal=True, csv_fields=list(item))
    for control in ("\x1b]0", "\x07", "\x9b", "\x1b[2J", "\x1b[31m"):
        assert control not in text


async def test_markup_of_the_table_library_is_shown_not_followed() -> None:
    text = await written("table", [{"name": "[bold red]x[/] [link=http://a]y[/link]"}], terminal=True)
    assert "[bold red]x[/] [link=http://a]y[/link]" in "\n".join(plain(text))


@pytest.mark.parametrize("name", ["[red]a[/red]", "[link=http://evil.example]b[/link]", "[/c]", ":boom:"])
async def test_a_field_whose_name_is_markup_is_a_column_of_that_name(name: str) -> None:
    text = await written("table", [{name: "value"}], terminal=True)
    assert plain(text)[0].rstrip() == name
    assert "\x1b]8" not in text


@pytest.mark.parametrize("message", ["[/usr/lib]", "[link=http://evil.example]b[/link]"])
def test_a_status_with_markup_is_shown_as_text(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("scrapy_ext.commands.output.Console", partial(Console, file=shown, force_terminal=True))
    with status("checking") as show:
        show(message)
    assert message in Text.from_ansi(shown.getvalue()).plain
    assert "\x1b]8" not in shown.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    writer = TableWriter(None, width)
    rows = [{f"field{n}": "word " * n + "東京" * n for n in range(12)} for _ in range(3)]
    text = "".join(map(writer.add, rows)) + writer.close()
    assert max(cell_len(line) for line in plain(text)) <= width


def test_columns_keep_their_widths_from_the_first_row_to_the_last() -> None:
    writer = TableWriter(None, 60)
    rows = ({"number": number, "name": "n" * (number % 90), "end": "|"} for number in range(400))
    lines = plain("".join(map(writer.add, rows)) + writer.close())
    assert len([line for line in lines if "number" in line]) == 1
    assert len({line.rindex("|") for line in lines if "|" in line}) == 1


def test_columns_without_room_are_named() -> None:
    writer = TableWriter(None, 30)
    writer.add({f"column{n}": "some words" for n in range(8)})
    text = writer.close()
    assert writer.left_out
    assert writer.left_out[-1] == "column7"
    assert all(name not in text for name in writer.left_out)


def test_a_table_begins_with_what_an_item_is_known_by() -> None:
    writer = TableWriter(None, 200)
    writer.add({"additional": {"a": 1}, "brand": "b", "images": [], "name": "n", "price": "1", "url": "http://a"})
    assert plain(writer.close())[0].split() == ["name", "price", "url", "brand", "additional", "images"]


def test_times_are_whole_while_others_can_give() -> None:
    time = "2026-11-21 19:48:51"
    for width, whole in ((80, True), (16, False)):
        writer = TableWriter([Column.field("at", least=len(time)), *map(Column.field, ("a", "b", "c"))], width)
        writer.add({"at": time, "a": "a " * 30, "b": "b " * 30, "c": "c " * 30})
        lines = plain(writer.close())
        assert (time in lines[-1]) is whole
        assert max(map(cell_len, lines)) <= width


def test_a_wrapping_column_shows_the_whole_text() -> None:
    columns = [Column.field("level"), Column("message", lambda row: str(row["message"]), wrap=True)]
    writer = TableWriter(columns, 40)
    writer.add({"level": 20, "message": "one " * 40 + "\nnext line"})
    text = " ".join("\n".join(plain(writer.close())).split())
    assert text.count("one") == 40
    assert "next line" in text


def test_the_end_of_a_url_is_seen_also_where_a_column_is_narrow() -> None:
    urls = [f"http://shop.example/category/{'x' * length}/item/{length}" for length in (5, 100, 1000)]
    writer = TableWriter([Column.field("url"), Column.field("name", least=20)], 60)
    for url in urls:
        writer.add({"url": url, "name": "a name"})
    shown = [line.split()[0] for line in plain(writer.close())[2:]]
    assert [text.partition("…")[0].startswith("http://shop.") for text in shown] == [True] * 3
    assert [text.rpartition("/")[2] for text in shown] == ["5", "100", "1000"]


def test_lists_of_components_are_folded_in_a_log_and_nothing_else_is() -> None:
    components = "\n".join(f" 'scrapy.extensions.Number{n}'," for n in range(11))
    messages = (
        f"Enabled extensions:\n{components}",
        "Overridden settings:\n{'A': 1,\n 'B': 2}",
        "Enabled item pipelines:\n[]",
        "Mine:\nfirst\nsecond",
        "Unhandled error\nTraceback\n  line",
        "Dumping Scrapy stats:\n{'a': 1,\n 'b': 2}",
    )
    writer = TableWriter(LOG_COLUMNS, 100)
    for message in messages:
        writer.add({"time": 1_700_000_000_000, "level": 20, "message": message})
    lines = [line[31:].strip() for line in plain(writer.close())[2:]]
    assert lines == [
        "Enabled extensions: … (11 lines; logs --full)",
        "Overridden settings: … (2 lines; logs --full)",
        *(line.strip() for message in messages[2:] for line in message.splitlines()),
    ]


async def test_no_records_give_an_empty_answer_and_csv_its_header() -> None:
    assert await written("json", []) == ""
    assert await written("table", [], terminal=True) == ""
    assert await written("csv", [], csv_fields=["a", "b"]) == "a,b\n"


async def test_memory_does_not_grow_with_the_number_of_records() -> None:
    class Discarding(io.RawIOBase):
        largest = 0

        def write(self, data: Any) -> int:
            self.largest = max(self.largest, len(data))
            return len(data)

    stream = Discarding()
    records = ({"number": number, "text": "x" * 1000} for number in range(5000))
    count = await StandardOutput("json", stream, terminal=False).records(each(records))  # type: ignore[arg-type]
    assert count == 5000
    assert stream.largest < 200_000


def test_an_error_is_one_line_without_control_characters() -> None:
    assert one_line("first\n  second\x1b[2J\n") == r"first second\x1b[2J"
