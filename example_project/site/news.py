"""The newspaper: sections, authors and articles."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass

from example_project.site import grammar
from example_project.site.grammar import Rules

NAME = "The Brindlemoor Courier"
ARTICLES_PER_PAGE = 10
ARTICLES_PER_SECTION = 24

#: Slug and title of each section.
SECTIONS: dict[str, str] = {
    "town": "Town",
    "harbour": "Harbour",
    "schools": "Schools",
    "sport": "Sport",
    "weather": "Weather",
}

_RULES: Rules = {
    "place": ["Netherby Quay", "Market Hill", "Larkfield", "Saltgate", "Upper Brindle", "Miller's Row", "East Pier", "Cold Harbour", "Thistle Green", "Rope Walk", "Gallows Point", "St Osgar's"],
    "month": ["April", "May", "June", "September", "October"],
    "count": ["eleven", "some forty", "nearly sixty", "more than a hundred", "about two hundred"],
    "sum": ["12,000", "38,500", "64,000", "110,000", "240,000"],
    "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    "who": ["residents", "shopkeepers", "parents", "volunteers", "neighbours"],
    "feeling": ["cautious", "relieved", "pleased but tired", "sceptical", "in good spirits"],
    "reason": ["the cost", "the noise in the early morning", "the loss of parking places", "the short notice"],
    "said_start": ["“We have waited for this since {month},” said {speaker}.", "“It is not perfect, but it is a start,” {speaker} said."],
    "said_end": [
        "“Ask me again in a year,” said {speaker}, who was {feeling}.",
        "“If it rains, we will do it in the rain,” {speaker} said.",
        "{speaker} thanked the {who} of {place} by name.",
    ],
    "context": [
        "The last attempt, four years ago, ended after a single season.",
        "The town has put {sum} aside for the work, a third of which comes from the region.",
        "Most {who} at {place} had heard of it from a notice on the church door.",
        "A count made in {month} found {count} people at {place} on an ordinary {weekday}.",
        "Other towns along the coast are watching closely, and two have asked for the papers.",
    ],
    "doubt": [
        "Not everyone agrees. Some {who} named {reason}, and a letter with {count} signatures was handed in.",
        "The one open question is {reason}, to which no answer was given on {weekday}.",
        "A smaller group of {who} had asked for more time because of {reason}.",
    ],
    "next": [
        "The next date is a {weekday} in {month}, when the plan goes on show at {place}.",
        "Work begins after the {month} holidays if nothing else comes up.",
        "Anyone who wants to help can put a name on the list at {place} until the end of {month}.",
    ],
}  # fmt: skip

#: Headline, lead and body lines of each kind of story, by section.
_STORIES: dict[str, Sequence[tuple[str, str, Sequence[str]]]] = {
    "town": [
        ("Council votes for new {thing} at {place}", "After a debate of three hours, the council decided on {weekday} to pay for a new {thing} at {place}.", ("The {thing} will cost {sum} and is to be finished by {month}.", "Two members abstained; {speaker} voted in favour after a change to the drawings.")),
        ("Library at {place} opens on Sundays", "From {month}, the library at {place} will be open on Sundays, run by {count} volunteers.", ("The {thing} beside it, closed since the winter, opens on the same day.", "Children may borrow as many books as they can carry.")),
        ("{place} gets its {thing} back", "A {thing} that was taken down before the war of the two ferries stands again at {place}.", ("It was found in a barn, in {count} pieces, and put together over a winter.", "The repair cost {sum}, much of it given in coins.")),
    ],
    "harbour": [
        ("Ferry from {place} to sail twice a day", "The ferry will leave {place} twice a day from {month}, the first change of its timetable in nine years.", ("The boat takes {count} people and, on calm days, one tractor.", "A new {thing} on the quay shows when it is late.")),
        ("Crews bring in {count} crates before the storm", "Boats from {place} came home early on {weekday} with {count} crates of mackerel.", ("The {thing} was moved to higher ground overnight.", "Prices at the morning sale rose by a fifth.")),
        ("Divers map the old {thing} off {place}", "Divers have measured a {thing} that lies in nine metres of water off {place}.", ("They worked on {count} tides and slept in a hut on the mole.", "Their drawings cost {sum} less than the town had feared.")),
    ],
    "schools": [
        ("Pupils at {place} build a {thing}", "A class at {place} has built a {thing} from what the harbour throws away.", ("It took {count} afternoons and one broken window.", "The school will enter it for a prize in {month}.")),
        ("School meals at {place} to come from nearby farms", "From {month}, the kitchen at {place} will cook with what {count} farms in the valley grow.", ("The {thing} in the yard was turned into a bed for beans.", "The plan costs {sum} a year, which parents and town share.")),
        ("Evening classes return to {place}", "Courses in boat repair, bread and basic accounts begin at {place} on a {weekday} in {month}.", ("Lessons are held beside the {thing}, where it is warm.", "There is room for {count} people; half the places are gone.")),
    ],
    "sport": [
        ("Rowers of {place} win by a length", "The four from {place} won the coastal race on {weekday}, a length ahead of the favourites.", ("They train before dawn, beside the {thing}, with a lamp on the bow.", "From the wall, {count} people watched.")),
        ("{place} to have a running path", "A path for runners will lead from {place} round the bay and past the {thing}.", ("It is five kilometres long and costs {sum}.", "The athletics club had asked for it since a {weekday} in {month} when a race was lost in fog.")),
        ("Draw in the rain at {place}", "Nobody scored at {place} on {weekday}, and nobody who was there will forget it.", ("The ball was last seen beyond the {thing}.", "Of {count} spectators, all stayed.")),
    ],
    "weather": [
        ("Wind takes the roof off a {thing} at {place}", "A gust in the night to {weekday} lifted the roof off a {thing} at {place}; nobody was hurt.", ("The station measured the strongest wind since a day in {month} long ago.", "Repairs will cost {sum}, the insurer says.")),
        ("Driest {month} on record at {place}", "The gauge at {place} collected four millimetres of rain in {month}, the least since readings began.", ("The {thing} may be watered on {weekday} evenings only.", "Farmers have moved {count} sheep down to the river.")),
        ("Fog keeps boats at {place} for a third day", "No boat has left {place} since {weekday}, and the forecast for the week is no better.", ("The horn beside the {thing} has sounded {count} times.", "Schools stay open, at the pupils' regret.")),
    ],
}  # fmt: skip

_THINGS = ("footbridge", "bandstand", "clock tower", "boathouse", "fountain", "greenhouse", "bus shelter", "breakwater")


@dataclass(frozen=True)
class Article:
    """An article; ``markup`` is how its page describes it: jsonld or opengraph."""

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
        """Where its page is."""
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
    headline, lead, details = rng.choice(_STORIES[section])
    bound = {"thing": rng.choice(_THINGS), "speaker": grammar.person(rng)}
    bound = grammar.bind(rng, _RULES, ("place", "month", "count", "sum", "weekday"), bound)
    published = dt.datetime(2026, 10, 30, 6, 0, tzinfo=dt.UTC) - dt.timedelta(hours=9 * number, minutes=7 * (number % 8))
    return Article(
        number=number,
        section=section,
        headline=grammar.sentence(grammar.write(rng, headline, _RULES, bound)).rstrip("."),
        author=author,
        published=published,
        modified=published + dt.timedelta(hours=5) if number % 4 == 0 else None,
        lead=grammar.sentence(grammar.write(rng, lead, _RULES, bound)),
        paragraphs=_paragraphs(rng, details, bound),
        tags=(bound["place"], bound["thing"]),
        markup=("jsonld", "opengraph")[number % 2],
    )


def _articles() -> list[Article]:
    rng = random.Random("brindlemoor courier")
    staff = [grammar.person(rng) for _ in range(9)]
    sections = list(SECTIONS)
    count = ARTICLES_PER_SECTION * len(sections)
    return [_article(rng, number, sections[number % len(sections)], rng.choice(staff)) for number in range(1, count + 1)]


#: Every article, newest first.
ARTICLES: list[Article] = _articles()


def by_number(number: int) -> Article | None:
    """The article with this number."""
    return ARTICLES[number - 1] if 1 <= number <= len(ARTICLES) else None


def in_section(section: str) -> list[Article]:
    """The section's articles, newest first."""
    return [article for article in ARTICLES if article.section == section]
