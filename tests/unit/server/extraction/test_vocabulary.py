"""The form of the vocabularies is checked, and faults name the file and the entry."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from scrapy_ext.server.extraction import vocabulary as package
from scrapy_ext.server.extraction.vocabulary import Vocabulary, VocabularyError, load_vocabulary

NAMES = sorted(path.name.removesuffix(".toml") for path in files(package).iterdir() if path.name.endswith(".toml"))


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_every_file_can_be_used(name):
    source = files(package).joinpath(f"{name}.toml").read_text("utf-8")
    entries = re.findall(r"^(?:\[(\w+)\]|(\w+) = )", source, re.MULTILINE)
    assert entries
    words, in_table = load_vocabulary(name), False
    for table, entry in entries:
        in_table = in_table or bool(table)
        if table:
            assert words.table(table) or words.groups(table)
        elif not in_table:
            assert words.pattern(entry).pattern


def test_a_list_is_words_or_alternatives():
    words = Vocabulary("shops.toml", "size = ['size', 'größe', 'taille|talla']")
    assert words.words("size") == ("size", "größe", "taille|talla")
    assert words.pattern("size", re.IGNORECASE).fullmatch("Talla")


def test_line_breaks_of_a_text_mean_nothing_and_names_in_braces_are_other_entries():
    words = Vocabulary("shops.toml", "unit = ['kg', 'lb']\nweight = '''\n  \\d{1,3} (?:\n  {unit})'''")
    assert words.text("weight") == r"\d{1,3} (?:kg|lb)"
    assert words.pattern("weight").fullmatch("12 lb")


def test_tables_keep_the_order_of_the_file():
    words = Vocabulary("shops.toml", "[rates]\nmonth = ['month', 'mois']\nday = 'days?'\n")
    assert list(words.table("rates").items()) == [("month", "month|mois"), ("day", "days?")]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("size = 3", "'size' is neither a text nor a list of texts"),
        ("size = []", "'size' is neither"),
        ("size = ['a', '']", "'size' is neither"),
        ("[rates]\nday = 1", "'day' is neither"),
        ("size = ['a', 'b', 'a']", "'size' names a member twice"),
    ],
)
def test_a_faulty_file_is_refused_by_name(source, fault):
    with pytest.raises(VocabularyError, match=f"shops.toml: {fault}"):
        Vocabulary("shops.toml", source)


@pytest.mark.parametrize(
    ("use", "fault"),
    [
        (lambda words: words.pattern("open"), "'open' is not a regular expression"),
        (lambda words: words.text("missing"), "there is no 'missing'"),
        (lambda words: words.text("lost"), "there is no 'nowhere'"),
        (lambda words: words.words("open"), "'open' is not a list"),
        (lambda words: words.table("open"), "'open' is not a table"),
    ],
)
def test_a_wrong_use_is_reported_with_the_name(use, fault):
    words = Vocabulary("shops.toml", "open = '(a'\nlost = '{nowhere}'")
    with pytest.raises(VocabularyError, match=f"shops.toml: {fault}"):
        use(words)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("sold out|no longer (?:sold|made)", "Now SOLD Out"),
        (r"\bEAN\b|\w+\W\D", "my Ean"),
        (r"(?P<first>[A-C]x)|\S{3}\B", "bX"),
        ("sat\u0131lm\u0131\u015f", "SATILMI\u015e"),
        ("tuk\u0131", "TUKI"),
        ("\u212aelvin|\u017fold|\u0130n", "kelvin Sold In"),
        ("t\u00fckendi", "T\u00dcKEND\u0130"),
        ("ausverkauft", "nichts"),
    ],
)
@pytest.mark.parametrize("method", ["search", "fullmatch"])
def test_a_pattern_without_regard_to_case_finds_what_the_library_finds(source, text, method):
    expected = getattr(re.compile(source, re.IGNORECASE), method)(text)
    found = getattr(Vocabulary("shops.toml", f"phrase = ['{source}']").caseless("phrase"), method)(text)
    assert (found and found.span(), found and found.group()) == (
        expected and expected.span(),
        expected and expected.group(),
    )


@pytest.mark.parametrize(
    ("name", "entry"), [("products", "out_of_stock"), ("products", "in_stock"), ("products", "order")]
)
def test_every_phrase_is_found_in_any_case(name, entry):
    words = load_vocabulary(name)
    pattern = words.caseless(entry)
    phrases = [phrase for phrase in re.split(r"\|", words.text(entry)) if re.fullmatch(r"[\w ]+", phrase)]
    known = [phrase for phrase in phrases if words.pattern(entry).search(phrase)]
    assert len(known) > 15
    for phrase in phrases:
        for text in (phrase, phrase.upper(), phrase.capitalize(), f"So {phrase.title()}!"):
            assert (pattern.search(text) is None) == (words.pattern(entry, re.IGNORECASE).search(text) is None)
    assert all(pattern.search(f"It is {phrase.upper()}!") for phrase in known if phrase.isascii())


@pytest.mark.parametrize("source", [r"\\x4bm", r"\\u212aelvin", "[A-z]+"])
def test_a_pattern_without_a_form_in_lower_case_is_refused(source):
    words = Vocabulary("shops.toml", f'phrase = ["{source}"]')
    with pytest.raises(VocabularyError, match="has no form in lower case"):
        words.caseless("phrase")
