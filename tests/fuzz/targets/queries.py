"""Parameters of requests: filters, formats, keys and cron expressions."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta, timezone
from xml.etree import ElementTree as ET

import msgspec

from scrapy_ext.api.platform.common_schedules import crons_of, next_times
from scrapy_ext.api.platform.comparison import ItemIndex, changed_fields, compare_items
from scrapy_ext.api.platform.conditions import filter_of
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.platform.projects import MAX_PROJECT_NAME, NAME_PATTERN, name_of_project
from scrapy_ext.api.platform.where import parse_where, written
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.formats import result_of
from scrapy_ext.server.platform.filters import filter_of_call
from scrapy_ext.server.store.frontier.frontier import is_batch_id, priority_of
from tests.fuzz.calls import call_of, run
from tests.fuzz.target import target

REFUSED = (ContractError, Refusal)

_RECORDS = [
    b'{"name":"a","price":1.5,"tags":["x",1,true],"none":null}',
    b'{"name":"\xc3\xa4\\n","price":"10","tags":[]}',
    b"{}",
]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@target(
    "filter",
    [
        b'["price",">",[10]]',
        b'["name","matches",["a+$"]]',
        b'["tags","haselement",["x"]]\n["none","isempty"]',
        b'["name","icontains",["A"]]\n["price","=",[true,1.5]]',
        b'["name","matches",["(a|aa)+$"]]',
        b'["a","matches",["[a-z&&[^b]]{9}"]]',
        b'["name","matches",["(?<n>a)(?P>n)\\\\g<0>"]]',
        b'["name"]',
    ],
    refuses=REFUSED,
    longest=400,
)
def filters(data: bytes) -> None:
    """A filter that is taken chooses, and does so the same each time."""
    names = ("filter", "filterall", "filterany")
    lines = [line for line in _text(data).split("\n") if line][:6]
    found = filter_of_call(call_of([(names[number % 3], line) for number, line in enumerate(lines)]))
    if found is None:
        assert not lines
        return
    for record in _RECORDS:
        assert found.chooses(record) in (True, False)


@target(
    "where",
    [
        b"price > 20 and name ~ kettle",
        b'"a b" is not missing AND color = red, "blue, dark", 5',
        b"offers.0.price <= -1.5e3 and * !~ x",
        b'name matches "^a+$" and url ~ http://a.example/?b=c&d',
        b"a=1 and b!=2 and c empty",
        b'"\\"\\\\" = "\\"',
        b"name matches ((((((((((a+)+)+)+)+)+)+)+)+)+",
    ],
    refuses=REFUSED,
    longest=400,
)
def where(data: bytes) -> None:
    """Typed conditions choose, the same each time, and mean the same when their texts are put together again."""
    clauses = parse_where(_text(data))
    again = parse_where(" and ".join(clause.text for clause in clauses))
    assert [clause.form for clause in again] == [clause.form for clause in clauses]
    found = filter_of([clause.condition for clause in clauses])
    assert found is not None
    for record in _RECORDS:
        assert found.chooses(record) in (True, False)
    for name, operator, _ in (clause.form for clause in clauses):
        (made,) = parse_where(written(name, "is missing", ""))
        assert made.form == [name, "notexists", []]
        assert operator


_FIRST = datetime(2027, 11, 20, 3, 7, 11, tzinfo=timezone.utc)


@target(
    "cron",
    [b"30 4 * * *", b"* * * * *", b"0 0 29 2 *", b"0 0 31 2 *", b"5 * 1 * 0", b"61 24 0 13 7", b"*/5 * * * *", b"  "],
    refuses=(ContractError,),
    longest=64,
)
def cron(data: bytes) -> None:
    """The next minute fits, and none before it does: those of a day are looked at."""
    parsed = Cron.parse(_text(data))
    found = parsed.next_after(_FIRST)
    assert found is None or found > _FIRST
    minute = _FIRST.replace(second=0)
    for _ in range(24 * 60):
        minute += timedelta(minutes=1)
        if fits(parsed, minute):
            assert found == minute
            return
    assert found is None or (found > minute and fits(parsed, found))


def fits(expression: Cron, minute: datetime) -> bool:
    """Return True if an expression runs at a minute by the manual of cron."""
    day_of_week = (minute.weekday() + 1) % 7
    if expression.minute not in (None, minute.minute) or expression.hour not in (None, minute.hour):
        return False
    if expression.month not in (None, minute.month):
        return False
    if expression.day_of_month is not None and expression.day_of_week is not None:
        return minute.day == expression.day_of_month or day_of_week == expression.day_of_week
    return expression.day_of_month in (None, minute.day) and expression.day_of_week in (None, day_of_week)


@target(
    "schedules",
    [b"daily\n04:30", b"weekdays\n23:59", b"every-6-hours\n7:05", b"hourly\n24:00", b"never\n00:00", b"monthly\n"],
    refuses=(ContractError,),
    longest=64,
)
def schedules(data: bytes) -> None:
    """The expressions of a common schedule parse, and run one after the other."""
    name, _, time = _text(data).partition("\n")
    crons = crons_of(name, time)
    times = next_times(crons, _FIRST, 5)
    assert len(set(crons)) == len(crons)
    assert times == sorted(set(times))
    assert len(times) == 5


@target(
    "project_names",
    [b"books", b"12", b" a", b"a/b", b"a\x00", b"\xc2\xb2", b"x" * 81, b"a\xe2\x80\xae", b"1 2", b"1 a"],
    refuses=(ContractError,),
    longest=120,
)
def project_names(data: bytes) -> None:
    """A name that is taken is as the schema of the path describes it, and never one that it excludes."""
    text = _text(data)
    described = re.search(NAME_PATTERN.replace("$", r"\Z"), text) is not None and len(text) <= MAX_PROJECT_NAME
    try:
        assert name_of_project(text) == text
    except ContractError:
        assert not described
        raise
    assert described


@target(
    "comparison",
    [
        b'{"id":1,"a":2}\n{"id":2,"a":[{"b":null}]}',
        b'{"id":null}\n{"x":1}\n{"id":{"a":1}}',
        b'{"id":"\\u0000"}\n{"id":1e400}\n{"_id":1}',
        b'{"id":1}\n{"id":1,"id":2}',
    ],
    longest=600,
)
def comparison(data: bytes) -> None:
    """Of the items of one job, none is new, gone or changed against themselves, and each is counted once."""
    indexes = ItemIndex("id"), ItemIndex("id")
    number = 0
    for line in data.split(b"\n"):
        try:
            # The server stores objects alone, which it has decoded.
            fields = msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        for index in indexes:
            index.add(number, line)
        assert changed_fields(fields, fields, ()) == [] or any(value != value for value in fields.values())
        number += 1
    found = compare_items(*indexes)
    assert (found.new, found.gone, found.changed) == ([], [], [])
    assert found.same + indexes[0].without + indexes[0].repeated == number


@target(
    "keys", [b"1/2/3", b"1/2/3/4", b"01/2/3", b"9223372036854775807/0/0", b"\xd9\xa1/2/3"], refuses=(ContractError,)
)
def keys(data: bytes) -> None:
    """A key is written as it was read."""
    text = _text(data)
    if is_batch_id(text):
        assert -(2**31) <= priority_of(text) < 2**31
    key = EntityKey.parse(text) if text.count("/") == 3 else JobKey.parse(text)
    assert str(key) == text


@target(
    "formats",
    [
        b'json\n{"a":1}\n{"b":[1,{"c":null}]}',
        b'xml\n{"a":"\\u0000<&\\r","b":1e300}\n-5\n"\\ud83d\\ude00"',
        b'csv&fields=a,b&include_headers=1&sep=;\n{"a":"x;\\"y\\"","b":"\\n"}\n{"b":true}',
        b'csv&fields=a&quote=\'&escape=\\\n{"a":"\'\\\\\'"}',
        b'text\n"a\\nb"\n{"x":1}',
        b'msgpack\n{"a":18446744073709551616,"b":-1}\n[1.5,null]',
        b"xml\n" + b"[" * 200 + b"]" * 200,
        b'jl&saveas=../x\n"a"',
    ],
    refuses=REFUSED,
    longest=1024,
    calls=(30_000, 400),
)
def formats(data: bytes) -> None:
    """A reader of the format gets the records back."""
    head, *lines = data.split(b"\n")
    kind, *options = _text(head).split("&")
    parameters = [("format", kind), *((name, value) for name, _, value in (each.partition("=") for each in options))]
    records = []
    for line in lines:
        try:
            records.append((line, msgspec.json.decode(line)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    call = call_of(parameters)
    body = bytes(run(result_of(call, [line for line, _ in records], msgpack=True)).body)
    match call.query.get("format"):
        case "json":
            assert json.loads(body) == [json.loads(line) for line, _ in records]
        case "xml":
            ET.fromstring(body)
        case "msgpack":
            assert len(_unpacked(body)) == len(records)
        case "csv" if not {"sep", "quote", "escape", "lineend"} & call.query.keys():
            rows = list(csv.reader(io.StringIO(body.decode(), newline="")))
            assert len([row for row in rows if row]) <= len(records) + 1


def _unpacked(body: bytes) -> list[object]:
    found, at = [], 0
    while at < len(body):
        for end in range(at + 1, len(body) + 1):
            try:
                value = msgspec.msgpack.decode(body[at:end])
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            found.append(value)
            at = end
            break
        else:
            raise AssertionError("not MessagePack")
    return found
