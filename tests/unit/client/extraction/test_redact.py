from __future__ import annotations

import pytest

from scrapy_ext.api.masking import without_secrets, without_user
from scrapy_ext.client.extraction.errors import redacted


def test_credentials_are_hidden_wherever_they_stand():
    shown = redacted(
        {
            "url": "https://user:secret@books.example/",
            "customHttpRequestHeaders": [
                {"name": "Authorization", "value": "secret"},
                {"name": "X-Api-Key", "value": "secret"},
                {"name": "X-CSRF-Token", "value": "secret"},
                {"name": "Referer", "value": "shown"},
            ],
            "requestHeaders": {"authorization": "secret", "referer": "shown"},
            "requestCookies": [{"name": "id", "value": "secret", "domain": "books.example"}],
            "actions": [{"type": "type", "selector": {"value": "#password"}, "text": "secret"}],
            "httpRequestText": "user=a&password=secret",
            "httpRequestBody": "c2VjcmV0",
            "echoData": {"session": "secret", "nested": [{"password": "secret"}]},
        }
    )
    assert "secret" not in str(shown)
    assert "c2VjcmV0" not in str(shown)
    assert shown["url"] == "https://books.example/"
    assert shown["customHttpRequestHeaders"][3] == {"name": "Referer", "value": "shown"}
    assert shown["requestHeaders"]["referer"] == "shown"
    assert shown["httpRequestText"] == "(22 characters)"
    assert shown["actions"][0]["selector"] == {"value": "#password"}


def test_long_values_are_cut_and_the_request_is_not_changed():
    fields = {"url": "https://books.example/" + "x" * 9000, "actions": [{"type": "click"}] * 100, "product": True}
    shown = redacted(fields)
    assert len(str(shown)) < 2000
    assert shown["product"] is True
    assert len(fields["url"]) > 9000
    assert len(fields["actions"]) == 100


def test_the_password_of_a_proxy_is_left_out():
    assert "secret" not in without_user("http://me:secret@proxy.example:3128")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@shop.example/?page=2", "https://shop.example/?page=2"),
        ("https://shop.example/?api_key=secret&page=2", "https://shop.example/?api_key=(hidden)&page=2"),
        ("https://shop.example/a;jsessionid=secret?q=1", "https://shop.example/a;jsessionid=(hidden)"),
        ("https://shop.example/#access_token=secret&a=b", "https://shop.example/#access_token=(hidden)&a=b"),
        ("https://shop.example/?X-Amz%2DSignature=secret", "https://shop.example/?X-Amz%2DSignature=(hidden)"),
        ("https://shop.example/?author=a&keyword=b", "https://shop.example/?author=a&keyword=b"),
        ("no answer of 'wss://a:secret@b/?token=secret' yet", "no answer of 'wss://b/?token=(hidden)' yet"),
        ("token=shown where there is no URL", "token=shown where there is no URL"),
    ],
)
def test_secrets_of_urls_are_hidden_in_texts(text, shown):
    assert without_secrets(text) == shown
