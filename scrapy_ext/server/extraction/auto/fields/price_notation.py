"""Notation of amounts on the pages of all countries: numbers, and the signs, words and codes of currencies.

Digits of every script, grouped by comma, point, space or apostrophe, with a decimal sign, raised cents or a dash for no
cents; and the numerals of East Asia.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.urls import host_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The zeros of the scripts with decimal digits that pages use.
_ZEROS: Final = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0xF20, 0x1040,
    0x17E0, 0x1810, 0xFF10,
)  # fmt: skip
#: Signs without a width: of the direction of text, joiners, soft hyphens.
_UNSEEN: Final = (0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF)
_PLAIN: Final = {
    **{zero + digit: str(digit) for zero in _ZEROS for digit in range(10)},
    **dict.fromkeys(_UNSEEN),
    **str.maketrans("，．：％٪（）／－＄￡、〜～", ",.:%%()/-$£,––"),
    **str.maketrans("’ʼ`´‘＇", "''''''"),
}
#: ``12 . 99`` and ``12, 99``, from digits and sign in elements of their own. A sign that groups is no decimal sign too.
_SPACED_SIGN = re.compile(r"(?<=\d)(?: ([.,]) ?(?=\d)|((?<!\.\d{3})\.|(?<!,\d{3}),) (?=\d\d(?!\d)))")

#: Characters of the longest word of a count, and more.
MAX_COUNT_LENGTH: Final = 40

_RAISED: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWERS: Final = {
    **dict.fromkeys("十拾십", 10), **dict.fromkeys("百백", 100), **dict.fromkeys("千천", 1_000),
    **dict.fromkeys("万萬만", 10_000), **dict.fromkeys("億亿억", 10**8),
}  # fmt: skip
_DIGITS_OF_KANJI: Final = ("〇零", "一壱", "二弐两兩", "三参", "四", "五", "六", "七", "八", "九")
_KANJI: Final = {digit: value for value, digits in enumerate(_DIGITS_OF_KANJI) for digit in digits}
_EAST_ASIAN: Final = "".join((*_POWERS, *_KANJI))
_EAST_ASIAN_PART = re.compile(rf"(\d[\d,]*(?:\.\d+)?)|([{_EAST_ASIAN}])")

#: Signs for ten thousand and its powers.
TEN_THOUSANDS: Final = "".join(sign for sign, value in _POWERS.items() if value >= 10_000)

#: The other end of a range: of ``25万-30万円``, only the end has the currency.
_END_OF_RANGE: Final = rf"\s?[-–—~]\s?\d[\d,.]{{0,12}}[{''.join(_POWERS)}][\d,{''.join(_POWERS)}]{{0,12}}"
#: A number: of East Asia beside a currency; grouped or plain, with decimals or the dash of no cents; a fraction alone.
NUMBER: Final = rf"""
(?:\d[\d,.]{{0,20}}\ ?)?[{_EAST_ASIAN}][{_EAST_ASIAN}\d,]{{0,30}}(?:\ [\d,]{{1,20}}[{"".join(_POWERS)}]?)?
 (?=(?:{_END_OF_RANGE})?\s?[円元원圓圆块塊])
