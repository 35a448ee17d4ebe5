"""Work on large pages: calls of functions are counted, as clocks depend on what else the machine does."""

import cProfile
import pstats
from collections.abc import Callable

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.fields.prices import _read

URL = "https://www.example.com/jobs/1"
HEAD = "<html lang=en><title>Cook | Acme</title><main><h1>Cook</h1>"
FORMS: dict[str, Callable[[int], str]] = {
    "ratings": lambda number: f"<p>4.5 ({number})</p>",
    "cards": lambda number: f"<div><h3><a href=/p/{number}>Job {number}</a></h3><b>4.5 ({number})</b></div>",
    "amounts": lambda number: f"<p>{number} EUR, or ${number}.50 per hour</p>",
    "sentences about salaries": lambda number: f"<p>The salary is ${number} or {number + 1} EUR. It is paid.</p>",
    "dates": lambda number: f"<p>Posted {number % 28 + 1} May 2026, number {number}</p>",
    "places": lambda number: f"<p>Town {number}, West, Germany</p>",
    "lines of facts": lambda number: f"<p>Acme {number} · Leeds · Full-time · £{number} a year · 1 May 2026</p>",
    "links": lambda number: f"<a href=/company/{number}>Acme {number}</a>",
    "headings": lambda number: f"<h2>Requirements {number}</h2><p>Acme {number}</p>",
}


def calls(html: str) -> int:
    profile = cProfile.Profile()
    profile.runcall(extract, "jobPosting", html, URL)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("head", [HEAD, "<html lang=en><title>Jobs</title>"])
@pytest.mark.parametrize("form", FORMS)
def test_ten_times_as_many_lines_take_about_ten_times_the_work(form: str, head: str) -> None:
    extract("jobPosting", HEAD, URL)
    small, large = (calls(head + "".join(map(FORMS[form], range(number)))) for number in (400, 4_000))
    assert large < 16 * small


@pytest.mark.parametrize("words", ["you cook for guests and Acme ", "we pay 12 EUR salary 3 May ", "Leeds - $5 · "])
def test_a_long_text_without_a_full_stop_takes_no_more_work_than_a_short_one(words: str) -> None:
    extract("jobPosting", HEAD, URL)
    small, large = (calls(f"{HEAD}<p>{words * (size // len(words))}</p>") for size in (100_000, 1_000_000))
    assert large < 2 * small


def test_amounts_are_read_in_few_lines_of_a_page_that_names_no_salary() -> None:
    before = _read.cache_info().misses
    extract("jobPosting", HEAD + "".join(f"<p>{number}.5 ({number})</p>" for number in range(12_000)), URL)
    assert _read.cache_info().misses - before < 500
