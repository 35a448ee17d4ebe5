"""Salary of a job on its page: of a label, a line by the heading, or a sentence about it."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.fields.price_notation import place_on
from scrapy_ext.server.extraction.auto.fields.prices import currency_in
from scrapy_ext.server.extraction.auto.items import BaseSalary
from scrapy_ext.server.extraction.auto.jobs.places import parts_between_bars
from scrapy_ext.server.extraction.auto.jobs.terms import is_in_thousands, rate_in, salary_in, salary_in_thousands
from scrapy_ext.server.extraction.auto.page import Focus, Page
from scrapy_ext.server.extraction.auto.page.labelled import Labels
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest value of a label.
MAX_NAME_LENGTH: Final = 120
#: Greatest distance of a line from the heading, in elements.
NEAR: Final = 120
#: Lines that name the salary, from the first; more are a list of jobs.
MAX_SALARY_LINES: Final = 500
#: Longest line by the heading that is the salary.
MAX_SALARY_LINE: Final = 80

_VOCABULARY: Final = load_vocabulary("jobs")
_SALARY_WORD = _VOCABULARY.caseless("salary_word")
_NO_SALARY, _EXTRA_PAY = _VOCABULARY.patterns("no_salary", "extra_pay", flags=re.IGNORECASE)
#: A line that is a sentence.
_SENTENCE: Final = re.compile(r"[^\W\d_]{2}[^|•·]*[.!?。]")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+(?=[^\W\d_])")
_LISTS: Final = frozenset({"ul", "ol"})


class Salaries:
    """The places of a page that may state the salary of its job."""

    def __init__(self, page: Page, focus: Focus, labels: Labels) -> None:
        self._page = page
        self._focus = focus
        self._labels = labels
        self._place = place_on(page)

    def labelled(self) -> BaseSalary | None:
        """Return the salary of a label, which may name its time: ``Annual salary: £30,000``."""
        pair = self._labels.pair("salary", currency_in)
        found = salary_in(pair.value, self._place) if pair else None
        if pair and found and not found.rateType:
            found.rateType = rate_in(pair.label)
        return found

    def labelled_in_thousands(self) -> BaseSalary | None:
        value = self._labels.value("salary", lambda text: len(text) <= MAX_NAME_LENGTH and is_in_thousands(text))
        return salary_in_thousands(value, self._place)

    def of_lines(self) -> BaseSalary | None:
        """Return the salary of a line by the heading, with the time that it is for."""
        for node, text in self._focus.lines(NEAR, NEAR):
            # The items of a list are lines of their own.
            if node.tag in _LISTS or len(text) > MAX_SALARY_LINE or not rate_in(text) or not currency_in(text):
                continue
            # A bonus may be another part of the line.
            for part in dict.fromkeys((text, *parts_between_bars(text))):
                sign = currency_in(part) if rate_in(part) else None
                if sign is None or _is_extra(part, sign):
                    continue
                found = salary_in(part, self._place, in_sentence=_SENTENCE.fullmatch(part) is not None)
                if found is not None and not self._focus.elsewhere(node):
                    return found
        return None

    def of_sentences(self) -> BaseSalary | None:
        """Return the range of a sentence that names the salary; a lone amount may be a bonus or a budget."""
        # Few lines name the salary, and the words are found much faster than an amount.
        named = (line for line in self._page.lines if _SALARY_WORD.search(line[1]))
        for node, text in islice(named, MAX_SALARY_LINES):
            if not currency_in(text) or self._focus.elsewhere(node):
                continue
            for sentence in _SENTENCE_END.split(text):
                is_about = _SALARY_WORD.search(sentence)
                found = salary_in(sentence, self._place, in_sentence=True) if is_about else None
                if found is not None and found.valueMin != found.valueMax and found.valueMin and found.valueMax:
                    return found
        return None


def _is_extra(text: str, sign: str) -> bool:
    """Return whether the words of an amount say that it is no salary; what comes on top of one is named after it."""
    before, _, after = text.partition(sign)
    return bool(_NO_SALARY.search(before) or _NO_SALARY.search(_EXTRA_PAY.split(after, 1)[0]))
