"""Amounts and currencies as shops write them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.text import one_line
from scrapy_ext.server.extraction.auto.page.urls import host_of

#: What is longer is no price; what is read of it, no more.
MAX_TEXT_LENGTH: Final = 200

_PLAIN_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,10})?")
_ISO_CODE = re.compile(r"[A-Z]{3}")
#: Digits that end in a whole part and two raised digits, set apart by markup alone: ``12 99``.
_RAISED_CENTS = re.compile(r"^(\D{0,8}\d{1,3}(?:[.,]\d{3})*)\s(\d{2})(?=\D{0,8}$)")
#: ``12 . 99``, as it comes of digits and sign in elements of their own.
_SPACED_SIGN = re.compile(r"(?<=\d)\s?([.,])\s?(?=\d)")

#: Signs and words that stand for one currency wherever they are.
_CURRENCIES: Final = {
    "€": "EUR", "euro": "EUR", "eur": "EUR", "£": "GBP", "R$": "BRL", "zł": "PLN", "Zł": "PLN", "zl": "PLN",
    "Kč": "CZK", "Ft": "HUF", "₽": "RUB", "руб": "RUB", "руб.": "RUB", "р.": "RUB", "RUR": "RUB", "₴": "UAH",
    "грн": "UAH", "грн.": "UAH", "₹": "INR", "₩": "KRW", "원": "KRW", "₪": "ILS", "₺": "TRY", "TL": "TRY",
    "₫": "VND", "đ": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₸": "KZT", "тг": "KZT", "тг.": "KZT",
    "тңг": "KZT", "₾": "GEL", "лв": "BGN", "лв.": "BGN", "lei": "RON", "Rp": "IDR", "RM": "MYR", "円": "JPY",
    "元": "CNY", "RMB": "CNY", "Fr.": "CHF", "SFr.": "CHF", "Kn": "HRK", "kn": "HRK", "б.р.": "BYN",
    "US$": "USD", "US $": "USD", "CA$": "CAD", "C$": "CAD", "AU$": "AUD", "A$": "AUD", "NZ$": "NZD", "HK$": "HKD",
    "NT$": "TWD", "S$": "SGD", "MX$": "MXN", "AR$": "ARS", "CL$": "CLP", "ر.س": "SAR", "ريال": "SAR",
    "د.إ": "AED", "درهم": "AED",
}  # fmt: skip

#: Signs that several countries share, by the top-level domain of the shop.
_SHARED: Final = {
    "$": {
        "us": "USD", "ca": "CAD", "au": "AUD", "nz": "NZD", "sg": "SGD", "hk": "HKD", "tw": "TWD", "mx": "MXN",
        "cl": "CLP", "ar": "ARS", "co": "COP", "uy": "UYU",
    },
    "¥": {"jp": "JPY", "cn": "CNY"},
    "￥": {"jp": "JPY", "cn": "CNY"},
    "kr": {"se": "SEK", "no": "NOK", "dk": "DKK", "is": "ISK"},
    "Rs": {"pk": "PKR", "in": "INR", "lk": "LKR", "np": "NPR"},
    "₨": {"pk": "PKR", "in": "INR", "lk": "LKR", "np": "NPR"},
    "р.": {"by": "BYN"},
}  # fmt: skip

_CODES: Final = (
    "AED", "ARS", "AUD", "BDT", "BGN", "BHD", "BRL", "BYN", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP",
    "EUR", "GBP", "GEL", "HKD", "HRK", "HUF", "IDR", "ILS", "INR", "ISK", "JOD", "JPY", "KES", "KRW", "KWD", "KZT",
    "LKR", "MAD", "MXN", "MYR", "NGN", "NOK", "NPR", "NZD", "OMR", "PEN", "PHP", "PKR", "PLN", "QAR", "RON", "RSD",
    "RUB", "SAR", "SEK", "SGD", "THB", "TND", "TRY", "TWD", "UAH", "USD", "UYU", "VND", "ZAR",
)  # fmt: skip
_SIGNS: Final = "|".join(sorted(map(re.escape, {*_CURRENCIES, *_SHARED, *_CODES}), key=len, reverse=True))
#: A sign before or after digits. Letters may not touch it on the far side: ``kr`` is no currency in ``park 5``.
_BESIDE_AMOUNT = re.compile(rf"(?<![^\W\d_])({_SIGNS})\s?[.:]?\s?\d|\d\s?({_SIGNS})(?![^\W\d_])")


class Money(NamedTuple):
    """An amount as the schema writes it (``"10500.99"``), with the currency as the page has it, if any."""

    amount: str
    currency_raw: str | None = None

    @property
    def value(self) -> Decimal:
        """The amount as a number."""
        return Decimal(self.amount)


def from_markup(text: str | None) -> Money | None:
    """The amount of a property of markup, where a lone point is always a decimal sign."""
    if not text:
        return None
    text = one_line(text.partition("\n")[0][:MAX_TEXT_LENGTH])
    if _PLAIN_NUMBER.fullmatch(text):
        return _money(text, None)
    return from_text(text)


def from_text(text: str) -> Money | None:
    """The first amount in a text that people read; None when there is none, or it is nought."""
    # Imported here, as every library of extraction: the server starts without them.
    from price_parser import Price

    text = _RAISED_CENTS.sub(r"\1.\2", _SPACED_SIGN.sub(r"\1", one_line(text[:MAX_TEXT_LENGTH])))
    try:
        amount = Price.fromstring(text).amount
    except (ValueError, ArithmeticError):
        return None
    return None if amount is None else _money(str(amount), currency_in(text))


def currency_in(text: str) -> str | None:
    """The sign, code or word of a currency that stands next to an amount in a text."""
    match = _BESIDE_AMOUNT.search(text)
    return match.group(1) or match.group(2) if match else None


def _money(amount: str, currency: str | None) -> Money | None:
    try:
        valid = 0 < Decimal(amount) < Decimal("1e15")
    except InvalidOperation:
        return None
    return Money(amount, currency) if valid else None


def iso_code(raw: str | None, url: str) -> str | None:
    """The ISO 4217 code of a currency as written; None where the sign is shared and the site does not tell.

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
