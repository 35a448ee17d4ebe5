"""Employers on job boards and on sites of their own, without structured data."""

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

PROSE = (
    "Serve coffee to a busy crowd from six in the morning. You know your way around a grinder and clean the bench. "
    "Weekends off twice a month. We pay for training and for meals during the shift."
)


def posting(lines: str, site: str, *, lang: str = "en", path: str = "/job/12", more: str = "", title: str = "") -> Any:
    heading = "Barista"
    item: dict[str, Any] = extract(
        "jobPosting",
        f"<html lang={lang}><title>{title or f'{heading} | {site}'}</title><header><a href=/>{site}</a>"
        f"<nav><a href=/all>All</a></nav></header><main><h1>{heading}</h1>{lines}<p>{more}{PROSE}</p>"
        f"<a href=/apply>Apply now</a></main><footer>© 2026 {site}</footer></html>",
        f"https://www.example.com{path}",
    )
    return (item.get("hiringOrganization") or {}).get("name"), (item.get("jobLocation") or {}).get("raw")


@pytest.mark.parametrize(
    ("site", "lines", "more"),
    [
        ("HospoJobs", "", ""),
        ("Grindlist", "<p>Full-time</p>", "Apply through Grindlist. "),
        ("HospoJobs", "<h2>Join Our Team</h2>", ""),
        ("HospoJobs", "<h3>Great Coffee Every Day</h3>", ""),
        ("HospoJobs", "<h2>Your New Role</h2><ul><li>Serve guests</li><li>Sell ice</li></ul>", ""),
        ("HospoJobs", "<p>New York · Full-time</p>", ""),
        ("HospoJobs", "<p>San Jose · Costa Rica</p>", ""),
        ("HospoJobs", "<p>Kitchen Operations | Leeds | Full-time</p>", ""),
        ("HospoJobs", "<p>Technischer Dienst · Ulm · Vollzeit</p>", ""),
        ("HospoJobs", "<p>Ressources humaines | Lyon | CDI</p>", ""),
        ("HospoJobs", "<p>Atención al Cliente · Sevilla</p>", ""),
        ("HospoJobs", "<p>Afdeling Keuken · Utrecht</p>", ""),
        ("HospoJobs", "<p class=job-department>Rooms Division | Leeds</p>", ""),
        ("HospoJobs", "<p>Guest Happiness | Leeds</p>", "You work in guest happiness. "),
        ("HospoJobs", "<h3>Food and Beverage</h3><p>Leeds · Full-time</p>", ""),
        ("HospoJobs", "<p>San Francisco · California</p>", ""),
        ("HospoJobs", "<p>New York · Boston</p>", ""),
        ("HospoJobs", "<p>Bad Tölz · Bayern</p>", ""),
        ("HospoJobs", "<p>Den Haag · Zuid-Holland</p>", ""),
        ("HospoJobs", "<p>Frankfurt am Main · Darmstadt</p>", ""),
        ("HospoJobs", "<p>at Leeds City Centre · Full-time</p>", ""),
        ("HospoJobs", "<p>Gare du Nord · Paris</p>", ""),
        ("Acme", "<p>Customer Service · Berlin</p>", ""),
        ("Acme Careers", "<p>Customer Service · Berlin</p>", ""),
    ],
)
def test_neither_the_name_of_a_board_nor_a_line_without_evidence_is_the_employer(
    site: str, lines: str, more: str
) -> None:
    assert posting(lines, site, more=more)[0] is None


@pytest.mark.parametrize(
    ("path", "more"), [("/careers/12", ""), ("/de/karriere/12", ""), ("/job/12", "Royal Playhouse is open all year. ")]
)
def test_the_name_of_a_site_is_the_employer_on_its_page_of_careers_or_where_the_text_is_about_it(
    path: str, more: str
) -> None:
    assert posting("<p>Full-time</p>", "Royal Playhouse", path=path, more=more)[0] == "Royal Playhouse"


