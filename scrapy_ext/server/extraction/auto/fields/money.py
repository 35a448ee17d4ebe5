"""Amounts and currencies as shops write them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page import one_line
from scrapy_ext.server.extraction.auto.page.urls import host_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest text of a price that is read, in characters.
MAX_TEXT_LENGTH: Final = 200

_PLAIN_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,10})?")
_ISO_CODE = re.compile(r"[A-Z]{3}")
#: A whole amount and two raised digits, separated by markup alone: ``12 99``.
_RAISED_CENTS = re.compile(r"^(\D{0,8}\d{1,3}(?:[.,]\d{3})*)\s(\d{2})(?=\D{0,8}$)")
#: ``12 . 99``, from digits and sign in elements of their own.
_SPACED_SIGN = re.compile(r"(?<=\d)\s?([.,])\s?(?=\d)")

_VOCABULARY: Final = load_vocabulary("currencies")
#: Signs and words of one currency in every country.
_CURRENCIES: Final = {sign: code for code, signs in _VOCABULARY.groups("signs").items() for sign in signs}
#: Signs of several currencies: the currency by the top-level domain of the shop.
_SHARED: Final = {
    sign: dict(member.split() for member in members) for sign, members in _VOCABULARY.groups("shared").items()
}
_WRITTEN: Final = {*_CURRENCIES, *_SHARED, *_VOCABULARY.words("codes")}
_SIGNS: Final = "|".join(sorted(map(re.escape, _WRITTEN), key=len, reverse=True))
#: A sign before or after digits. Letters may not touch it on the far side: ``kr`` is no currency in ``park 5``.
_BESIDE_AMOUNT = re.compile(rf"(?<![^\W\d_])({_SIGNS})\s?[.:]?\s?\d|\d\s?({_SIGNS})(?![^\W\d_])")


class Money(NamedTuple):
    """An amount in the format of the schema (``"10500.99"``), with the currency as the page writes it, if any."""

    amount: str
    currency_raw: str | None = None

    @property
    def value(self) -> Decimal:
        """The amount as a number."""
        return Decimal(self.amount)


def from_markup(text: str | None) -> Money | None:
    """Return the amount of a property of structured data, where a lone point is always a decimal sign."""
    if not text:
        return None
    text = one_line(text.partition("\n")[0][:MAX_TEXT_LENGTH])
    if _PLAIN_NUMBER.fullmatch(text):
        return _money(text, None)
    return from_text(text)


def from_text(text: str) -> Money | None:
    """Return the first amount in a text for readers; None when there is none, or it is zero."""
    # Imported here, so that the server starts without it.
    from price_parser import Price

    text = _RAISED_CENTS.sub(r"\1.\2", _SPACED_SIGN.sub(r"\1", one_line(text[:MAX_TEXT_LENGTH])))
    try:
        amount = Price.fromstring(text).amount
    except (ValueError, ArithmeticError):
        return None
    return None if amount is None else _money(str(amount), currency_in(text))


def currency_in(text: str) -> str | None:
    """Return the sign, code or word of a currency next to an amount in a text."""
    match = _BESIDE_AMOUNT.search(text)
    return match.group(1) or match.group(2) if match else None


def _money(amount: str, currency: str | None) -> Money | None:
    try:
        valid = 0 < Decimal(amount) < Decimal("1e15")
    except InvalidOperation:
        return None
    return Money(amount, currency) if valid else None


def iso_code(raw: str | None, url: str) -> str | None:
    """Return the ISO 4217 code of a currency as written; None where several share the sign and the site has no country.

    ``$`` on a site of no country means US dollars.
    """
    if not raw:
        return None
    raw = raw.strip()
    country = host_of(url).rpartition(".")[2]
    shared = _SHARED.get(raw, {})
    if country in shared:
        return shared[country]
    if raw == "$":
        return "USD" if len(country) > 2 else None
    return _CURRENCIES.get(raw) or (raw if _ISO_CODE.fullmatch(raw) else None)
