"""Choice of the blocks of a page that are content: by their chances, the kind of the page, and the place of copies."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.content.blocks import Blocks
from scrapy_ext.server.extraction.auto.content.choice import Candidate, choose, copies, in_consent_dialogs, most_likely
from scrapy_ext.server.extraction.auto.page import Page

SURE_OF_ARTICLE = {"article": 1.0}
NO_ARTICLE = {"service": 1.0}


def block(chance: float, of_article: float = 0.0, words: int = 50, *, is_copy: bool = False) -> Candidate:
    return Candidate(words, chance, of_article, is_copy)


def test_a_doubtful_block_is_taken_only_where_no_sure_one_is() -> None:
    assert most_likely([0.95, 0.3], [50, 50]) == [True, False]
    assert most_likely([0.3, 0.01], [50, 50]) == [True, False]
    assert most_likely([0.4, 0.4], [50, 50]) == [True, True]
    assert most_likely([], []) == []


def test_on_an_article_the_rules_for_articles_decide() -> None:
    blocks = [block(0.9, 1.0), block(0.8, 0.0), block(0.3, 1.0)]
    assert choose(blocks, SURE_OF_ARTICLE) == [True, False, True]
    assert choose(blocks, NO_ARTICLE) == [True, True, False]


def test_where_the_kind_is_uncertain_the_model_decides() -> None:
    blocks = [block(0.9, 1.0), block(0.8, 0.0), block(0.1, 1.0)]
    assert choose(blocks, {"article": 0.4, "listing": 0.6}) == [True, True, False]


def test_rules_for_articles_that_miss_most_of_the_text_do_not_decide() -> None:
    blocks = [block(0.9, 0.0, words=300), block(0.9, 0.0, words=300), block(0.1, 1.0, words=20)]
    assert choose(blocks, SURE_OF_ARTICLE) == [True, True, False]


def test_a_doubtful_block_of_a_forum_or_product_is_taken_less_easily() -> None:
    blocks = [block(0.9), block(0.45)]
    assert choose(blocks, {"documentation": 1.0}) == [True, True]
    assert choose(blocks, {"forum": 1.0}) == choose(blocks, {"product": 1.0}) == [True, False]


def test_a_copy_is_left_out_but_not_of_documentation_which_repeats_its_examples() -> None:
    blocks = [block(0.9), block(0.9, is_copy=True)]
    assert choose(blocks, {"forum": 1.0}) == [True, False]
    assert choose(blocks, {"documentation": 1.0}) == [True, True]


def test_a_dialog_about_cookies_is_never_taken_however_likely_its_sentences_are() -> None:
    blocks = [block(0.4), Candidate(400, 0.99, 1.0, is_consent=True)]
    assert choose(blocks, {"forum": 1.0}) == choose(blocks, SURE_OF_ARTICLE) == [True, False]
    assert choose(blocks[1:], {"forum": 1.0}) == [False]


def test_pages_without_blocks_have_no_content() -> None:
    assert choose([], SURE_OF_ARTICLE) == choose([], {}) == []


TEXT = "The ferry leaves the harbour at nine in the morning and comes back at noon."


def found(html: str) -> list[bool]:
    return copies(Blocks(Page(html, "https://a.example/b")))


@pytest.mark.parametrize(
    "html",
    [
        f"<p>{TEXT}</p><p>other words</p><p>{TEXT}</p>",
        f"<section class=a><p>{TEXT}</p></section><section class=b><div><p>{TEXT}</p></div></section>",
        f"<blockquote>{TEXT}</blockquote><p>other</p><blockquote>{TEXT}</blockquote>",
        f"<div class=js-selectToQuote><p>{TEXT}</p></div><div class=js-selectToQuote><p>{TEXT}</p></div>",
        f"<div class=mobile><p>{TEXT}</p><p>{TEXT}</p></div>",
    ],
)
def test_a_text_that_is_only_equal_to_another_is_no_copy(html: str) -> None:
    assert not any(found(html))


def test_a_quote_of_another_text_is_a_copy() -> None:
    assert found(f"<p>{TEXT}</p><blockquote><p>{TEXT}</p></blockquote>") == [False, True]
    assert found(f"<div class='bbcode quote'>{TEXT}</div><p>{TEXT}</p>") == [True, False]


def test_the_version_for_another_screen_is_a_copy() -> None:
    assert found(f"<div class='d-none d-md-block'><p>{TEXT}</p></div><div class=d-md-none><p>{TEXT}</p></div>") == [
        False,
        True,
    ]


def of_dialog(html: str, title: str = "Ferries") -> list[bool]:
    source = Page(f"<html><head><title>{title}</title></head><body>{html}</body></html>", "https://a.example/b")
    return in_consent_dialogs(source, Blocks(source))


def test_the_dialog_of_a_consent_service_is_known_by_its_names_with_all_that_is_in_it() -> None:
    dialog = "<div id=onetrust-consent-sdk><div><h2>Your privacy</h2><p>We store files.</p></div><p>More</p></div>"
    assert of_dialog(f"<p>{TEXT}</p>{dialog}<p>{TEXT}</p>") == [False, True, True, True, False]
    assert of_dialog(f"<div class='cookie-notice closed'>We store files.</div><p>{TEXT}</p>") == [True, False]


def test_what_names_a_dialog_around_the_page_itself_is_none() -> None:
    assert of_dialog(f"<div class=cookieyes-open><main><p>{TEXT}</p></main></div>") == [False]
    assert of_dialog(f"<div class=cookieyes-open><h1>Ferries</h1><p>{TEXT}</p></div>") == [False, False]
    assert of_dialog(f"<p class=cookie-recipe>{TEXT}</p>") == [False]


@pytest.mark.parametrize(
    "attributes",
    [
        "id=cmplz-document class='cmplz-document cookie-statement'",
        "class='ot-sdk-cookie-policy ot-sdk-container'",
        "class='plugin-cookie-notice plugin-body'",
        "class=trustarchitecture",
        "class='post tag-cookie-law category-cookie-law'",
        "class='page didomi-popup-open'",
        "class='page has-cookie-banner'",
    ],
)
def test_a_text_about_cookies_and_a_box_around_a_page_are_no_dialogs(attributes: str) -> None:
    html = f"<p>{TEXT}</p><div {attributes}><div class=ot-sdk-row><p>{TEXT}</p></div></div>"
    dialog = "<div id=onetrust-banner-sdk><div id=onetrust-policy>We store files.</div></div>"
    html = html if "policy" in attributes else html.replace("ot-sdk-row", "row")
    assert of_dialog(html + dialog) == [False, False, True]


def test_a_page_about_cookies_or_of_a_dialog_alone_has_no_dialog() -> None:
    html = f"<div class=cookie-notice><p>{TEXT}</p></div>"
    assert of_dialog(html) == [False]
    assert of_dialog(html + "<p>More</p>") == [True, False]
    assert of_dialog(html + "<p>More</p>", title="Cookie Notice: a plug-in") == [False, False]
    assert of_dialog(html + "<h1>Cookies</h1>") == [False, False]
