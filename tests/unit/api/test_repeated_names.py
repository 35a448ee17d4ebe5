"""Names that a JSON text has more than once."""

from __future__ import annotations

import pytest

from scrapy_ext.api.repeated_names import repeated_names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "b": {"a": 1}}', []),
        ('{"a": 1, "a": 1}', ["x.a"]),
        ('{"a": [{"b": 1}, {"c": 1, "c": 2}]}', ["x.a[1].c"]),
        ('{"kept": {"c": 1, "c": 2}, "d": {"c": 1, "c": 2}}', ["x.kept.c", "x.d.c"]),
        ("[1, 2]", []),
        ("1" * 9000, []),
    ],
)
def test_they_are_named_by_their_place(text: str, found: list[str]) -> None:
    assert [violation.field for violation in repeated_names(text, 9, place="x")] == found


def test_a_verbatim_member_is_not_looked_at() -> None:
    text = '{"kept": {"c": 1, "c": 2}, "d": {"c": 1, "c": 2}}'
    assert [violation.field for violation in repeated_names(text, 9, verbatim="kept")] == ["d.c"]
