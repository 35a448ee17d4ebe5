"""The newspaper: sections, authors and articles."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from example_project.site import grammar
from example_project.site.grammar import Rules
from scrapy_ext.compatibility.toml import tomllib

NAME = "The Brindlemoor Courier"
ARTICLES_PER_PAGE = 10
ARTICLES_PER_SECTION = 24

_DATA = tomllib.loads((Path(__file__).parent / "data" / "news.toml").read_text("utf-8"))
_RULES: Rules = _DATA["rules"]
#: Slug and title of each section.
SECTIONS: dict[str, str] = _DATA["sections"]


@dataclass(frozen=True)
class Article:
    """An article; ``markup`` is the format of its structured data: jsonld or opengraph."""

    number: int
    section: str
    headline: str
    author: str
    published: dt.datetime
    modified: dt.datetime | None
    lead: str
    paragraphs: Sequence[str]
    tags: Sequence[str]
    markup: str

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/news/{self.section}/{self.number}-{grammar.slug(self.headline)}"


def _paragraphs(rng: random.Random, details: Sequence[str], bound: dict[str, str]) -> list[str]:
    context = rng.sample(_RULES["context"], 3)
    plan = [
        (details[0], context[0]),
        ("{said_start}", details[1]),
        (context[1], "{doubt}"),
        (context[2], "{next}"),
        ("{said_end}",),
    ]
    return [" ".join(grammar.sentence(grammar.write(rng, part, _RULES, bound)) for part in parts) for parts in plan]


def _article(rng: random.Random, number: int, section: str, author: str) -> Article:
    story = rng.choice(_DATA["stories"][section])
    bound = {"thing": rng.choice(_DATA["things"]), "speaker": grammar.person(rng)}
    bound = grammar.bind(rng, _RULES, ("place", "month", "count", "sum", "weekday"), bound)
    age = dt.timedelta(hours=9 * number, minutes=7 * (number % 8))
    published = dt.datetime(2026, 10, 30, 6, 0, tzinfo=dt.timezone.utc) - age
    return Article(
        number=number,
        section=section,
        headline=grammar.sentence(grammar.write(rng, story["headline"], _RULES, bound)).rstrip("."),
        author=author,
        published=published,
        modified=published + dt.timedelta(hours=5) if number % 4 == 0 else None,
        lead=grammar.sentence(grammar.write(rng, story["lead"], _RULES, bound)),
        paragraphs=_paragraphs(rng, story["details"], bound),
        tags=(bound["place"], bound["thing"]),
        markup=("jsonld", "opengraph")[number % 2],
    )


def _articles() -> list[Article]:
    rng = random.Random("brindlemoor courier")
    staff = [grammar.person(rng) for _ in range(9)]
    sections = list(SECTIONS)
    count = ARTICLES_PER_SECTION * len(sections)
    return [
        _article(rng, number, sections[number % len(sections)], rng.choice(staff)) for number in range(1, count + 1)
    ]


#: Every article, newest first.
ARTICLES: list[Article] = _articles()


def by_number(number: int) -> Article | None:
    """Return the article with this number."""
    return ARTICLES[number - 1] if 1 <= number <= len(ARTICLES) else None


def in_section(section: str) -> list[Article]:
    """Return the section's articles, newest first."""
    return [article for article in ARTICLES if article.section == section]