|(?:(?<=[¥￥₩])|(?<=[¥￥₩]\ ))\d[\d,.]{{0,20}}[{TEN_THOUSANDS}][{_EAST_ASIAN}\d,]{{0,30}}
|(?:\d{{1,3}}(?:(?P<group>[ .,'٬_])\d{{3}})(?:(?P=group)\d{{3}})*(?!\d)|\d{{1,2}}(?:,\d\d)+,\d{{3}}(?!\d)|\d+)
 (?:[.,٫·]\d{{1,4}}(?!\d)|[.,٫]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{2}}
 |[.,][-–—−=]{{1,2}}(?!\d|\ \d\d?\.\ ?[^\W\d])|[.,]\ [-–—−=]{{1,2}}(?!\ ?\d)
 |[-–—−=]{{1,2}}(?=$|[\s€£$)*,;/A-Z])(?!\s?(?:[€£$¥]|[A-Z]{{3}})?\s?\d))?
|(?<![\w.,])[-–—−]?[.,]\d{{1,2}}(?!\d)"""

#: A letter of a script that has spaces between its words.
WESTERN_LETTER = re.compile(r"[^\W\d_\u0e00-\u0eff\u3000-\u9fff\uac00-\ud7af]")

_DASHES = re.compile(r"\s?[.,:]?\s?[-–—−=]+$|^[-–—−]+")
_SEPARATORS = re.compile(r"[^\d]")


def normalised(text: str) -> str:
    """Return a text in one line, with digits and signs of ASCII so far as they mean the same."""
    text = one_line(text if text.isascii() else text.translate(_PLAIN))
    return _SPACED_SIGN.sub(_without_spaces, text)


def _without_spaces(match: re.Match[str]) -> str:
    """Return a decimal sign without the spaces around it; unchanged before a count: ``$15, 40 hours``."""
    if match[2] and is_count(match.string[match.end() + 2 : match.end() + 2 + MAX_COUNT_LENGTH]):
        return match.group()
    return match[1] or match[2]


def number_of(raw: str, *, sign: str | None = None, decimals: int = 2) -> Decimal | None:
    """Return the value of a number that :data:`NUMBER` matches.

    ``sign`` is the decimal sign of the place, if it is known, and ``decimals`` the number of decimals of the currency:
    they decide about ``1.299``, which is a thousand and more where nothing does.
    """
    if any(sign in _EAST_ASIAN for sign in raw):
        return _of_east_asia(raw)
    raw = _DASHES.sub("", raw).strip()
    whole, fraction = _parts(raw, sign, decimals)
    try:
        return Decimal(f"{_SEPARATORS.sub('', whole) or '0'}.{fraction}" if fraction else _SEPARATORS.sub("", whole))
    except InvalidOperation:
        return None


def _parts(raw: str, sign: str | None, decimals: int) -> tuple[str, str]:
    """Return the whole part, with its separators, and the decimals."""
    raised = raw.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹")
    if raised != raw:
        return raised, raw[len(raised) :].translate(_RAISED)
    separators = _SEPARATORS.findall(raw)
    if not separators:
        return raw, ""
    last = separators[-1]
    whole, _, fraction = raw.rpartition(last)
    if last in " '٬_" or (separators.count(last) > 1 and last != "٫"):
        return raw, ""
    if last == "٫" or len(set(separators)) > 1 or len(fraction) != 3:
        return whole, fraction
    # One sign before three digits.
    known = (last == sign and decimals > 0) or (last == "." and decimals == 3)
    decimal = whole in {"", "0"} or len(whole) > 3 or known
    return (whole, fraction) if decimal else (raw, "")


def power_of(raw: str) -> int:
    """Return the power at the end of a number such as ``1.5万``; 1 for others."""
    return _POWERS.get(raw[-1:], 1)


def _of_east_asia(raw: str) -> Decimal | None:
    """Return the value of ``1万2,800`` or ``五百``."""
    total = section = Decimal(0)
    digits: Decimal | None = None
    for number, sign in _EAST_ASIAN_PART.findall(raw):
        if number:
            digits = Decimal(number.replace(",", ""))
        elif sign in _KANJI:
            digits = (digits or 0) * 10 + Decimal(_KANJI[sign])
        elif _POWERS[sign] < 10_000:
            section += (1 if digits is None else digits) * _POWERS[sign]
            digits = None
        else:
            total += (section + (digits or 0) or 1) * _POWERS[sign]
            section, digits = Decimal(0), None
    value = total + section + (digits or 0)
    return value.to_integral_value() if value else None


# ── currencies: their signs and words, and how the countries of shops write amounts ──

_VOCABULARY: Final = load_vocabulary("currencies")
#: Codes that pages write.
CODES: Final = frozenset(_VOCABULARY.words("codes"))
#: Signs and words of one currency in every country.
_CURRENCIES: Final = {sign: code for code, signs in _VOCABULARY.groups("signs").items() for sign in signs}
#: Signs of several currencies: the currency by the top-level domain of the shop.
_SHARED: Final = {
    sign: dict(member.split() for member in members) for sign, members in _VOCABULARY.groups("shared").items()
}
_NARROW: Final = _VOCABULARY.table("narrow")
#: Signs that stand after the amount in most shops.
SIGNS_AFTER: Final = frozenset(_VOCABULARY.groups("place")["after"])
_DECIMALS: Final = {
    code: number for name, number in (("none", 0), ("three", 3)) for code in _VOCABULARY.groups("decimals")[name]
}
#: Signs of a hundredth of the unit.
MINOR: Final = frozenset({"¢", "p"})
_POINT, _COMMA = _VOCABULARY.groups("point"), _VOCABULARY.groups("comma")

_ISO_CODE = re.compile(r"[A-Z]{3}")
_REGION = re.compile(r"[a-z]{2,3}[-_](?:[a-z]{4}[-_])?([a-z]{2})\b")
#: Top-level domains of two letters that shops of every country take.
_GENERIC: Final = frozenset({"ai", "cc", "co", "eu", "gg", "io", "ly", "me", "sh", "to", "tv"})


def decimals_of(sign: str | None, place: Place) -> int:
    """Return the number of decimals of prices in the currency of a sign; 2 without one.

    Neither of the currencies that share ¥ has three, so that ``¥1.980`` is never about two.
    """
    return 0 if sign == "¥" else _DECIMALS.get(code_of(sign, place) or "", 2) if sign else 2


def _pattern(sign: str) -> str:
    """Return a sign as a pattern that begins with its first character: no letter may follow it."""
    if narrow := _NARROW.get(sign):
        return narrow.replace(" ", r"\ ")
    return re.escape(sign) + (r"(?![^\W\d_])" if WESTERN_LETTER.match(sign[-1]) else "")


def _any_sign() -> str:
    """Return the pattern of all signs. Letters may not stand before those that begin with one.

    Each position is looked at once by the first character, as there are hundreds of signs.
    """
    signs = sorted({*_CURRENCIES, *_SHARED, *CODES}, key=len, reverse=True)
    worded = [sign for sign in signs if WESTERN_LETTER.match(sign[0])]
    others = [sign for sign in signs if not WESTERN_LETTER.match(sign[0])]
    return rf"(?<![^\W\d_]){_either(worded)}|{_either(others)}"


def _either(signs: list[str]) -> str:
    by_first: dict[str, list[str]] = {}
    for sign in signs:
        by_first.setdefault(sign[0], []).append(_pattern(sign))
    first = "".join(map(re.escape, by_first))
    parts = [f"(?={re.escape(character)})(?:{'|'.join(patterns)})" for character, patterns in by_first.items()]
    return f"(?=[{first}])(?:{'|'.join(parts)})"


#: A sign, word or code of a currency, for verbose patterns.
SIGN: Final = _any_sign()


class Place(NamedTuple):
    """The country of a shop (top-level domain, or region of its language) and its language; empty where unknown."""

    country: str = ""
    language: str = ""


NOWHERE: Final = Place()


@lru_cache(maxsize=256)
def place_of(url: str, language: str | None = None) -> Place:
    """Return the place of a page by its URL and its language (``de``, ``de-CH``)."""
    language = (language or "").strip().lower()
    country = host_of(url).rpartition(".")[2]
    known = len(country) == 2 and country.isalpha() and (country not in _GENERIC or country in _SHARED["$"])
    region = _REGION.match(language)
    return Place(country if known else region.group(1) if region else "", re.split("[-_]", language)[0])


def place_on(page: Page) -> Place:
    """Return the place of a page."""
    return place_of(page.url, page.tree.get("lang") or page.language)


def code_of(raw: str | None, place: Place) -> str | None:
    """Return the ISO 4217 code of a currency as written; None where several share the sign and the place is unknown.

    ``$`` where no country is known means US dollars.
    """
    if not raw:
        return None
    raw = raw.strip()
    shared = _SHARED.get(raw, {})
    if code := shared.get(place.country) or (shared.get(f"{place.language}-") if not place.country else None):
        return code
    if raw in {"$", "¢"}:
        return None if place.country else "USD"
    return _CURRENCIES.get(raw) or (raw if _ISO_CODE.fullmatch(raw) else None)


def is_shared(sign: str) -> bool:
    """Return whether several countries share a sign, so that a code beside it is more exact."""
    return sign in _SHARED


def may_mean(sign: str, code: str) -> bool:
    """Return whether a sign that countries share is that of a currency in one of them."""
    return code in _SHARED.get(sign, {}).values()


def decimal_sign(place: Place) -> str | None:
    """Return the decimal sign of a place; None where its country and its language differ, or are unknown."""
    signs = {
        sign
        for sign, names in ((".", _POINT), (",", _COMMA))
        if place.country in names["countries"] or place.language in names["languages"]
    }
    return signs.pop() if len(signs) == 1 else None


# ── roles of amounts by the words beside them: former prices, savings, delivery, instalments, prices of a unit ──


class Role(Enum):
    """The meaning of an amount."""

    PRICE = "price"
    #: With tax, where another is without.
    GROSS = "gross"
    #: In parentheses, after another one.
    ASIDE = "aside"
    NET = "net"
    UNIT = "unit"
    FORMER = "former"
    SAVING = "saving"
    SHIPPING = "shipping"
    DEPOSIT = "deposit"
    INSTALMENT = "instalment"
    #: Of a month or a year, such as that of a subscription.
    MONTHLY = "monthly"
    #: For those who subscribe, or are members of a club.
    TERMS = "terms"
    THRESHOLD = "threshold"
    LOWEST = "lowest"
    EXTRA = "extra"


class RoleFound(NamedTuple):
    """A role, and the length of the text after the amount that gives it."""

    role: Role
    used: int = 0


_WORDS: Final = load_vocabulary("money")
#: The words before two amounts; the first one is the former price.
REDUCED: Final = [pair.split() for pair in _WORDS.words("reduced")]


def _phrases(name: str) -> str:
    """Return the pattern of the phrases of a role: those of scripts with spaces as whole words."""
    spaced = rf"(?<![^\W_])(?:{_WORDS.text(name)})(?![^\W_])" if name in _WORDS else "(?!)"
    unspaced = _WORDS.text(f"{name}_unspaced") if f"{name}_unspaced" in _WORDS else "(?!)"
    return f"{spaced}|{unspaced}"


#: Roles of the words before an amount; of two that begin at one place, the first counts.
_LEADING: Final = (
    "free_shipping", "instalment", "lowest", "former", "unit", "net", "gross", "terms", "shipping", "deposit",
    "threshold", "extra", "saving", "current",
)  # fmt: skip
_TRAILING: Final = (
    "monthly", "instalment", "unit", "gross", "net", "terms", "saving", "deposit", "shipping", "threshold", "former",
)  # fmt: skip
_LEAD = re.compile("|".join(f"(?P<{name}>{_phrases(name)})" for name in _LEADING), re.IGNORECASE)
_TRAIL = re.compile(
    r"[\s)\]*,(]{0,2}(?:für |for |de |di )?(?:"
    + "|".join(f"(?P<{name}>{_phrases(name if name == 'shipping' else f'{name}_after')})" for name in _TRAILING)
    + ")",
    re.IGNORECASE,
)
_COUNT = re.compile(rf"[\s-]?(?:{_phrases('count')})", re.IGNORECASE)
_FREE = re.compile(_phrases("free_shipping"), re.IGNORECASE)
_FROM = re.compile(rf"(?:{_phrases('from')})\s*$", re.IGNORECASE)
#: Words between a phrase and its amount: no sentence ends there.
_FILLER = re.compile(rf"\.?(?:[^\d.!?;,|•()]|\d+[ -]?(?:{_WORDS.text('days')})){{0,40}}\(?", re.IGNORECASE)
_PARTIAL = re.compile(rf"(?:{_phrases('from')}|{_phrases('partial')})\s*$", re.IGNORECASE)
#: A percentage or a number of points: the word after it is about that.
_COUNTED = re.compile(r"%\s*$|\d$")
#: After the word for delivery: nothing else, or where to.
_ENDS = re.compile(r"[\s.*)]*$|\s(?:to|nach|costs?|fee)\b", re.IGNORECASE)
_OF_NEXT: Final = frozenset({"shipping", "deposit"})
_MINUS = re.compile(r"(?:^|[\s(])[-–—−]$")
#: Of ``10+``, a number of pieces, the sign is no sum.
_PLUS = re.compile(r"(?<!\d)\+\s?$")


def is_count(rest: str) -> bool:
    """Return whether the text after a number makes it a size, a count or a time."""
    return _COUNT.match(rest) is not None


def role_of(lead: str, trail: str, *, more: bool) -> RoleFound:
    """Return the role of an amount between two texts; ``more`` says that the text after it ends at another amount."""
    before = _role_before(lead)
    if before is not Role.PRICE and before is not Role.GROSS:
        return RoleFound(before)
    after = _role_after(trail, more=more)
    if after.role is Role.MONTHLY and _PARTIAL.search(lead):
        # ``ab 10 €/Monat``, ``or $10 a month``: of a whole.
        return RoleFound(Role.INSTALMENT, after.used)
    if after.role is not Role.PRICE:
        return after
    if _FROM.search(lead) and (_FREE.search(lead) or _FREE.match(trail.lstrip())):
        return RoleFound(Role.THRESHOLD)
    if before is Role.PRICE and "(" in lead and ")" not in lead.rpartition("(")[2]:
        return RoleFound(Role.ASIDE)
    return RoleFound(before)


def _role_before(lead: str) -> Role:
    if _MINUS.search(lead):
        return Role.SAVING
    last = None
    for match in _LEAD.finditer(lead):
        last = match
    if last is not None and _FILLER.fullmatch(lead, last.end()):
        name = str(last.lastgroup)
        is_counted = name == "saving" and _COUNTED.search(lead[: last.start()])
        if name not in {"current", "free_shipping"} and not is_counted:
            return Role(name)
        if name == "current":
            return Role.PRICE
    return Role.EXTRA if _PLUS.search(lead) else Role.PRICE


def _role_after(trail: str, *, more: bool) -> RoleFound:
    match = _TRAIL.match(trail)
    if match is None or match.lastgroup is None:
        return RoleFound(Role.PRICE)
    rest = trail[match.end() :]
    # A label of the next amount: ``$20 shipping: $5``, ``1,800円 (税込1,980円)``.
    opened = "(" in match.group() or match.lastgroup in _OF_NEXT
    if rest.lstrip().startswith(":") or (more and opened and not rest.strip(" .")):
        return RoleFound(Role.PRICE)
    if match.lastgroup == "shipping" and (_FREE.match(trail.lstrip()) or not _ENDS.match(rest)):
        return RoleFound(Role.PRICE)
    return RoleFound(Role(match.lastgroup), match.end())
