"""The text of a page by HTTP is that of the service's Chromium, whatever its encoding and wherever that is declared."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from scrapy_ext.server.extraction.browser import find_browser
from scrapy_ext.server.extraction.browser.launcher import DEFAULT_ENCODING
from scrapy_ext.server.extraction.encodings import text_of
from tests.support.handwritten_site import Target

pytestmark = pytest.mark.long

TEXTS = {
    "utf-8": "Der Preis für Ihre größere Tür beträgt 49,90 €",
    "windows-1252": "Das schöne Wetter lädt viele Gäste in die größeren Gärten über der Brücke ein",
    "iso-8859-2": "Największa księgarnia została otwarta w środę, świeżą kawę można kupić",
    "windows-1250": "Největší knihkupectví bylo otevřeno ve středu, čerstvou kávu lze koupit",
    "windows-1251": "Новая библиотека открылась на главной площади города",
    "koi8-r": "Новая библиотека открылась на главной площади города",
    "koi8-u": "Нова бібліотека відкрилася на головній площі міста, її бачили всі",
    "iso-8859-5": "Новая библиотека открылась на главной площади города",
    "iso-8859-7": "Η νέα βιβλιοθήκη άνοιξε στην κεντρική πλατεία της πόλης",
    "windows-1254": "Şehrin merkezinde yeni bir kütüphane açıldı, giriş ücretsizdir",
    "windows-1255": "הספרייה החדשה נפתחה בכיכר המרכזית של העיר",
    "windows-1256": "افتتحت المكتبة الجديدة في الساحة الرئيسية للمدينة",
    "cp874": "ห้องสมุดแห่งใหม่เปิดที่จัตุรัสกลางเมือง",
    "shift_jis": "新しい図書館が町の中央広場に開館しました",
    "euc_jp": "新しい図書館が町の中央広場に開館しました",
    "gb18030": "新图书馆在城市中心广场开放，欢迎大家参加",
    "big5": "新圖書館在城市中心廣場開放，歡迎大家參加",
    "euc_kr": "새 도서관이 시내 중앙 광장에 문을 열었습니다",
}
LATIN, CYRILLIC = "größer", "Новая библиотека"
#: Bytes before the text, the type, and the text's own encoding.
DECLARED = {
    "header": ("", "text/html; charset=windows-1251", "cp1251"),
    "header in quotes": ("", 'text/html; charset="windows-1251"', "cp1251"),
    "header in single quotes": ("", "text/html; charset='windows-1251'", "cp1251"),
    "header with spaces": ("", "text/html;  Charset = windows-1251", "cp1251"),
    "unknown label in the header": ("<meta charset=windows-1251>", "text/html; charset=nothing", "cp1251"),
    "header over meta": ("<meta charset=utf-8>", "text/html; charset=windows-1251", "cp1251"),
    "x-user-defined in the header": ("", "text/html; charset=x-user-defined", "cp1251"),
    "mark over header": ("\ufeff", "text/html; charset=windows-1251", "utf-8"),
    "UTF-16 with a mark": ("\ufeff", "text/html; charset=windows-1251", "utf-16-le"),
    "XML declaration": ('<?xml version="1.0" encoding="windows-1251"?>', "text/html", "cp1251"),
    "meta": ("<meta charset=windows-1251>", "text/html", "cp1251"),
    "meta in quotes": ("<meta charset=' windows-1251 '>", "text/html", "cp1251"),
    "http-equiv": ("<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>", "text/html", "cp1251"),
    "content first": ("<meta content='a; charset = windows-1251' http-equiv=content-type>", "text/html", "cp1251"),
    "without http-equiv": ("<meta content='text/html; charset=koi8-r'>", "text/html", "cp1251"),
    "unknown label first": ("<meta charset=nothing><meta charset=windows-1251>", "text/html", "cp1251"),
    "UTF-16 in meta": ("<meta charset=utf-16>", "text/html", "utf-8"),
    "x-user-defined in meta": ("<meta charset=x-user-defined>", "text/html", "cp1251"),
    "ISO-8859-1 in meta": ("<meta charset=iso-8859-1>", "text/html", "cp1251"),
    "comment": ("<!-- <meta charset=koi8-r> --><meta charset=windows-1251>", "text/html", "cp1251"),
    "script": ("<script>'<meta charset=koi8-r>'</script><meta charset=windows-1251>", "text/html", "cp1251"),
    "style": ("<style>/*<meta charset=koi8-r>*/</style><meta charset=windows-1251>", "text/html", "cp1251"),
    "title": ("<title><meta charset=koi8-r></title><meta charset=windows-1251>", "text/html", "cp1251"),
    "noscript": ("<noscript><meta charset=windows-1251></noscript>", "text/html", "cp1251"),
    "attribute": ("<link title='<meta charset=koi8-r>'><meta charset=windows-1251>", "text/html", "cp1251"),
    "far in the head": (f"<link title='{'a' * 3000}'><meta charset=windows-1251>", "text/html", "cp1251"),
    "soon in the body": ("<body><b></b><meta charset=koi8-r>", "text/html", "cp1251"),
    "far in the body": (f"<body><b title='{'a' * 3000}'></b><meta charset=koi8-r>", "text/html", "cp1251"),
}


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as driver:
        path = find_browser(None, os.environ, Path(driver.chromium.executable_path))
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", DEFAULT_ENCODING])
        yield browser.new_page()
        browser.close()


@pytest.mark.parametrize("codec", TEXTS)
def test_text_without_a_declaration_is_detected_as_in_chromium(page: Page, target: Target, codec: str) -> None:
    for times in (1, 10):
        body = b"<p>" + b" ".join([TEXTS[codec].encode(codec)] * times) + b"</p>"
        assert text_of("text/html", body) == body.decode(codec)
        assert _shown(page, target, "text/html", body) == " ".join([TEXTS[codec]] * times)


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_counts_as_in_chromium(page: Page, target: Target, name: str) -> None:
    head, content_type, codec = DECLARED[name]
    body = f"{head}<p>{CYRILLIC if name != 'UTF-16 in meta' else LATIN}</p>".encode(codec)
    found = re.search("<p>(.*?)</p>", text_of(content_type, body))
    assert found is not None
    assert found[1] == _shown(page, target, content_type, body)


def _shown(page: Page, target: Target, content_type: str, body: bytes) -> str | None:
    page.goto(target.page("/text", body, Content_Type=content_type))
    return page.text_content("p")