@pytest.mark.parametrize(
    ("lang", "site", "lines", "name", "place"),
    [
        ("en", "HospoJobs", "<h3>Grind House Coffee</h3><p>Melbourne VIC · Casual</p>", "Grind House Coffee", None),
        ("en", "HospoJobs", "<p>The Copper Kettle | Leeds | Full-time</p>", "The Copper Kettle", "Leeds"),
        ("en", "HospoJobs", "<p>Kitchen Operations Ltd | Leeds</p>", "Kitchen Operations Ltd", "Leeds"),
        ("en", "HospoJobs", "<p>Sales Kettle Works | Leeds</p>", "Sales Kettle Works", "Leeds"),
        ("en", "HospoJobs", "<p>St Anne's Hospital | Leeds</p>", "St Anne's Hospital", "Leeds"),
        ("en", "HospoJobs", "<p>New Harvest Kitchen | Leeds</p>", "New Harvest Kitchen", "Leeds"),
        ("de", "HospoJobs", "<p>Zum Goldenen Hirsch | Berlin | Teilzeit</p>", "Zum Goldenen Hirsch", "Berlin"),
        ("de", "HospoJobs", "<p>Gasthof am See · Lindau</p>", "Gasthof am See", "Lindau"),
        ("en", "HospoJobs", "<p>Grind House Coffee – Melbourne</p>", "Grind House Coffee", "Melbourne"),
        ("en", "Shiftly", "<p>at Grind House Coffee in Melbourne</p>", "Grind House Coffee", "Melbourne"),
        ("en", "Shiftly", "<p>at Grind House Coffee, Melbourne</p>", "Grind House Coffee", "Melbourne"),
        ("nl", "ZorgVacatures", "<p>Ziekenhuis Rijnland · Leiden</p>", "Ziekenhuis Rijnland", "Leiden"),
        ("de", "Tresen", "<p>bei Gasthof Krone · Ulm</p>", "Gasthof Krone", "Ulm"),
        ("fr", "Restojob", "<p>chez Annie et Fils – Lyon</p>", "Annie et Fils", "Lyon"),
        ("it", "Gusto", "<p>presso Trattoria Sole, Bari</p>", "Trattoria Sole", "Bari"),
        ("sv", "Platsbruket", "<p>hos Lindgrens Bygg | Umeå | Heltid</p>", "Lindgrens Bygg", "Umeå"),
        ("pl", "Morze", "<h4>Chłodnia Bałtyk Sp. z o.o.</h4><p>Gdynia</p>", "Chłodnia Bałtyk Sp. z o.o.", None),
        ("ja", "ナースワーク", "<p>株式会社みどり｜大阪市</p>", "株式会社みどり", "大阪市"),
        ("ar", "وظفني", "<p>مستشفى النور · الرياض</p>", "مستشفى النور", "الرياض"),
        ("ar", "وظفني", "<h3>في شركة الأفق</h3>", "الأفق", None),
        ("fa", "کاریابان", "<p>شرکت پارس | تهران | تمام وقت</p>", "شرکت پارس", "تهران"),
        ("he", "דרושים", '<p>מסעדת הים בע"מ · חיפה</p>', 'מסעדת הים בע"מ', "חיפה"),
    ],
)
def test_the_line_below_the_heading_names_the_employer_and_the_place(
    lang: str, site: str, lines: str, name: str, place: str | None
) -> None:
    assert posting(lines, site, lang=lang) == (name, place)


def test_a_line_below_the_heading_counts_where_the_text_or_the_title_names_its_company() -> None:
    line = "<p>Grind House Coffee, Melbourne</p>"
    assert posting(line, "Shiftly") == (None, None)
    found = ("Grind House Coffee", "Melbourne")
    assert posting(line, "Shiftly", more="Grind House Coffee is a small roastery. ") == found
    assert posting(line, "Shiftly", title="Barista - Grind House Coffee | Shiftly") == found


def test_a_heading_names_its_employer_before_the_board() -> None:
    title = "<html lang=en><title>Usher at Royal Playhouse | StageJobs</title>"
    html = f"{title}<a href=/>StageJobs</a><h1>Usher at {{}}</h1><p>{PROSE}</p>"
    item = extract("jobPosting", html.format("Royal Playhouse"), "https://www.example.com/job/1")
    assert item["hiringOrganization"]["name"] == "Royal Playhouse"
    item = extract("jobPosting", html.format("home"), "https://www.example.com/job/1")
    assert "hiringOrganization" not in item


@pytest.mark.parametrize("heading", ["Customer Agent at Home", "Guard at Night"])
def test_a_heading_with_a_way_of_work_behind_at_names_no_employer(heading: str) -> None:
    text = "<h2>About the role</h2><p>You answer the questions of our guests every day, in a calm voice.</p>" * 2
    page = f"<html lang=en><title>{heading} | BestJobs</title><main><h1>{heading}</h1>{text}</main>"
    assert "hiringOrganization" not in extract("jobPosting", page, "https://bestjobs.example/job/12")


