"""Prices as shops write them: the amounts in a text, and the choice among them. Where nothing decides, there is none.

A text is cut into numbers and signs of currencies. A sign belongs to the number that it touches, or the one on the side
where shops write it. What an amount is, is said by the words beside it (:mod:`.price_notation`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.fields.price_notation import (
    CODES,
    MINOR,
    NOWHERE,
    NUMBER,
    REDUCED,
    SIGN,
    SIGNS_AFTER,
    TEN_THOUSANDS,
    WESTERN_LETTER,
    Place,
    Role,
    code_of,
    decimal_sign,
    decimals_of,
    is_count,
    is_shared,
    may_mean,
    normalised,
    number_of,
    power_of,
    role_of,
)
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longer numbers without a currency are codes, in digits.
MAX_DIGITS: Final = 9
LARGEST: Final = Decimal("1e15")

_TOKEN = re.compile(rf"(?P<number>{NUMBER})|(?P<sign>{SIGN})", re.VERBOSE)
_WORDS: Final = load_vocabulary("money")
_MULTIPLE = re.compile(
    rf"\s?(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _WORDS.table('multiples').items())})"
)
_FACTORS: Final = {"thousand": 10**3, "million": 10**6, "lakh": 10**5, "crore": 10**7}
#: Between a sign and the number after it, and between a number and the sign after it.
_LEADS = re.compile(r"\s?[.:(]?\s?")
_FOLLOWS = re.compile(r"\s?(?:/-)?\s?\(?")
#: Between a sign and a code.
_BESIDE: Final = frozenset(("", " ", "(", " ("))
#: Between the ends of a range.
_RANGE, _AND = (re.compile(rf"\s?(?:{_WORDS.text(name)})\s?", re.IGNORECASE) for name in ("range", "and"))
_BETWEEN = re.compile(rf"(?:{_WORDS.text('between')})\s*$", re.IGNORECASE)
#: The words before two amounts, first the former price: ``de 20 € por 15 €``.
_REDUCED: Final = frozenset(f"{[before]}{[between]}" for before, between in REDUCED)
#: After a number: parts of a date, a time or a fraction; a percentage; ten thousands without a currency.
_NO_MONEY = re.compile(rf"[.:/]\d|\s?(?:{_WORDS.text('percent')})|[{TEN_THOUSANDS}]", re.IGNORECASE)
_DIGIT = re.compile(r"[\d〇零一二三四五六七八九十百千万]")
_DECIMALS = re.compile(r"[.,٫]\d\d$")
#: A whole number, plain or grouped.
_WHOLE = re.compile(r"\d+|\d{1,3}(?:([ .,'])\d{3})(?:\1\d{3})*")
_NO_DIGITS = re.compile(r"\D")
_AFTER_CENTS = re.compile(r"\s*(?:[)*,]|$)")
#: The dash of no cents. Of numbers that are no money, none has one.
_NO_CENTS = re.compile(r"[.,] ?[-–—−=]{1,2}$")
#: A whole amount and two raised digits, separated by markup alone: ``12 99``.
_RAISED_CENTS = re.compile(r"^(\D{0,8}\d{1,3}(?:([.,' ])\d{3})*)\s(\d{2})(?=\D{0,8}$)")
#: Swedish: ``19:95 kr``, but not the times of ``19:30 kr 350`` and ``kl. 19:30``.
_COLON_CENTS = re.compile(
    r"(?<![\d:])(?<!\b[Kk]l )(?<!\b[Kk]l\. )(\d{1,3}(?: ?\d{3})?):(\d\d)(?=(?:/[^\W\d]{1,3})? ?(?:kr|SEK)(?!\w)"
    r"(?! ?\d+(?:[ .,]\d+)*(?! ?(?:kr|SEK|st)\b|[ .,]?[:\d])))"
)


@dataclass(slots=True)
class Amount:
    """A number of a text that may be money, from ``start`` to ``end`` with its currency."""

    raw: str
    start: int
    end: int
    factor: int = 1
    #: The currency as the text writes it.
    sign: str | None = None
    role: Role = Role.PRICE
    #: The amount before it is the other end of a range.
    ends_range: bool = False
    value: Decimal = Decimal(0)

    @property
    def text(self) -> str:
        """The amount in the format of the schema, with the decimals that the page writes."""
        return f"{self.value.normalize() if self.factor != 1 else self.value:f}"

    @property
    def has_decimals(self) -> bool:
        return _DECIMALS.search(self.raw) is not None

    @property
    def is_marked(self) -> bool:
        """True if its notation is that of money: with a currency, or with the dash of no cents."""
        return self.sign is not None or _NO_CENTS.search(self.raw) is not None


class _Sign(NamedTuple):
    text: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def amounts_in(text: str, place: Place = NOWHERE, before: str = "", after: str = "") -> tuple[Amount, ...]:
    """Return the amounts in a short text in their order: those with a currency, else the numbers that may be prices.

    ``before`` and ``after`` are the words around the text that may say what its amounts are.
    """
    text, parts = _read(text)
    found = [replace(part) for part in parts]
    _read_values(found, place)
    _share_currency(text, found)
    priced = [amount for amount in found if amount.sign]
    bare = [amount for amount in found if _may_be_bare(text, amount)]
    chosen = priced or bare
    _set_roles(text, chosen, normalised(before), normalised(after))
    return tuple(amount for amount in chosen if 0 < amount.value < LARGEST)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[str, tuple[Amount, ...]]:
    """Return a text as it is read, and its numbers with their currencies."""
    text = _RAISED_CENTS.sub(lambda match: f"{match[1]}{',' if match[2] == '.' else '.'}{match[3]}", normalised(text))
    text = _COLON_CENTS.sub(r"\1,\2", text)
    return text, tuple(part for part in _joined(text, _named(text, list(_parts(text)))) if isinstance(part, Amount))


def _parts(text: str) -> Iterator[Amount | _Sign]:
    """Yield the signs of currencies, and the numbers that are no parts of words, dates, times and percentages."""
    end_of_sign = 0
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        if token.lastgroup == "sign":
            end_of_sign = end
            yield _Sign(token.group(), start, end)
            continue
        multiple = _MULTIPLE.match(text, end)
        factor = _FACTORS[multiple.lastgroup or "thousand"] if multiple else 1
        end = multiple.end() if multiple else end
        before = text[start - 1 : start]
        if (start != end_of_sign or not start) and (before == "%" or WESTERN_LETTER.match(before)):
            continue
        if start > 1 and before in ".,:/" and text[start - 2].isdigit():
            continue
        if not _NO_MONEY.match(text, end):
            yield Amount(token.group(), start, end, factor)


def _joined(text: str, parts: list[Amount | _Sign]) -> list[Amount | _Sign]:
    """Give each sign to the number that it belongs to."""
    for index, sign in enumerate(parts):
        if not isinstance(sign, _Sign):
            continue
        left, right = (parts[at] if 0 <= at < len(parts) else None for at in (index - 1, index + 1))
        left = left if isinstance(left, Amount) and _FOLLOWS.fullmatch(text, left.end, sign.start) else None
        right = right if isinstance(right, Amount) and _LEADS.fullmatch(text, sign.end, right.start) else None
        if left and right and _is_cents(text, left, sign, right):
            left.raw, left.end = f"{_NO_DIGITS.sub('', left.raw)}.{right.raw}", right.end
            parts[index + 1], right = sign, None
        owner = (
            _owner(left, sign, right, followed=_is_followed(text, parts, index + 1))
            if left and right
            else left or right
        )
        if owner is not None:
            owner.start, owner.end = min(owner.start, sign.start), max(owner.end, sign.end)
            is_exact = owner.sign is None or sign.text in CODES or (is_shared(owner.sign) and not is_shared(sign.text))
            owner.sign = sign.text if is_exact else owner.sign
    return parts


def _named(text: str, parts: list[Amount | _Sign]) -> list[Amount | _Sign]:
    """Join a sign that countries share with the code beside it, which says whose it is: ``CAD $20``, ``20 $ CAD``."""
    named: list[Amount | _Sign] = []
    for index, part in enumerate(parts):
        sign = named[-1] if named else None
        if not isinstance(part, _Sign) or not isinstance(sign, _Sign) or text[sign.end : part.start] not in _BESIDE:
            named.append(part)
            continue
        before = named[-2] if len(named) > 1 else None
        after = parts[index + 1] if index + 1 < len(parts) else None
        follows = isinstance(before, Amount) and _FOLLOWS.fullmatch(text, before.end, sign.start)
        leads = isinstance(after, Amount) and _LEADS.fullmatch(text, part.end, after.start)
        if may_mean(part.text, sign.text) and not follows:
            named[-1] = _Sign(sign.text, part.start, part.end)
        elif may_mean(sign.text, part.text) and follows and not (leads and not _is_followed(text, parts, index + 1)):
            named[-1] = _Sign(part.text, sign.start, part.end)
        else:
            named.append(part)
    return named


def _is_cents(text: str, left: Amount, sign: _Sign, right: Amount) -> bool:
    """Return whether a sign stands where the decimal sign does: ``35€99``, ``1.299€99``."""
    glued = left.end == sign.start and sign.end == right.start
    whole = (
        _WHOLE.fullmatch(left.raw) is not None
        and left.sign is None
        and len(right.raw) == 2
        and right.raw.isdigit()
        and right.factor == 1
    )
    return whole and sign.text in SIGNS_AFTER and (glued or _AFTER_CENTS.match(text, right.end) is not None)


def _is_followed(text: str, parts: list[Amount | _Sign], index: int) -> bool:
    """Return whether the number at ``index`` has a sign after it."""
    if index + 1 >= len(parts):
        return False
    number, sign = parts[index], parts[index + 1]
    return isinstance(sign, _Sign) and _FOLLOWS.fullmatch(text, number.end, sign.start) is not None


def _owner(left: Amount, sign: _Sign, right: Amount, *, followed: bool) -> Amount:
    """Return which of the two numbers around a sign it belongs to."""
    glued_left, glued_right = left.end == sign.start, sign.end == right.start
    if left.sign:
        return right
    if followed and not (glued_right and not glued_left):
        return left
    if glued_left != glued_right:
        return left if glued_left else right
    if left.has_decimals != right.has_decimals:
        return left if left.has_decimals else right
    return left if sign.text in SIGNS_AFTER else right


def _read_values(amounts: list[Amount], place: Place) -> None:
    usual = decimal_sign(place)
    for amount in amounts:
        value = number_of(amount.raw, sign=usual, decimals=decimals_of(amount.sign, place)) or Decimal(0)
        amount.value = value / 100 if amount.sign in MINOR else value * amount.factor


def _share_currency(text: str, amounts: list[Amount]) -> None:
    """Give both ends of a range the currency and the thousands of either."""
    for low, high in pairwise(amounts):
        between = text[low.end : high.start]
        joined = _RANGE.fullmatch(between) or (
            _AND.fullmatch(between) and (low.value >= 100 or _BETWEEN.search(text, 0, low.start))
        )
        ascends = low.value <= high.value or low.factor != high.factor
        # ``Pack of 6 - $11.49`` is none.
        alike = (power_of(high.raw) > 1 or low.has_decimals == high.has_decimals) and (
            bool(low.sign) or text[high.start].isdigit()
        )
        if not (joined and ascends and alike and (low.sign or high.sign or len(amounts) == 2)):
            continue
        low.sign, high.sign = low.sign or high.sign, high.sign or low.sign
        high.ends_range = True
        for one, other in ((low, high), (high, low)):
            if one.factor == 1 and other.factor != 1 and one.value < 1000:
                one.factor, one.value = other.factor, one.value * other.factor
        power = power_of(high.raw)
        if power_of(low.raw) == 1 and low.value * power <= high.value:
            low.factor, low.value = power, low.value * power


def _may_be_bare(text: str, amount: Amount) -> bool:
    """Return whether a number without a currency is neither a size nor a code."""
    rest = text[amount.end :]
    return (
        amount.factor == 1 and len(amount.raw) <= MAX_DIGITS and not WESTERN_LETTER.match(rest) and not is_count(rest)
    )


def _set_roles(text: str, amounts: list[Amount], before: str, after: str) -> None:
    """Set the role of each amount; the ends of a range have the same."""
    at, lead = 0, f"{before} " if before else ""
    for index, amount in enumerate(amounts):
        following = amounts[index + 1] if index + 1 < len(amounts) else None
        if following is not None and following.ends_range:
            continue
        first = amounts[index - 1] if amount.ends_range else amount
        trail = text[amount.end : following.start] if following else f"{text[amount.end :]} {after}"
        found = role_of(lead + text[at : first.start], trail, more=following is not None)
        first.role = amount.role = found.role
        at, lead = amount.end + found.used, ""
    for former, price in pairwise(amounts):
        words = f"{text[: former.start].split()[-1:]}{text[former.end : price.start].split()}".casefold()
        if former.value > price.value and former.role is price.role is Role.PRICE and words in _REDUCED:
            former.role = Role.FORMER


# ── the choice ──

#: Longest text of a price that is read, in characters.
MAX_TEXT_LENGTH: Final = 200

_PLAIN_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,10})?")
#: Roles of prices, the best first: the last ones are prices where there is no other.
_PRICES: Final = (Role.GROSS, Role.PRICE, Role.ASIDE, Role.NET, Role.TERMS, Role.UNIT, Role.MONTHLY)


class Money(NamedTuple):
    """An amount in the format of the schema (``"10500.99"``), with the currency as the page writes it, if any."""

    amount: str
    currency_raw: str | None = None

    @property
    def value(self) -> Decimal:
        """The amount as a number."""
        return Decimal(self.amount)


class Prices(NamedTuple):
    """The price in a text, what it is (a price, or one without tax, of a measure, of a month), and the former price."""

    price: Money | None = None
    regular: Money | None = None
    role: Role = Role.PRICE
    #: The notation of the price says that it is money: with a currency, or the dash of no cents.
    marked: bool = False


def from_markup(text: str | None, place: Place = NOWHERE) -> Money | None:
    """Return the amount of a property of structured data, where a lone point is always a decimal sign."""
    if not text:
        return None
    text = normalised(text.partition("\n")[0][:MAX_TEXT_LENGTH])
    if _PLAIN_NUMBER.fullmatch(text):
        return Money(text) if Decimal(text) else None
    return from_text(text, place)


def from_text(text: str, place: Place = NOWHERE) -> Money | None:
    """Return the price in a text for readers; None when there is none, it is zero, or nothing decides which it is."""
    return prices_in(text, place).price


def prices_in(text: str, place: Place = NOWHERE, before: str = "", after: str = "") -> Prices:
    """Return the price in a text for readers and the former one; ``before`` and ``after`` are the words around it."""
    amounts = amounts_in(text[:MAX_TEXT_LENGTH], place, before, after)
    price = _best(amounts, place)
    former = [amount for amount in amounts if amount.role is Role.FORMER]
    regular = next((amount for amount in former if price is None or amount.value > price.value), None)
    shown = price or regular
    return Prices(
        _money(price), _money(regular), price.role if price else Role.FORMER, shown is not None and shown.is_marked
    )


def currency_in(text: str) -> str | None:
    """Return the first sign, code or word of a currency that belongs to a number of a text."""
    text = text[:MAX_TEXT_LENGTH]
    return next((amount.sign for amount in _read(text)[1] if amount.sign), None) if _DIGIT.search(text) else None


def is_money(text: str) -> bool:
    """Return whether a number of a text has a currency or the dash of no cents."""
    text = text[:MAX_TEXT_LENGTH]
    return _DIGIT.search(text) is not None and any(amount.is_marked for amount in _read(text)[1])


def _best(amounts: Iterable[Amount], place: Place) -> Amount | None:
    for role in _PRICES:
        found = [amount for amount in amounts if amount.role is role]
        if found:
            return _one(found, place)
    return None


def _one(amounts: list[Amount], place: Place) -> Amount | None:
    """Return one of several prices: the low end of a range, the one in the currency of the place, the lowest."""
    first = amounts[0]
    if len(amounts) == 1 or amounts[1].ends_range:
        return first
    if first.sign is None:
        exact = [amount for amount in amounts if amount.has_decimals or amount.is_marked]
        return exact[0] if len({amount.value for amount in exact}) == 1 else None
    codes = [code_of(amount.sign, place) for amount in amounts]
    if len(set(codes)) > 1:
        return first
    return min(amounts, key=lambda amount: amount.value)


def _money(amount: Amount | None) -> Money | None:
    return None if amount is None else Money(amount.text, amount.sign)
