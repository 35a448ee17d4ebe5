"""Readings of words follow them in parentheses, and are not in headings."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract, extract_more

TITLE = "<h1>駅の<ruby>港<rt>みなと</rt></ruby>の話</h1>"


def page(word: str) -> str:
    text = "<p>船は南側の岸壁に移動し、春から新しい桟橋の工事が始まる予定です。会議は火曜日の夜に開かれます。</p>"
    value = f"<p>この{word}は古く、毎週火曜日の夜に会議室で説明会が開かれますので、町の人は皆そこに集まります。</p>"
    return f"<html lang=ja><body><main><article>{TITLE}{text}{value}{text}</article></main></body></html>"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        pytest.param("<ruby>港<rt>みなと</rt></ruby>", "この港(みなと)は古く", id="without signs"),
        pytest.param("<ruby>港<rt>みなと</ruby>", "この港(みなと)は古く", id="end left out"),
        pytest.param("<ruby>港<rp>《</rp><rt>みなと</rt><rp>》</rp></ruby>", "この港《みなと》は古く", id="own signs"),
        pytest.param("<ruby>\n <rb>港</rb>\n <rt>みなと</rt>\n</ruby>", "この港(みなと)は古く", id="on lines"),
        pytest.param("<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>", "この東(とう)京(きょう)は古く", id="by sign"),
        pytest.param("<ruby>港<rt><span>み</span>なと</rt></ruby>", "この港(みなと)は古く", id="in parts"),
        pytest.param("<ruby>港<rt></rt></ruby>", "この港は古く", id="empty"),
    ],
)
def test_a_reading_follows_its_word(word: str, text: str) -> None:
    article = extract("article", page(word), "https://news.example/harbour")
    assert text in str(article["articleBody"])
    assert article["headline"] == "駅の港の話"
    written = extract_more(None, page(word), "https://news.example/harbour", markdown={}).markdown
    assert written is not None
    assert text in written
    assert "<br>" not in str(article["articleBodyHtml"])


def test_old_elements_of_text_begin_no_line() -> None:
    word = "<tt>a</tt> <big>b</big> <strike>c</strike> <acronym>d</acronym> <nobr>e</nobr>"
    written = str(extract("article", page(word), "https://news.example/harbour")["articleBodyHtml"])
    assert "<br>" not in written
    assert "この<code>a</code> b c d eは古く" in written
