"""Terms of a job: type of employment, remote work, salary, and the day of its posting."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import islice, pairwise
from operator import itemgetter
from typing import Final, Protocol

from scrapy_ext.server.extraction.auto.fields.dates import Date
from scrapy_ext.server.extraction.auto.fields.price_notation import (
    WESTERN_LETTER,
    Place,
    code_of,
    may_mean,
    normalised,
)
from scrapy_ext.server.extraction.auto.fields.prices import Amount, amounts_in, from_markup
from scrapy_ext.server.extraction.auto.items import BaseSalary
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.vocabulary import CaselessPattern, load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")


_PAGE = _VOCABULARY.pattern("page", re.IGNORECASE)
_ARTICLE = _VOCABULARY.pattern("article", re.IGNORECASE)
_TYPES: Final = tuple(_VOCABULARY.table("types").items())
_TYPE_WORDS: Final = tuple((name, CaselessPattern(rf"\b(?:{words})\b|^(?:{words})$")) for name, words in _TYPES)
_REMOTE: Final = tuple(_VOCABULARY.table("remote").items())
_REMOTE_WORDS: Final = tuple((name, CaselessPattern(rf"\b(?:{words})\b|^(?:{words})$")) for name, words in _REMOTE)
_HYBRID_WORDS: Final = dict(_REMOTE_WORDS)["hybrid"]
_NO_REMOTE = _VOCABULARY.pattern("no_remote", re.IGNORECASE)
_HYBRID_THINGS = _VOCABULARY.pattern("hybrid_things", re.IGNORECASE)
_OF_WORK: Final = _VOCABULARY.text("of_work")
_OR: Final = rf"(?<!\w)(?:{_VOCABULARY.text('or')})"
#: "Remote jobs" is a menu.
_WORK: Final = re.compile(rf"\b(?!(?:jobs|roles|positions)\b)(?:{_OF_WORK}|{_VOCABULARY.text('or')})\b", re.IGNORECASE)
_SET_OFF_BEFORE = re.compile(rf"(?:^|\s[-–—]+|[|•·,;:()\[\]]|\b(?:{_OF_WORK})(?:\s?/|\s+{_OR})?)\s*$", re.IGNORECASE)
_SET_OFF_AFTER = re.compile(rf"\s*(?:$|[|•·,;:()\[\]]|[-–—]+\s|[-/]?\s*(?:{_OR}\s+)?(?:{_OF_WORK})\b)", re.IGNORECASE)
_NOT = _VOCABULARY.pattern("not", re.IGNORECASE)
#: Words around "remote" that leave the place open: ``Berlin or remote``, ``remote possible``.
_OR_BEFORE = re.compile(rf"([^\s,;:()|][^,;:()|]*?)\s+{_OR}\s+$", re.IGNORECASE)
_OR_AFTER = re.compile(rf"\s+{_OR}(?!\w)\s+([^\s].*)$", re.IGNORECASE)
_CHOICE_AFTER = re.compile(rf"\W{{0,2}}(?:{_VOCABULARY.text('choice_after')})", re.IGNORECASE)
_ANYWHERE = re.compile(r"\b(?:anywhere|worldwide|weltweit|wereldwijd)\b", re.IGNORECASE)
_CHOICE_BEFORE = _VOCABULARY.pattern("choice_before", re.IGNORECASE)


def is_of_jobs(page: Page) -> bool:
    """Return whether the title or the URL of a page is about jobs."""
    return _PAGE.search(f"{page.title or ''} {page.url.replace('-', ' ')[:500]}") is not None


class TextReader(Protocol):
    """Function that reads a value from a text; with ``whole``, from one with hardly anything else."""

    def __call__(self, text: str, *, whole: bool = False) -> str | None:
        """Return the value, if there is one."""


#: Words of types that mean something else in other languages: the languages of the pages where they count.
_TYPE_LANGUAGES: Final = {
    word: frozenset(languages.split()) for word, languages in _VOCABULARY.table("type_languages").items()
}


def type_reader(language: str | None) -> TextReader:
    """Return the reader of types of employment on pages of a language: "Stage" is an internship in French."""
    others = [word for word, languages in _TYPE_LANGUAGES.items() if language and language not in languages]
    words = re.compile(rf"(?<!\w)(?:{'|'.join(others)})(?!\w)", re.IGNORECASE) if others else None

    def read_type(text: str, *, whole: bool = False) -> str | None:
        return employment_type(words.sub("", text) if words else text, whole=whole)

    return read_type


def employment_type(text: str, *, whole: bool = False) -> str | None:
    """Return the types of employment in a text, joined; with ``whole``, of a text with hardly anything else."""
    if whole and _ARTICLE.match(text):
        return None
    found = [(name, match) for name, words in _TYPE_WORDS if (match := words.search(text))]
    if whole and sum(len(match.group()) for _, match in found) < 0.6 * len(text):
        return None
    return ", ".join(name for name, _ in found) or None


def remote_status(text: str, *, whole: bool = False) -> str | None:
    """Return ``remote``, ``hybrid`` or ``on-site`` as a text has it; None where it denies it."""
    text = _NO_REMOTE.sub(" ", text)
    for name, words in _REMOTE_WORDS:
        match = words.search(text)
        if match is None or _NOT.search(text):
            continue
        if not whole or _is_most(text, match):
            if whole and name == "hybrid" and not _is_set_off(text, match):
                continue
            return name if name == "hybrid" or not _is_choice(text, match) else None
    return None


def _is_most(text: str, match: re.Match[str]) -> bool:
    """Return whether there is hardly anything else in a text, but for words for work: ``hybrid working``."""
    around = (_WORK.sub(" ", part).strip(" -") for part in (text[: match.start()], text[match.end() :]))
    return len(match.group()) >= 0.6 * (len(match.group()) + sum(len(part) + 1 for part in around if part))


def _is_choice(text: str, match: re.Match[str]) -> bool:
    """Return whether a kind of work is one of several, or only possible: ``Berlin or remote``."""
    before, after = text[: match.start()], text[match.end() :]
    if _CHOICE_AFTER.match(after) or _CHOICE_BEFORE.search(before):
        return True
    others = (_OR_BEFORE.search(before), _OR_AFTER.match(after))
    return any(other and not _names_same(other[1], match) for other in others)


def _names_same(text: str, match: re.Match[str]) -> bool:
    """Return whether an alternative is the same kind of work in other words: ``remote or work from home``."""
    if _ANYWHERE.search(text):
        return True
    return any(words.search(text) and words.search(match.group()) for _, words in _REMOTE_WORDS)


def remote_status_of_title(title: str) -> str | None:
    """Return the place of work that the title of a job names: hybrid as an addition, not that of cars or clouds."""
    found = remote_status(title)
    if found != "hybrid":
        return found
    matches = _HYBRID_WORDS.finditer(title)
    return found if not _HYBRID_THINGS.search(title) and any(_is_set_off(title, match) for match in matches) else None


def _is_set_off(text: str, match: re.Match[str]) -> bool:
    """Return whether no word about something else touches a word: ``Cook (hybrid)``, ``Cook - hybrid working``."""
    return bool(_SET_OFF_BEFORE.search(text[: match.start()]) and _SET_OFF_AFTER.match(text[match.end() :]))


def stated_type(job: Thing | None) -> str | None:
    """Return the type of employment of structured data: in words for constants of schema.org, else as written."""
    texts = [one_line(text) for text in job.texts("employmentType")][:5] if job else []
    types = [employment_type(text.rpartition("/")[2]) or text for text in texts]
    return ", ".join(dict.fromkeys(types)) or None


def stated_remote(job: Thing | None) -> str | None:
    """Return ``remote`` where the structured data of a job says so."""
    stated = job.text("jobLocationType") if job else None
    return "remote" if stated and "TELECOMMUTE" in stated.upper() else remote_status(stated or "")


MAX_SALARY_LENGTH: Final = 200
#: Signs without a width, which pages put around the dash of a range.
_ZERO_WIDTH: Final = re.compile("[\u200b-\u200d\u2060\ufeff]")

#: Between the ends of a range: a dash or a word, perhaps after the time that the first amount is for.
_JOINED = re.compile(rf"[^\d.,;()]{{0,12}}?{_VOCABULARY.text('dash')}\s?", re.IGNORECASE)
#: Words that make a lone amount the end of a range.
_AT_LEAST = _VOCABULARY.pattern("at_least", re.IGNORECASE)
_AT_MOST = _VOCABULARY.pattern("at_most", re.IGNORECASE)
_RATES: Final = tuple(_VOCABULARY.table("rates").items())
_RATE_WORDS: Final = tuple((name, CaselessPattern(rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])")) for name, words in _RATES)
#: Counted words and the time they are in: ``40 hours a week``, ``38,5 Stunden/Woche``, ``週40時間``.
_COUNTED: Final = re.compile(
    rf"(?<![\d.,])\d{{1,4}}(?:[.,]\d+)?(?:\s?-\s?\d+(?:[.,]\d+)?)?\+?[\s./-]*(?:{WESTERN_LETTER.pattern}{{1,20}}"
    rf"(?:[\s./-]+(?:{WESTERN_LETTER.pattern}{{1,4}}[\s/]+){{0,2}}{WESTERN_LETTER.pattern}{{1,20}})?|[^\W\d_]{{1,2}})"
)
_PAID: Final = _VOCABULARY.pattern("paid", re.IGNORECASE)
_OF_UNIT: Final = {"HOUR": "hourly", "DAY": "daily", "WEEK": "weekly", "MONTH": "monthly", "YEAR": "annual"}


def salary_of_markup(thing: Thing | None, place: Place) -> BaseSalary | None:
    """Return the salary in the structured data of a job; amounts of zero are none."""
    for value in thing.values("baseSalary", "estimatedSalary", "salary") if thing else ():
        if isinstance(value, str):
            found = salary_in(value, place) or _bare(value, thing, place)
        else:
            found = _of_amount(value, thing, place)
        if found is not None:
            return found
    return None


def _of_amount(amount: Thing, job: Thing | None, place: Place) -> BaseSalary | None:
    inner = next(iter(amount.things("value")), amount)
    low, high = (from_markup(inner.text(name)) for name in ("minValue", "maxValue"))
    one = from_markup(inner.text("value", "@value", "median", "price"))
    if not (low or high or one):
        return salary_in(text_of(amount), place)
    stated = (each.text("currency", "priceCurrency") for each in (amount, inner))
    raw_currency = next(filter(None, stated), None) or (job.text("salaryCurrency") if job else None)
    unit = (inner.text("unitText", "unitCode") or amount.text("unitText", "duration") or "").upper()
    low, high = low or (one if not high else None), high or (one if not low else None)
    return BaseSalary(
        valueMin=low.amount if low else None,
        valueMax=high.amount if high else None,
        currency=code_of(raw_currency, place),
        currencyRaw=raw_currency,
        rateType=_OF_UNIT.get(unit) or rate_in(unit),
    )


def _bare(text: str, job: Thing | None, place: Place) -> BaseSalary | None:
    amounts, currency = amounts_in(text[:MAX_SALARY_LENGTH]), job.text("salaryCurrency") if job else None
    # Of several numbers that are no range, nothing says which is the salary.
    if not amounts or (len(amounts) > 1 and not amounts[1].ends_range):
        return None
    return BaseSalary(
        raw=one_line(text),
        valueMin=amounts[0].text,
        valueMax=amounts[-1].text,
        currency=code_of(currency, place),
        currencyRaw=currency,
    )


#: What stands between a salary and other facts of its line, or between its label and it.
_BETWEEN_FACTS: Final = re.compile(r"\s*[|｜•·‧]\s*|\s+[–—-]\s+|[:：]\s+|\s*;\s+|[.!?]\s+(?=[A-ZÀ-Þ])")
_BETWEEN_WORDS: Final = re.compile(r"\s+")
#: Cuts of a line that are tried, at most.
MAX_CUTS: Final = 60


def salary_in(text: str | None, place: Place, *, in_sentence: bool = False) -> BaseSalary | None:
    """Return the salary in a short text, a range before a lone amount; None without an amount with a currency.

    ``raw`` is the part of a line with the salary; of a sentence, its words alone.
    """
    found = _salary_in(text, place)
    if found is not None and found.raw:
        found.raw = _shortest(found, place, _BETWEEN_WORDS if in_sentence else _BETWEEN_FACTS)
        found.raw = found.raw.rstrip(".") if in_sentence else found.raw
    return found


def _shortest(salary: BaseSalary, place: Place, between: re.Pattern[str]) -> str:
    """Return the shortest part of a text, between separators, that has the same salary as all of it."""
    raw = salary.raw or ""
    for from_start in (True, False):
        ends = [match.span() for match in islice(between.finditer(raw), MAX_CUTS)]
        pieces = [raw[end:] if from_start else raw[:start] for start, end in (ends[::-1] if from_start else ends)]
        raw = next((piece for piece in pieces if _is_same(salary, _salary_in(piece, place))), raw)
    return raw.strip(" ,;")


def _is_same(one: BaseSalary, other: BaseSalary | None) -> bool:
    if other is None or (one.currencyRaw, one.rateType) != (other.currencyRaw, other.rateType):
        return False
    return (one.valueMin, one.valueMax) == (other.valueMin, other.valueMax)


def _salary_in(text: str | None, place: Place) -> BaseSalary | None:
    raw = one_line(_ZERO_WIDTH.sub("", text or ""))
    if not raw or len(raw) > MAX_SALARY_LENGTH:
        return None
    text = normalised(raw)
    # Not as numbers of the place: no salary has three decimals, and pages in English write 3.500 €, in German £30,000.
    amounts = [amount for amount in amounts_in(text) if amount.sign]
    if not amounts:
        return None
    low, high = _range(text, amounts)
    before = text[: low.start]
    # $61,152 to $69,789 CAD
    sign = high.sign if may_mean(low.sign or "", high.sign or "") else low.sign
    return BaseSalary(
        raw=raw,
        valueMin=None if high is low and _AT_MOST.search(before) else _formatted(min(low.value, high.value)),
        valueMax=None if high is low and _AT_LEAST.search(before) else _formatted(max(low.value, high.value)),
        currency=code_of(sign, place),
        currencyRaw=sign,
        rateType=_rate_of(text, low, high, amounts),
    )


#: A range in thousands of yuan a month, and the number of months that are paid, as Chinese boards write it.
_IN_THOUSANDS: Final = re.compile(
    r"(\d{1,3}(?:\.\d)?)[kK]?\s?[-–~]\s?(\d{1,3}(?:\.\d)?)[kK](?:\s?/\s?月)?(?:\s?[·*×xX]\s?\d\d\s?薪)?"
)


def is_in_thousands(text: str) -> bool:
    """Return whether a text is a range in thousands without a currency: ``15-25K·14薪``."""
    return _IN_THOUSANDS.fullmatch(text) is not None


def salary_in_thousands(text: str | None, place: Place) -> BaseSalary | None:
    """Return the salary in such a text of a page of China; None of other countries."""
    match = _IN_THOUSANDS.fullmatch(text or "")
    if match is None or (place.language, place.country) != ("zh", "cn"):
        return None
    low, high = (_formatted(1000 * Decimal(amount)) for amount in match.groups())
    return BaseSalary(raw=text, valueMin=low, valueMax=high, currency="CNY", rateType="monthly")


def _range(text: str, amounts: list[Amount]) -> tuple[Amount, Amount]:
    """Return the ends of the first range, or else the first amount as both."""
    for low, high in pairwise(amounts):
        if high.ends_range or _JOINED.fullmatch(text, low.end, high.start):
            return low, high
    return amounts[0], amounts[0]


def rate_in(text: str) -> str | None:
    """Return the time that an amount is for, of a text that names no other time."""
    return next((name for name, words in _RATE_WORDS if words.search(text)), None)


def _rate_of(text: str, low: Amount, high: Amount, amounts: list[Amount]) -> str | None:
    """Return the time that a salary is for: that of the nearest words about neither work nor payment."""
    others = [amount for amount in amounts if amount is not low and amount is not high]
    first = max((amount.end for amount in others if amount.end <= low.start), default=0)
    last = min((amount.start for amount in others if amount.start >= high.end), default=len(text))
    counted = [match.span() for match in _COUNTED.finditer(text) if not low.start <= match.start() < high.end]
    found = []
    for name, words in _RATE_WORDS:
        for match in words.finditer(text):
            start, end = match.span()
            distance = start - high.end if start >= high.end else low.start - end
            says_else = any(since <= start < until for since, until in counted) or _PAID.search(text, 0, start)
            if first <= start and end <= last and not says_else:
                found.append((distance, name))
    return min(found, key=itemgetter(0))[1] if found else None


def _formatted(value: Decimal) -> str:
    return f"{value.normalize():f}"


# ── dates of a job relative to the day of the download: ``Posted 3 days ago`` ──


#: Greatest distance from the heading, in elements.
NEAR: Final = 80
MAX_LENGTH: Final = 50
#: Greatest distance, and length, of a line of facts of which one part is the date.
BESIDE: Final = 12
MAX_FACTS: Final = 120
_PARTS: Final = re.compile(r"\s*[|｜•·‧]\s*")
MAX_LINES: Final = 5_000

_RELATIVE: Final = _VOCABULARY.pattern("relative_date", re.IGNORECASE)
#: Units of less than a day, and of a day, by their first letters. What is longer names no day.
_HOURS: Final = ("min", "h", "stunde")
_DAYS: Final = ("d", "tag", "jour", "giorn")


def is_relative_date(text: str) -> bool:
    """Return whether a text is the age of a job and nothing else: ``2 weeks ago``, not ``40 hours``."""
    match = _RELATIVE.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None or not match["unit"] or match["unit"].lower() == "d":
        return match is not None
    # A number and a unit alone are as often hours of work or days of leave; "3d" is an age.
    return letters_of(text) != letters_of(match["number"] + match["unit"])


def relative_date(focus: Focus) -> Date | None:
    """Return the date of the line by the heading that is one, nearest first; without a day, the line alone counts."""
    best: tuple[int, str] | None = None
    for node, text in focus.lines(NEAR // 4, NEAR)[:MAX_LINES]:
        distance = abs(focus.distance(node))
        parts = _PARTS.split(text) if distance <= BESIDE and len(text) <= MAX_FACTS else [text]
        found = next((part for part in parts if is_relative_date(part)), None)
        if found and (best is None or distance < best[0]) and not focus.elsewhere(node):
            best = (distance, found)
    if best is None:
        return None
    return Date(_day(best[1]) or "", best[1])


def _day(text: str) -> str | None:
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return None
    now = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = 1 if match["yesterday"] else 0
    if match["unit"]:
        unit = match["unit"].lower()
        number = int(match["number"]) if match["number"].isdigit() else 1
        if unit.startswith(_DAYS):
            days = number
        elif not unit.startswith(_HOURS) or unit.startswith("heute"):
            return None
    return (now - timedelta(days=days)).isoformat()
