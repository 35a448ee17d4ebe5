from __future__ import annotations

import pytest

from scrapy_ext.client.platform import PlatformUrls
from scrapy_ext.client.platform.calls import path, query


def test_one_address_can_serve_everything():
    urls = PlatformUrls.single(" http://127.0.0.1:8700/ ")
    assert urls.app == urls.storage == urls.jobq == "http://127.0.0.1:8700"


def test_addresses_may_have_a_path():
    assert PlatformUrls.single("https://example.com/platform/").storage == "https://example.com/platform"


@pytest.mark.parametrize(
    "url", ["", "example.com", "ftp://example.com", "http://", "http://[::1", "http://h:99999", "https://h/?a=b"]
)
def test_an_address_that_is_none_is_refused_by_the_name_of_its_setting(url):
    with pytest.raises(ValueError, match=r"PLATFORM_URL .*Write one such as"):
        PlatformUrls.single(url)
    with pytest.raises(ValueError, match="PLATFORM_JOBQ_URL"):
        PlatformUrls("https://a.example", "https://b.example", url)


def test_credentials_in_an_address_are_refused_and_not_shown():
    with pytest.raises(ValueError, match="PLATFORM_URL must not hold credentials") as caught:
        PlatformUrls.single("https://secret@example.com")
    assert "secret" not in str(caught.value)


def test_segments_of_a_path_cannot_leave_their_place():
    assert path("items", 1, "a/b?c#d é") == "/items/1/a%2Fb%3Fc%23d%20%C3%A9"


def test_parameters_are_repeated_left_out_and_encoded():
    parameters = (("key", ["a b", "c&d"]), ("none", None), ("off", False), ("all", True), ("n", 0), ("empty", ""))
    assert query(parameters) == "key=a+b&key=c%26d&all=1&n=0&empty="
