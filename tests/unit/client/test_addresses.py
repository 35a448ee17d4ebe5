from __future__ import annotations

import pytest

from scrapy_ext.client.http import proxy_of

PROXY = "http://proxy.example:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("http_proxy", PROXY)
    monkeypatch.setenv("https_proxy", PROXY)
    monkeypatch.setenv("no_proxy", "internal.example")


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1:8700", "http://[::1]:8", "http://127.1.2.3"])
def test_no_proxy_stands_before_this_machine(url):
    assert proxy_of(url) is None


def test_other_machines_are_reached_through_the_proxy_of_the_environment():
    assert proxy_of("https://storage.example.com/v1") == PROXY
    assert proxy_of("http://internal.example:8700") is None


def test_a_proxy_of_another_kind_is_not_used(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://proxy.example:1080")
    assert proxy_of("https://storage.example.com") is None
