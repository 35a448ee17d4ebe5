from __future__ import annotations

from scrapy_ext.client.extraction.redact import redacted, without_user


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
