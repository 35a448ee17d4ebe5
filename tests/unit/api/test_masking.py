"""Secrets are masked in what people read, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.masking import HIDDEN, Secrets, hidden, masked_values, without_secrets, without_user


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("through http://ann:wren@proxy.example:8080/", "through http://proxy.example:8080/"),
        ("<GET http://ann@shop.example/a?b=c>", "<GET http://shop.example/a?b=c>"),
        ("http://ann:wr@en@proxy.example/", "http://proxy.example/"),
        ("http://ann:wr/en@proxy.example/", "http://proxy.example/"),
        (
            "ftp://ann:wren%204@files.example/a.csv, s3://key:se/cret@bucket/b",
            "ftp://files.example/a.csv, s3://bucket/b",
        ),
        ("Write http://USER:PASSWORD@HOST:PORT.", "Write http://USER:PASSWORD@HOST:PORT."),
        ("'socks5://ann:wren@192.0.2.1:1080'", "'socks5://192.0.2.1:1080'"),
        ("proxy <ann:wren@192.0.2.1:3128> is dead", "proxy <192.0.2.1:3128> is dead"),
        ("http://shop.example:8080/a@b", "http://shop.example:8080/a@b"),
        ("https://social.example/@ann/1", "https://social.example/@ann/1"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("https://shop.example/?mail=ann@shop.example", "https://shop.example/?mail=ann@shop.example"),
        ("write to mailto:ann@shop.example:25", "write to mailto:ann@shop.example:25"),
        ("MAILTO:ann@shop.example:25, ann:wren@shop.example:25", "MAILTO:ann@shop.example:25, shop.example:25"),
        ("sip:ann@shop.example:5060", "sip:ann@shop.example:5060"),
        ("acct:wren@proxy.example:8080, im:wren@proxy.example:1", "proxy.example:8080, proxy.example:1"),
        ("2026-01-02 03:04:05 mail ann@shop.example: 5", "2026-01-02 03:04:05 mail ann@shop.example: 5"),
    ],
)
def test_users_are_removed_from_urls(text: str, shown: str) -> None:
    assert without_user(text) == shown


@pytest.mark.parametrize(
    "name",
    [
        "token", "access_token", "accessToken", "accesstoken", "csrftoken", "X-Amz-Security-Token", "api_key",
        "apiKey", "APIKey", "apikey", "key", "keyid", "Key-Pair-Id", "AWSAccessKeyId", "X-Amz-Signature",
        "X-Amz-Credential", "signature", "sig", "signed", "ticket", "SERVICE_TICKET", "PHPSESSID", "jsessionid",
        "session", "sid", "auth", "oauth2", "Authorization", "password", "user[password]", "pwd", "client_secret",
        "client_id", "clientId", "user%5Bpassword%5D", "token2", "jwt", "otp", "hub.verify_token",
    ],
)  # fmt: skip
def test_parameters_that_are_named_like_secrets_are_hidden(name: str) -> None:
    assert without_secrets(f"http://a.example/?b=c&{name}=x1") == f"http://a.example/?b=c&{name}={HIDDEN}"


@pytest.mark.parametrize(
    "name",
    [
        "designed", "assigned_to", "designedBy", "tickets", "ticketsPerDay", "accessories", "accessibility",
        "secretary", "turkey", "monkey", "keyword", "keyboard", "author", "authors", "sessions", "passenger",
        "compass", "shopping", "reside", "tokenize", "licensed", "signal", "accountant", "pinned", "residence",
    ],
)  # fmt: skip
def test_parameters_that_have_a_part_of_such_a_name_are_shown(name: str) -> None:
    assert without_secrets(f"http://a.example/?{name}=x1#{name}=y") == f"http://a.example/?{name}=x1#{name}=y"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "x"),
        ("SHOP_PASSWORD", 1),
        ("apikey", "x"),
        ("api_key", "x"),
        ("token", None),
        ("Authorization", "x"),
        ("proxies", ["http://ann:wren@p.example:1"]),
        ("http_proxy", "x"),
        ("options", {"login": {"pwd": "x"}}),
        ("start", "http://ann:wren@shop.example/"),
    ],
)
def test_arguments_that_are_named_like_secrets_are_hidden(name: str, value: Any) -> None:
    assert hidden({name: value, "shop": "a"}) == {name: HIDDEN, "shop": "a"}


def test_other_arguments_are_shown() -> None:
    given = {
        "keyword": "mug",
        "author": "Ann",
        "category": "a",
        "monkey": 1,
        "n": "10",
        "url": "https://a.example/?b=c",
    }
    assert hidden(given) == given


def test_values_of_secret_settings_are_masked_wherever_they_stand() -> None:
    secrets = Secrets(
        {
            "SHOP_PASSWORD": "heron 4/2",
            "SHOP_API_KEY": "a1b2c3d4e5f6g7h8",
            "FEEDS": {"a.csv": {"token": "swift-99"}},
            "REDIS_START_URLS_KEY": "news:start_urls",
            "PIN_TOKEN": "12",
            "COOKIES_ENABLED": False,
        }.items()
    )
    assert secrets.masked("{'SHOP_PASSWORD': 'heron 4/2'}") == f"{{'SHOP_PASSWORD': '{HIDDEN}'}}"
    assert secrets.masked("?pw=heron%204%2F2&key=a1b2c3d4e5f6g7h8") == f"?pw={HIDDEN}&key={HIDDEN}"
    assert secrets.masked("swift-99, swift-999") == f"{HIDDEN}, swift-999"
    assert secrets.masked("news:start_urls has 12") == "news:start_urls has 12"


def test_numbers_of_stats_stay_when_a_password_is_equal() -> None:
    secrets = Secrets([("password", "1234")])
    stats = {"count": 1234, "last": "1234", "by/http://ann:wren@p.example": [1234, {"a": "http://b@c.example"}]}
    assert masked_values(stats, secrets) == {
        "count": 1234,
        "last": HIDDEN,
        "by/http://p.example": [1234, {"a": "http://c.example"}],
    }


@pytest.mark.parametrize("piece", ["-", "key", "-key", "://a:b", "://a:", "a:", "@", "a@", "--token ", "key=", "://"])
def test_the_time_grows_with_the_length_of_a_text_alone(piece: str) -> None:
    # When it grew with the square, 10 000 characters took six seconds, on every page with the arguments of a job.
    text = piece * (400_000 // len(piece))
    hidden({"a": text})
    without_user(f"a@b {text}")
    without_secrets(f"a@b {text}")
