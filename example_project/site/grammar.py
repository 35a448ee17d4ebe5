"""Plausible text from small grammars.

A rule is a list of alternatives; ``{name}`` in one stands for an alternative of the rule ``name``. A name that
is bound keeps its value, so that a story speaks of one person and one place from its headline to its last line.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrapy_ext.compatibility.toml import tomllib

Rules = Mapping[str, Sequence[str]]

_SLOT = re.compile(r"\{(\w+)\}")
_SLUG = re.compile(r"[^a-z0-9]+")

_NAMES = tomllib.loads((Path(__file__).parent / "data" / "names.toml").read_text("utf-8"))


def write(rng: random.Random, template: str, rules: Rules, bound: Mapping[str, str] = {}) -> str:
    """Fill every slot of the template from ``bound``, else from a rule, recursively."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        return bound[name] if name in bound else write(rng, rng.choice(rules[name]), rules, bound)

    return _SLOT.sub(fill, template)


def bind(rng: random.Random, rules: Rules, names: Sequence[str], bound: Mapping[str, str] = {}) -> dict[str, str]:
    """Return ``bound`` with a value chosen for each of the names."""
    values = dict(bound)
    for name in names:
        values[name] = write(rng, f"{{{name}}}", rules, values)
    return values


def sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?”" else f"{text}."


def slug(text: str) -> str:
    """Return the text as a part of a URL."""
    return _SLUG.sub("-", text.lower()).strip("-")


def person(rng: random.Random) -> str:
    """Return a made-up name."""
    return f"{rng.choice(_NAMES['given'])} {rng.choice(_NAMES['family_head'])}{rng.choice(_NAMES['family_tail'])}"


def brand(rng: random.Random) -> str:
    """Return a made-up brand."""
    return f"{rng.choice(_NAMES['brand_head'])}{rng.choice(_NAMES['brand_tail'])}"
