"""Lines of facts by the heading of a job: dates, places and kinds of work between bars and dots."""

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

PROSE = (
    "Serve coffee to a busy crowd from six in the morning. Our shop in Leeds opens early, and the bench is yours. " * 2
)


def posting(lines: str, lang: str = "en-GB") -> dict[str, Any]:
    html = f"<html lang={lang}><title>Barista</title><main><h1>Barista</h1>{lines}<p>{PROSE}</p></main></html>"
    return extract("jobPosting", html, "https://www.example.com/job/12")


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("en-GB", "Posted 02/03/2026 · Closes 01/04/2026"),
        ("en-GB", "Posted 02/03/2026, closes 01/04/2026"),
        ("en-GB", "Posted 2 March 2026 — Apply by 1 April 2026"),
        ("en-GB", "<span>Posted 02/03/2026</span> <span>Closes 01/04/2026</span>"),
        ("en-US", "Denver, CO · Posted 03/02/2026 | Apply by 04/01/2026"),
        ("de", "Veröffentlicht am 02.03.2026 | Bewerbungsfrist 01.04.2026"),
        ("fr", "Publiée le 02/03/2026 • Date limite : 01/04/2026"),
        ("nl", "Geplaatst op 02-03-2026 – Reageren tot 01-04-2026"),
        ("es", "Publicado el 02/03/2026 | Fecha límite 01/04/2026"),
        ("cs", "Zveřejněno 02.03.2026 | Uzávěrka 01.04.2026"),
        ("ar", "تاريخ النشر 02/03/2026 · آخر موعد للتقديم 01/04/2026"),
    ],
)
def test_dates_on_one_line_are_read_by_the_label_before_each(lang: str, line: str) -> None:
    item = posting(f"<p>{line}</p>", lang)
    assert (item["datePublished"][:10], item["validThrough"][:10]) == ("2026-03-02", "2026-04-01")


def test_the_order_of_day_and_month_is_that_of_another_date_of_the_line_or_unknown() -> None:
    item = posting("<p>Posted 02/03/2026 · Closes 21/04/2026</p>", "en")
    assert (item["datePublished"][:10], item["validThrough"][:10]) == ("2026-03-02", "2026-04-21")
    item = posting("<p>Posted 02/03/2026 · Closes 01/04/2026</p>", "en")
    assert "datePublished" not in item
    assert "validThrough" not in item


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Leeds, England | Full-time | Posted: 02/03/2026", "Leeds, England"),
        ("Leeds · Posted 02/03/2026 · Closes 01/04/2026", "Leeds"),
        ("Location: Leeds | Posted: 02/03/2026 | Closes: 01/04/2026", "Leeds"),
        ("Marketing · Posted 02/03/2026 · Closes 01/04/2026", None),
    ],
)
def test_a_place_beside_dates_counts_by_its_words_its_label_or_the_text(line: str, place: str | None) -> None:
    assert (posting(f"<p>{line}</p>").get("jobLocation") or {}).get("raw") == place


def test_the_time_of_the_day_of_posting_is_that_of_the_element_with_it() -> None:
    item = posting("<p>Posted <time datetime=2026-03-02T08:15:00Z>2 March 2026</time></p>")
    assert item["datePublished"] == "2026-03-02T08:15:00Z"


def test_a_kind_of_work_is_no_place() -> None:
    item = posting("<p>Leeds, England</p><dl><dt>Workplace</dt><dd>Hybrid</dd></dl>")
    assert (item["jobLocation"]["raw"], item["remoteStatus"]) == ("Leeds, England", "hybrid")


def test_the_items_of_a_list_are_no_line_of_a_salary() -> None:
    benefits = "<ul><li>Four weeks per year off</li><li>$900 for boots</li></ul>"
    assert "baseSalary" not in posting(benefits)
    item = posting("<ul><li>$25 - $30 per hour</li><li>Casual</li></ul>")
    assert item["baseSalary"]["valueMax"] == "30"


def test_a_word_that_the_text_has_in_small_letters_is_no_place() -> None:
    more = "<p>You work in Engineering. You bring engineering skills.</p>"
    html = f"<html lang=en><title>Cook</title><h1>Cook</h1><p>Engineering · Posted 02/03/2026</p><p>{PROSE}</p>{more}"
    assert "jobLocation" not in extract("jobPosting", html, "https://www.example.com/job/12")


@pytest.mark.parametrize(
    ("lang", "lines"),
    [
        ("en-GB", "<dl><dt>Start</dt><dd>1 June 2026</dd><dt>Apply before</dt><dd>15 May 2026</dd></dl>"),
        ("en-GB", "<dl><dt>Interviews</dt><dd>20 May 2026</dd></dl>"),
        ("en-GB", "<p>Start date: 1 June 2026</p><p>Interviews on 20 May 2026</p>"),
        ("en-GB", "<p>Starts <time datetime=2026-06-01>1 June 2026</time></p>"),
        (
            "en-GB",
            "<ul><li><span>Start</span><span>1 June 2026</span></li><li><span>Pay</span><span>£20</span></li></ul>",
        ),
        ("de", "<dl><dt>Beginn</dt><dd>01.06.2026</dd><dt>Befristet bis</dt><dd>31.05.2028</dd></dl>"),
        ("de", "<p>Eintritt: 01.06.2026</p>"),
        (
            "fr",
            "<table><tr><th>Prise de fonction</th><td><time datetime=2026-06-01>1 juin 2026</time></td></tr></table>",
        ),
        ("nl", "<div><h4>Ingangsdatum</h4><p>1 juni 2026</p></div>"),
    ],
)
def test_a_date_behind_another_label_is_not_that_of_publication(lang: str, lines: str) -> None:
    assert "datePublished" not in posting(lines, lang)


@pytest.mark.parametrize(
    "lines",
    [
        "<p>1 May 2026</p>",
        "<p>Leeds · 1 May 2026</p>",
        "<p>Leeds, 1 May 2026</p>",
        "<p>Online since 1 May 2026</p>",
        "<p>Posted: 1 May 2026<br>Start: 1 June 2026</p>",
        "<p>Job posted: 1 May 2026</p><p>Starts on 1 June 2026</p>",
        "<dl><dt>Date</dt><dd>1 May 2026</dd><dt>Start</dt><dd>1 June 2026</dd></dl>",
        "<p><strong>Barista</strong> <time datetime=2026-05-01>1 May 2026</time></p>",
    ],
)
def test_a_date_without_a_label_or_behind_one_of_publication_is_that_of_publication(lines: str) -> None:
    assert posting(lines)["datePublished"][:10] == "2026-05-01"


def test_a_date_after_the_last_day_is_not_that_of_publication() -> None:
    item = posting("<p>20 May 2026</p><p>Closing date: 15 May 2026</p>")
    assert item["validThrough"][:10] == "2026-05-15"
    assert "datePublished" not in item
