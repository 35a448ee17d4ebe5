"""Amounts and currencies in texts."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.fields.price_notation import code_of, place_of
from scrapy_ext.server.extraction.auto.fields.prices import currency_in, from_markup, from_text


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("$1,299.00", "1299.00", "$"),
        ("1.299,00 €", "1299.00", "€"),
        ("€ 12 99", "12.99", "€"),
        ("12 . 99 €", "12.99", "€"),
        ("EUR15.99", "15.99", "EUR"),
        ("1 599,00 kr", "1599.00", "kr"),
        ("Rs 635,000", "635000", "Rs"),
        ("R$ 1.759,99", "1759.99", "R$"),
        ("44 890 тг.", "44890", "тг."),
        ("12.50", "12.50", None),
        ("29:95 kr 19:95 kr", "19.95", "kr"),
        ("19:95 kr 2 st", "19.95", "kr"),
        # Times.
        ("kl. 19:30 kr 350", "350", "kr"),
        ("Öppet 10:00 kr 50", "50", "kr"),
        ("lørdag 19:30 kr 1 350,-", "1350", "kr"),
    ],
)
def test_amounts_are_read_with_the_currency_beside_them(text: str, amount: str, currency: str | None) -> None:
    money = from_text(text)
    assert money is not None
    assert (money.amount, money.currency_raw) == (amount, currency)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Subscribe & save 15% $23.80 One-time purchase $28.00", "28.00"),
        ("Medlemspris 79 kr Pris 99 kr", "99"),
        ("2,49 € Clubpreis 1,99 €", "2.49"),
        ("£2.10 £1.60 with Cornercard", "2.10"),
        ("Klubová cena 149 Kč Cena 169 Kč", "169"),
        ("通常 1,200円 会員価格 980円", "1200"),
        # Where there is no other, it is the price.
        ("Member price $19.00", "19.00"),
        ("Subscription £15.30", "15.30"),
    ],
)
def test_a_price_for_subscribers_and_members_is_the_price_only_where_there_is_no_other(text: str, amount: str) -> None:
    money = from_text(text)
    assert money is not None
    assert money.amount == amount


@pytest.mark.parametrize("text", ["", "on request", "0", "0.00 €", "free", "-"])
def test_no_amount_and_zero_are_no_price(text: str) -> None:
    assert from_text(text) is None


def test_a_point_in_markup_is_a_decimal_sign() -> None:
    money = from_markup("24.990")
    assert money is not None
    assert money.amount == "24.990"


def test_letters_of_a_word_are_no_currency() -> None:
    assert currency_in("park 5") is None
    assert currency_in("Zimmer 12") is None
    assert currency_in("5 krill") is None


@pytest.mark.parametrize(
    ("raw", "host", "code"),
    [
        ("EUR", "example.com", "EUR"),
        ("zł", "example.pl", "PLN"),
        ("$", "example.com.au", "AUD"),
        ("$", "example.com", "USD"),
        ("$", "example.de", None),
        ("kr", "example.com", None),
        ("coins", "example.com", None),
        (None, "example.com", None),
    ],
)
def test_codes_of_currencies_stand_for_themselves_and_words_for_one(
    raw: str | None, host: str, code: str | None
) -> None:
    assert code_of(raw, place_of(f"https://{host}")) == code
