"""Lines of facts by the heading of a job: dates, places and kinds of work between bars and dots."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.jobs.terms import remote_status

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


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("en-GB", "Grind House Ltd · 12 May 2026 · Leeds"),
        ("de", "Gasthof Krone GmbH | 12.05.2026 | Ulm"),
        ("fr", "Chez Lucette SARL · 12 mai 2026 · Lyon"),
        ("en-GB", "Ref 2026/114 · 12 May 2026 · Leeds"),
    ],
)
def test_the_only_date_between_other_facts_is_that_of_publication(lang: str, line: str) -> None:
    assert posting(f"<p>{line}</p>", lang)["datePublished"][:10] == "2026-05-12"


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("en-GB", "<p>Grind House Ltd · 12 May 2131 · Leeds</p>"),
        ("en-GB", "<p><time datetime=2131-05-12>12 May 2131</time></p>"),
        ("en-GB", "<p>Leeds · 1 May 2026 · 30 June 2026</p>"),
        ("en-GB", "<p>1 May 2026 – 30 June 2026</p>"),
        ("en-GB", "<p><time datetime=2026-05-01>1 May</time> – <time datetime=2026-06-30>30 June 2026</time></p>"),
        ("de", "<p><span>01.05.2026</span> <span>30.06.2026</span></p>"),
        ("de", "<p>Ulm · 01.05.2026 bis 30.06.2026</p>"),
        ("de", "<p>Gasthof Krone · ab 12.05.2026 · Ulm</p>"),
        ("fr", "<p>CDD du 1 mai 2026 au 30 juin 2026</p>"),
        ("nl", "<p>1 mei 2026 t/m 30 juni 2026</p>"),
        ("es", "<p>1 de mayo de 2026 al 30 de junio de 2026</p>"),
    ],
)
def test_a_day_to_come_and_a_period_are_not_the_publication(lang: str, line: str) -> None:
    assert "datePublished" not in posting(line, lang)


@pytest.mark.parametrize("line", ["Leeds · Posted 3 days ago", "Grind House | Leeds | 3 days ago"])
def test_the_age_of_a_job_may_be_a_part_of_a_line(line: str) -> None:
    day = datetime.now(timezone.utc).date() - timedelta(days=3)
    assert posting(f"<p>{line}</p>")["datePublished"][:10] == day.isoformat()


@pytest.mark.parametrize(
    "line", ["Leeds | 40 hours", "Leeds | 5 days", "<span>38 Stunden</span>", "Leeds | 30 days holiday"]
)
def test_hours_of_work_and_days_of_leave_are_no_age_of_a_job(line: str) -> None:
    assert "datePublished" not in posting(f"<p>{line}</p>")


@pytest.mark.parametrize(
    ("lang", "line", "kind"),
    [
        ("en-GB", "Grind House | Leeds | Full-time", "Full-time"),
        ("de", "Gasthof am See · Lindau · Vollzeit", "Full-time"),
        ("fr", "Direction des achats | Lyon | CDI", "Permanent"),
        ("en-GB", "Contract chefs | Part of the team", None),
    ],
)
def test_the_type_of_employment_may_be_a_part_of_a_line(lang: str, line: str, kind: str | None) -> None:
    assert posting(f"<p>{line}</p>", lang).get("employmentType") == kind


@pytest.mark.parametrize(
    ("lang", "text", "raw"),
    [
        ("en-GB", "Leeds · Full-time · £30,000 - £35,000 a year", "£30,000 - £35,000 a year"),
        ("en-GB", "Leeds – £30,000–£35,000 a year – Full-time", "£30,000–£35,000 a year"),
        ("en-GB", "Leeds | Up to £30,000 per annum | Full-time", "Up to £30,000 per annum"),
        ("en-GB", "£30,000 a year | Bonus £2,000", "£30,000 a year"),
        ("en-GB", "Salary: £30,000 to £35,000 per annum", "£30,000 to £35,000 per annum"),
        ("en-GB", "£30,000 per annum plus bonus", "£30,000 per annum plus bonus"),
        ("de", "Ulm · ab 3.200 € brutto pro Monat · Vollzeit", "ab 3.200 € brutto pro Monat"),
        ("es", "Sevilla | 1.200 € - 1.400 € al mes | Jornada completa", "1.200 € - 1.400 € al mes"),
        ("nl", "Utrecht | Salaris: € 2.500 - € 3.000 per maand | Fulltime", "€ 2.500 - € 3.000 per maand"),
        ("pl", "Gdynia | 6 000 – 7 500 zł brutto / mies.", "6 000 – 7 500 zł brutto / mies."),
        (
            "en-US",
            "The salary range for this role is $60,000 - $75,000 per year, depending on skill.",
            "$60,000 - $75,000 per year",
        ),
        ("en-US", "The hourly wage is $18.50 to $21.00 for this job.", "hourly wage is $18.50 to $21.00"),
        (
            "fr",
            "Le salaire est compris entre 24 000 € et 28 000 € par an selon l'expérience.",
            "24 000 € et 28 000 € par an",
        ),
    ],
)
def test_the_raw_salary_is_its_part_of_a_line_or_sentence(lang: str, text: str, raw: str) -> None:
    assert posting(f"<p>{text}</p>", lang)["baseSalary"]["raw"] == raw


@pytest.mark.parametrize(
    ("place", "status"),
    [
        ("Berlin or remote", None),
        ("Remote or Berlin", None),
        ("New York or San Francisco or fully remote", None),
        ("Berlin oder Remote", None),
        ("Paris ou télétravail", None),
        ("Madrid o remoto", None),
        ("Utrecht of remote", None),
        ("On-site or remote", None),
        ("Berlin / Remote", None),
        ("Leeds; Remote", None),
        ("Remote possible", None),
        ("Homeoffice möglich", None),
        ("Télétravail possible", None),
        ("Thuiswerken mogelijk", None),
        ("Remote", "remote"),
        ("Berlin, Remote", "remote"),
        ("Remote, UK or Ireland", "remote"),
        ("Remote (Berlin or Munich)", "remote"),
        ("Remote in Germany or France", "remote"),
        ("Remote or work from home", "remote"),
        ("Remote or anywhere", "remote"),
        ("Germany / Remote", "remote"),
        ("Remote; United States", "remote"),
        ("Remote/Home Office", "remote"),
        ("Remote or hybrid", "hybrid"),
        ("Partially remote", "hybrid"),
    ],
)
def test_remote_work_beside_another_place_is_a_choice(place: str, status: str | None) -> None:
    item = posting(f"<dl><dt>Location</dt><dd>{place}</dd></dl>")
    assert item.get("remoteStatus") == status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Remote working", "remote"),
        ("Hybrid working", "hybrid"),
        ("Hybrid or remote", "hybrid"),
        ("Home Office Furniture", None),
        ("Remote jobs", None),
        ("Remote or relocate", None),
        ("Office or remote", None),
    ],
)
def test_words_for_work_beside_a_kind_of_it_are_no_other_subject(text: str, status: str | None) -> None:
    assert remote_status(text, whole=True) == status
    assert posting(f"<p>Leeds | {text} | Full-time</p>").get("remoteStatus") == status


@pytest.mark.parametrize("name", ["The Regular", "The Temp", "La Stage"])
def test_a_name_with_an_article_is_no_type_of_employment(name: str) -> None:
    assert posting(f"<p>{name} · Leeds · Full-time</p>")["employmentType"] == "Full-time"
    assert posting(f"<ul><li>{name}</li><li>Leeds</li><li>Full-time</li></ul>")["employmentType"] == "Full-time"
    assert "employmentType" not in posting(f"<ul><li>{name}</li><li>Leeds</li></ul>")


def test_a_button_in_the_heading_is_no_part_of_the_title() -> None:
    html = f"<html><title>Barista</title><main><h1>Barista <button>Save job</button></h1><p>{PROSE}</p></main>"
    assert extract("jobPosting", html, "https://www.example.com/job/12")["jobTitle"] == "Barista"


@pytest.mark.parametrize(
    ("lang", "line", "kind"),
    [
        ("fr", "Stage", "Internship"),
        ("nl", "Stage", "Internship"),
        ("it", "Stage", "Internship"),
        ("en", "Stage", None),
        ("de", "Stage", None),
        ("en", "Leeds | Stage | Full-time", "Full-time"),
    ],
)
def test_stage_is_an_internship_in_some_languages_alone(lang: str, line: str, kind: str | None) -> None:
    page = f"<html lang={lang}><title>Welder</title><h1>Welder</h1><p>{line}</p><p>You weld the parts of housings.</p>"
    assert extract("jobPosting", page, "https://www.example.com/job/12").get("employmentType") == kind


def test_the_lines_of_a_paragraph_are_facts_of_a_job() -> None:
    facts = "Acme Ltd<br>Leeds, UK<br>Full-time<br>Remote<br>£30,000 - £35,000 a year<br>Closing date: 3 May 2026"
    page = f"<html lang=en><title>Welder</title><h1>Welder</h1><p>{facts}</p><p>You weld the parts of housings.</p>"
    item = extract("jobPosting", page, "https://www.example.com/job/12")
    assert item["hiringOrganization"]["name"] == "Acme Ltd"
    assert item["jobLocation"]["raw"] == "Leeds, UK"
    assert (item["employmentType"], item["remoteStatus"]) == ("Full-time", "remote")
    assert (item["baseSalary"]["valueMin"], item["baseSalary"]["valueMax"]) == ("30000", "35000")
    assert item["validThrough"] == "2026-05-03T00:00:00"


@pytest.mark.parametrize(
    "part",
    [
        "<h2>Similar jobs</h2><p>Baker in Leeds and York<br>Part-time<br>£9 an hour</p>",
        "<h2>About us</h2><p>Acme Ltd<br>Remote<br>teams since 2001</p>",
        "<p>We offer:<br>Contract with a good salary<br>Temporary flat</p>",
    ],
)
def test_lines_of_a_paragraph_on_something_else_are_no_facts(part: str) -> None:
    html = f"<html lang=en><title>Barista</title><main><h1>Barista</h1><p>{PROSE}</p>{part}</main></html>"
    found = extract("jobPosting", html, "https://www.example.com/job/12")
    assert (found.get("employmentType"), found.get("remoteStatus")) == (None, None)