def test_a_subtitle_above_facts_without_a_place_may_be_the_place() -> None:
    text = "<h2>About the role</h2><p>You answer the questions of our guests every day, in a calm voice.</p>" * 2
    page = (
        "<html lang=en><title>Head Chef | BestJobs</title><header><a href=/>BestJobs</a></header><main>"
        f"<h1>Head Chef</h1><h2>New York</h2><p>Full-time · $60,000</p>{text}</main>"
    )
    assert "hiringOrganization" not in extract("jobPosting", page, "https://bestjobs.example/job/12")


@pytest.mark.parametrize(
    ("path", "title", "heading", "name"),
    [
        ("/careers/welder", "Welder – Careers – Brightwell Pumps", "Welder (m/f/d)", "Brightwell Pumps"),
        ("/careers/welder", "Welder | Brightwell Pumps", "Welder [all genders] 80–100 %", "Brightwell Pumps"),
        ("/karriere/schweisser", "Schweißer – Karriere – Brightwell Pumps", "Schweißer m/w/d", "Brightwell Pumps"),
        ("/careers/welder", "Welder (m/f/d) – Brightwell Pumps", "Welder", "Brightwell Pumps"),
        ("/jobs/welder", "Welder | WeldJobs", "Welder (m/f/d)", None),
        ("/jobs/welder", "Welder", "Welder (m/f/d)", None),
        ("/jobs/welder", "Welder - WeldJobs", "Senior Welder", None),
    ],
)
def test_the_title_of_a_job_without_its_additions_is_no_employer(
    path: str, title: str, heading: str, name: str | None
) -> None:
    page = (
        f"<html><title>{title}</title><header><a href=/>Brightwell Pumps</a></header><main><h1>{heading}</h1>"
        "<p><strong>Brightwell Pumps</strong> <span>Full-time</span></p>"
        "<p>A welder joins the housings of our pumps and checks each seam. The workshop starts at seven.</p></main>"
    )
    item = extract("jobPosting", page, f"https://www.example.com{path}")
    assert item["jobTitle"] == heading
    assert (item.get("hiringOrganization") or {}).get("name") == name


@pytest.mark.parametrize(
    ("lang", "heading", "name"),
    [
        ("en", "Head Chef at Leeds City Centre", None),
        ("en", "Barista at Gatwick North Terminal", None),
        ("en", "Barista at London Bridge Station", None),
        ("de", "Koch bei Ulm Innenstadt", None),
        ("fr", "Serveur chez Gare de Lyon", None),
        ("en", "Barista at Gatwick Airport Ltd", "Gatwick Airport Ltd"),
        ("en", "Cook at Leeds City Council", "Leeds City Council"),
        ("en", "Cook at Station Hotel", "Station Hotel"),
        ("en", "Baker at High Street Bakery", "High Street Bakery"),
        ("de", "Koch bei Gasthof Krone", "Gasthof Krone"),
        ("fr", "Serveur chez Café de la Gare", "Café de la Gare"),
    ],
)
def test_a_part_of_a_town_behind_at_is_no_employer(lang: str, heading: str, name: str | None) -> None:
    title = f"<html lang={lang}><title>{heading} | HospoJobs</title><header><a href=/>HospoJobs</a></header>"
    page = f"{title}<main><h1>{heading}</h1><p>{PROSE}</p></main>"
    item = extract("jobPosting", page, "https://www.example.com/job/12")
    assert (item.get("hiringOrganization") or {}).get("name") == name


def test_a_name_like_that_of_a_department_is_an_employer_with_a_mail_address() -> None:
    line, mail = "<p>Acme Engineering · Leeds</p>", "Send your letter to jobs@acme-engineering.example. "
    assert posting(line, "HospoJobs", more=mail) == ("Acme Engineering", "Leeds")
    assert posting(line, "HospoJobs")[0] is None
    assert posting("<p>Acme Sales · Leeds</p>", "HospoJobs", more=mail)[0] is None


def test_a_network_that_a_page_links_to_is_no_employer() -> None:
    line, link = "<p>LinkedIn · Leeds</p>", "<a href='https://www.linkedin.com/x'>Share</a>"
    assert posting(line, "HospoJobs", more=link)[0] is None
