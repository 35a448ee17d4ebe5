"""Choice of the blocks of a page that are content, by their chances and the kind of the page."""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.content.choice import Candidate, choose, most_likely

SURE_OF_ARTICLE = {"article": 1.0}
NO_ARTICLE = {"service": 1.0}


def block(chance: float, of_article: float = 0.0, text: str = "text", words: int = 50) -> Candidate:
    return Candidate(text, words, chance, of_article, is_code=False)


def test_a_doubtful_block_is_taken_only_where_no_sure_one_is() -> None:
    assert most_likely([0.95, 0.3], [50, 50]) == [True, False]
    assert most_likely([0.3, 0.01], [50, 50]) == [True, False]
    assert most_likely([0.4, 0.4], [50, 50]) == [True, True]
    assert most_likely([], []) == []


def test_on_an_article_the_rules_for_articles_decide() -> None:
    blocks = [block(0.9, 1.0, "a"), block(0.8, 0.0, "b"), block(0.3, 1.0, "c")]
    assert choose(blocks, SURE_OF_ARTICLE) == [True, False, True]
    assert choose(blocks, NO_ARTICLE) == [True, True, False]


def test_where_the_kind_is_uncertain_the_model_decides() -> None:
    blocks = [block(0.9, 1.0, "a"), block(0.8, 0.0, "b"), block(0.1, 1.0, "c")]
    assert choose(blocks, {"article": 0.4, "listing": 0.6}) == [True, True, False]


def test_rules_for_articles_that_miss_most_of_the_text_do_not_decide() -> None:
    blocks = [block(0.9, 0.0, "a", words=300), block(0.9, 0.0, "b", words=300), block(0.1, 1.0, "c", words=20)]
    assert choose(blocks, SURE_OF_ARTICLE) == [True, True, False]


def test_a_doubtful_block_of_a_forum_or_product_is_taken_less_easily() -> None:
    blocks = [block(0.9, text="a"), block(0.45, text="b")]
    assert choose(blocks, {"documentation": 1.0}) == [True, True]
    assert choose(blocks, {"forum": 1.0}) == choose(blocks, {"product": 1.0}) == [True, False]


def test_a_text_that_the_page_repeats_is_taken_once() -> None:
    post, label = block(0.9, text="a post that is quoted"), block(0.9, text="Size", words=1)
    assert choose([post, label, post, label], {"forum": 1.0}) == [True, True, False, True]


def test_repeated_examples_of_documentation_and_code_stay() -> None:
    example = block(0.9, text="an example")
    code = example._replace(is_code=True)
    assert choose([example, example], {"documentation": 1.0}) == [True, True]
    assert choose([code, code], {"forum": 1.0}) == [True, True]


def test_pages_without_blocks_have_no_content() -> None:
    assert choose([], SURE_OF_ARTICLE) == choose([], {}) == []
