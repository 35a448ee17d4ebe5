from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.fields.price_notation import place_of
from scrapy_ext.server.extraction.auto.jobs.terms import salary_in
from tests.support.job_pages import PAGES, PROSE, flat_item

URL = "https://jobs.example.com/lamp-keeper"
JOB: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "JobPosting",
    "title": "Lamp Keeper",
    "description": PROSE,
    "identifier": {"@type": "PropertyValue", "name": "Harbour Works", "value": "L-9"},
    "datePosted": "2024-05-02",
    "validThrough": "2024-06-30T00:00:00+02:00",
    "employmentType": ["FULL_TIME", "CONTRACTOR"],
    "jobLocationType": "TELECOMMUTE",
    "hiringOrganization": {"@type": "Organization", "name": "Harbour Works"},
    "jobLocation": {
        "@type": "Place",
        "address": {"@type": "PostalAddress", "addressLocality": "Aberdeen", "addressCountry": "GB"},
    },
    "baseSalary": {
        "@type": "MonetaryAmount",
        "currency": "GBP",
        "value": {"@type": "QuantitativeValue", "minValue": 31000, "maxValue": 36500, "unitText": "YEAR"},
    },
    "skills": "Ropes\nEngines",
}


def marked(*jobs: dict[str, Any], body: str = "<h1>Lamp Keeper wanted</h1>") -> dict[str, Any]:
    scripts = "".join(f'<script type="application/ld+json">{json.dumps(job)}</script>' for job in jobs)
    return extract("jobPosting", f"<html lang=en><title>Lamp Keeper</title>{scripts}<body>{body}", URL)


def test_the_markup_of_a_job_fills_every_field_that_it_has() -> None:
    item = marked(JOB)
    assert item["description"].startswith("You join a crew of nine")
    assert item["descriptionHtml"].startswith("<article>")
    for name in ("description", "descriptionHtml", "metadata"):
        item.pop(name)
    assert item == {
        "url": URL,
        "jobTitle": "Lamp Keeper",
        "headline": "Lamp Keeper wanted",
        "jobPostingId": "L-9",
        "datePublished": "2024-05-02T00:00:00",
        "datePublishedRaw": "2024-05-02",
        "validThrough": "2024-06-30T00:00:00+02:00",
        "validThroughRaw": "2024-06-30T00:00:00+02:00",
        "employmentType": "Full-time, Contract",
        "remoteStatus": "remote",
        "hiringOrganization": {"name": "Harbour Works", "nameRaw": "Harbour Works"},
        "jobLocation": {"raw": "Aberdeen, GB"},
        "baseSalary": {
            "valueMin": "31000",
            "valueMax": "36500",
            "currency": "GBP",
            "currencyRaw": "GBP",
            "rateType": "annual",
        },
        "requirements": ["Ropes", "Engines"],
    }


def test_a_place_of_work_may_have_several_addresses_and_only_a_name() -> None:
    def place(value: object) -> Any:
        return marked({**JOB, "jobLocation": value})["jobLocation"]["raw"]

    oslo, rome = ({"@type": "PostalAddress", "addressLocality": town} for town in ("Oslo", "Rome"))
    assert place({"@type": "Place", "address": [oslo, rome, oslo]}) == "Oslo; Rome"
    assert place({"@type": "Place", "name": "East pier", "address": {"@type": "PostalAddress"}}) == "East pier"


def test_microdata_of_a_job_is_read_too() -> None:
    item = extract(
        "jobPosting",
        f"""<div itemscope itemtype="https://schema.org/JobPosting"><h1 itemprop=title>Deckhand</h1>
        <div itemprop=hiringOrganization itemscope itemtype=https://schema.org/Organization>
        <b itemprop=name>Quay</b></div>
        <meta itemprop=salaryCurrency content=EUR><span itemprop=baseSalary>2100</span>
        <div itemprop=description>{PROSE}</div></div>""",
        URL,
    )
    assert (item["jobTitle"], item["hiringOrganization"]["name"]) == ("Deckhand", "Quay")
    assert (item["baseSalary"]["valueMin"], item["baseSalary"]["currency"]) == ("2100", "EUR")
    assert item["metadata"]["probability"] > 0.9


@pytest.mark.parametrize("name", PAGES)
def test_a_job_is_found_in_a_page_without_markup(name: str) -> None:
    page = PAGES[name]
    item = flat_item(extract("jobPosting", page.html, page.url))
    assert {field: item.get(field) for field in page.truth} == page.truth
    assert "harbour lights, day and night" in item["description"]
    assert "About us" not in item["description"]
    assert item["metadata"]["probability"] > 0.5


def test_a_page_that_lists_jobs_is_hardly_one_job() -> None:
    jobs = [{**JOB, "title": f"Keeper {n}", "url": f"https://jobs.example.com/{n}"} for n in range(8)]
    assert marked(*jobs)["metadata"]["probability"] <= 0.5
    other = extract("jobPosting", f"<title>Story</title><h1>Story</h1>{PROSE}", "https://example.com/story")
    assert other["metadata"]["probability"] < 0.5


def test_of_several_jobs_that_of_the_pages_own_address_is_taken() -> None:
    other = {**JOB, "title": "Cook", "url": "https://jobs.example.com/cook"}
    assert marked(other, {**JOB, "url": URL})["jobTitle"] == "Lamp Keeper"


@pytest.mark.parametrize(
    ("text", "low", "high", "currency", "rate"),
    [
        ("$80,000 - $120,000 a year", "80000", "120000", "USD", "annual"),
        ("€45.000–€60.000 pro Jahr", "45000", "60000", "EUR", "annual"),
        ("£12.50 per hour", "12.5", "12.5", "GBP", "hourly"),
        ("80k-120k USD", "80000", "120000", "USD", None),
        ("$80-120K", "80000", "120000", "USD", None),
        ("3 000 - 4 000 PLN / month", "3000", "4000", "PLN", "monthly"),
        ("From $20/hr", "20", None, "USD", None),
        ("Up to CHF 100'000", None, "100000", "CHF", None),
    ],
)
def test_salaries_are_read_as_people_write_them(
    text: str, low: str | None, high: str | None, currency: str, rate: str | None
) -> None:
    found = salary_in(text, place_of("https://example.com/"))
    assert found is not None
    assert (found.valueMin, found.valueMax, found.currency, found.raw) == (low, high, currency, text)
    assert rate is None or found.rateType == rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("€ 2.800 per maand bij 40 uur per week", "monthly"),
        ("€ 2.500 - € 3.500 bruto per maand (36 uur per week)", "monthly"),
        ("40 uur per week: € 2.800 per maand", "monthly"),
        ("€ 15 per uur, betaling per week", "hourly"),
        ("$25 per hour, 40 hours a week", "hourly"),
        ("$50/hr, 40 hrs/wk", "hourly"),
        ("$52,000 a year, 40 hours per week", "annual"),
        ("$70,000 - $90,000 a year, 5 days a week", "annual"),
        ("$100k/yr 4-day week", "annual"),
        ("$1,500/week 12 hour shifts", "weekly"),
        ("Hourly: $20 (40 hours weekly)", "hourly"),
        ("Annual salary: $60,000 paid monthly", "annual"),
        ("£23,795 per year (£11.44 per hour)", "annual"),
        ("£11.44 per hour / 40 hours per week / £23,795 per year", "hourly"),
        ("£35,000 - £40,000 plus 28 days annual leave per year", "annual"),
        ("€45,000 p.a. plus 30 days vacation", "annual"),
        ("3.200 € brutto/Monat bei 38,5 Stunden pro Woche", "monthly"),
        ("20 Stunden pro Woche, 15,50 € pro Stunde", "hourly"),
        ("2 100 € brut par mois pour 35 heures par semaine", "monthly"),
        ("25 000 Kč za měsíc, 40 hodin týdně", "monthly"),
        ("5 000 zł miesięcznie, 160 godzin", "monthly"),
        ("60 000 руб. в месяц, 40 часов в неделю", "monthly"),
        ("年収400万円 月給25万円", "annual"),
        ("時給1,200円 週40時間", "hourly"),
        # Only the time of work.
        ("$60,000, 40 hours per week", None),
        ("1.800 €, 40 horas a la semana", None),
    ],
)
def test_the_time_of_a_salary_is_not_that_of_the_work(text: str, rate: str | None) -> None:
    found = salary_in(text, place_of("https://example.com/"))
    assert found is not None
    assert found.rateType == rate


def test_a_count_after_an_amount_is_not_its_decimals() -> None:
    for text, amount in {"$60,000, 40 hours per week": "60000", "$15, 40 hours per week": "15"}.items():
        found = salary_in(text, place_of("https://example.com/"))
        assert found is not None
        assert (found.valueMin, found.valueMax) == (amount, amount)


@pytest.mark.parametrize("text", ["Competitive", "401k match", "3 - 5 years", "10% bonus", "", "$" * 50, "9" * 5_000])
def test_what_names_no_amount_of_money_is_no_salary(text: str) -> None:
    assert salary_in(text, place_of("https://example.com/")) is None


def job(body: str, title: str = "Lamp Keeper", url: str = URL) -> dict[str, Any]:
    return flat_item(extract("jobPosting", f"<html lang=en><title>{title}</title><body>{body}", url))


TEXT = f"<div class=text>{PROSE}</div>"


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<h1>Boats</h1><h2>Lamp Keeper</h2>", "Lamp Keeper at Harbour Works | Boats"),
        ("<h1>Find a job for lamp people</h1><h2>Lamp Keeper</h2>", "Remote Lamp Keeper at Harbour Works"),
        ("<div class=top><a href=/c>Harbour Works</a><p>Lamp Keeper</p></div>", "Lamp Keeper | Harbour Works | Boats"),
        ("<table><tr><td>Job Title</td><td>Lamp Keeper</td></tr></table>", "Harbour Works - Job details"),
        ("<form><div class=pc-h2>Lamp Keeper</div></form>", "Job Posting Details"),
        ("<p class=jobTitle>Lamp Keeper</p>", "Careers"),
    ],
)
def test_the_title_of_a_job_is_the_line_that_the_title_of_the_page_contains_or_a_label_names(
    body: str, title: str
) -> None:
    assert job(body + TEXT, title, "https://www.boats.example/jobs/1")["jobTitle"] == "Lamp Keeper"


@pytest.mark.parametrize(
    ("title", "more"),
    [
        ("Lamp Keeper at Harbour Works - Boats", ""),
        ("Harbour Works is hiring a Lamp Keeper in Leeds", ""),
        ("Harbour Works sucht Lamp Keeper", ""),
        ("Harbour Works - Lamp Keeper", "<p>Harbour Works</p>"),
        ("Lamp Keeper – Harbour Works", "<p>At Harbour Works, every light counts, and every keeper too.</p>"),
        ("Lamp Keeper", "<p><a href=/companies/harbour>Harbour Works</a></p>"),
        ("Lamp Keeper", "<p>Společnost: Harbour Works</p>"),
        (
            "Lamp Keeper",
            "<p>Harbour Works keeps the lights.</p><footer><p>© 2024 Harbour Works. All rights reserved.</p></footer>",
        ),
    ],
)
def test_the_company_is_named_by_the_title_a_label_a_link_or_the_copyright(title: str, more: str) -> None:
    item = job(f"<h1>Lamp Keeper</h1><div class=description>{PROSE}{more}</div>", title, "https://boats.example/jobs/1")
    assert item["company"] == "Harbour Works"


@pytest.mark.parametrize("title", ["Lamp Keeper | Quays", "Lamp Keeper - Leeds - Quays", "Apply Now - Lamp Keeper"])
def test_a_board_and_a_place_are_no_company(title: str) -> None:
    item = job(f"<h1>Lamp Keeper</h1><p>Location: Leeds</p>{TEXT}", title, "https://www.quays.example/jobs/1")
    assert (item["company"], item["location"]) == (None, "Leeds")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("<p>Leeds, United Kingdom — Harbours</p>", "Leeds, United Kingdom"),
        ("<p>Chicago, IL</p>", "Chicago, IL"),
        ("<p>Remote (Spain)</p>", "Remote (Spain)"),
        ("<p><a href=https://www.google.com/maps?q=x>12 Quay Street, Leeds</a></p>", "12 Quay Street, Leeds"),
        ("<dl><dt>Location: City</dt><dd>Leeds</dd><dt>State</dt><dd>Yorkshire</dd></dl>", "Leeds, Yorkshire"),
        ("<dl><dt>Místo výkonu práce</dt><dd>Praha</dd></dl>", "Praha"),
    ],
)  # fmt: skip
def test_the_place_is_a_line_of_places_a_link_to_a_map_or_of_labels_for_its_parts(body: str, place: str) -> None:
    assert job(f"<h1>Lamp Keeper</h1>{body}{TEXT}")["location"] == place


def test_the_place_of_a_title_is_found_too() -> None:
    assert (
        job(f"<h1>Lamp Keeper</h1>{TEXT}", "Harbour Works hiring Lamp Keeper in Leeds, UK | Boats")["location"]
        == "Leeds, UK"
    )


OTHERS = "".join(
    f"<div class=teaser><a href=/jobs/{n}><h3>Rope maker number {n}</h3></a><p>Somebody who makes ropes of all kinds "
    "and lengths, and who knows how to splice them in the dark.</p></div>"
    for n in range(9)
)


@pytest.mark.parametrize(
    "body",
    [
        f"<section><h2>About the job</h2><div><div>{PROSE}</div></div></section><section>{OTHERS}</section>",
        f"<table><tr><td>Job description:</td><td>{PROSE}</td></tr></table>",
        f"<dl><dt>Description</dt><dd>{PROSE}</dd><dt>Town</dt><dd>Leeds</dd></dl>",
        f"<div class=attachment-description><p>{'Send a letter. ' * 9}</p></div><main><div>{PROSE * 6}</div></main>",
        f"<div class=job-posting><div class=description>{PROSE}<button>Show more</button></div><p>Apply</p></div>",
        f"<div id=x><div>{PROSE}</div><div class=modal>Sign in to see who you know. {'Or join us. ' * 30}</div></div>",
    ],
)
def test_the_description_is_the_part_with_the_text_of_the_job(body: str) -> None:
    item = job(f"<div><h1>Lamp Keeper</h1><p>Leeds</p></div>{body}")
    assert item["description"].startswith("You join a crew of nine")
    assert item["description"].endswith("how the work is shared out among us.")


@pytest.mark.parametrize(
    ("text", "days"),
    [("3 days ago", 3), ("Posted today", 0), ("vor 2 Tagen", 2), ("před 5 dny", 5), ("5 months ago", None)],
)
def test_relative_dates_are_days_before_the_download_where_they_name_a_day(text: str, days: int | None) -> None:
    item = job(f"<h1>Lamp Keeper</h1><span>{text}</span>{TEXT}")
    assert item["datePublishedRaw"] == text
    today = datetime.now(timezone.utc).date()
    # The day may end while the test runs.
    expected = {f"{today - timedelta(days=days + more)}T00:00:00" for more in (0, 1)} if days is not None else {None}
    assert item.get("datePublished") in expected


@pytest.mark.parametrize(
    ("language", "text", "least", "most"),
    [
        ("en", "€3.500 per month", "3500", "3500"),
        ("en", "8.000 - 10.000 PLN / month", "8000", "10000"),
        ("de", "€ 45,000 - € 55,000 p.a.", "45000", "55000"),
        ("nl", "£30,000 per annum", "30000", "30000"),
        ("en", "$18.50 per hour", "18.5", "18.5"),
        ("de", "15,50 € pro Stunde", "15.5", "15.5"),
    ],
)
def test_thousands_of_a_salary_are_those_of_any_language(language: str, text: str, least: str, most: str) -> None:
    html = f"<html lang={language}><title>Cook</title><main><h1>Cook</h1><p>{text}</p></main>"
    salary = extract("jobPosting", html, "https://example.com/jobs/1")["baseSalary"]
    assert (salary["valueMin"], salary["valueMax"]) == (least, most)


@pytest.mark.parametrize(
    ("company", "place", "taken"),
    [
        ("ING", "Reading, UK", False),
        ("A.C.", "Acton", False),
        ("On Lee", "London, Leeds", False),
        ("Leeds", "Leeds, UK", True),
        ("New York", "Brooklyn, New-York", True),
        ("東京都品川区", "東京都 品川区 大崎駅", True),
    ],
)
def test_a_company_whose_letters_are_within_words_of_the_place_is_one(company: str, place: str, taken: bool) -> None:
    labels = f"<dl><dt>Company</dt><dd>{company}</dd><dt>Location</dt><dd>{place}</dd></dl>"
    html = f"<html lang=en><title>Cook</title><main><h1>Cook</h1>{labels}</main>"
    item = extract("jobPosting", html, "https://example.com/jobs/1")
    assert item["jobLocation"]["raw"] == place
    assert item.get("hiringOrganization", {}).get("name") == (None if taken else company)


def test_signs_without_a_width_do_not_split_a_salary() -> None:
    found = salary_in("Plat 50 000 \u200d–\u200d 80 000 Kč", place_of("https://example.cz/"))
    assert found is not None
    assert (found.valueMin, found.valueMax) == ("50000", "80000")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Práce na plný úvazek", "Full-time"),
        ("Regular Full-Time", "Full-time, Permanent"),
        ("Osa-aikainen", "Part-time"),
    ],
)
def test_types_of_employment_are_read_in_more_languages(text: str, kind: str) -> None:
    assert job(f"<h1>Lamp Keeper</h1><dl><dt>Employment form</dt><dd>{text}</dd></dl>{TEXT}")["employmentType"] == kind


WORK = "<main><h1>Lamp Keeper</h1>{}<div class=description><h2>About the job</h2><p>{}</p></div></main>"


def job_on(url: str, line: str, prose: str = PROSE) -> dict[str, Any]:
    return extract("jobPosting", f"<html lang=en><title>Lamp Keeper</title><body>{WORK.format(line, prose)}", url)


@pytest.mark.parametrize("text", ["Apply Now", "Career Programs", "Back", "Use Ctrl and scroll to zoom the map"])
def test_a_button_in_the_part_named_location_is_no_place(text: str) -> None:
    assert "jobLocation" not in job_on(URL, f"<div class=job-location>{text}</div>")
    found = job_on(URL, f"<div class=job-location>{text}</div><div class=job-location>Aberdeen</div>")
    assert found["jobLocation"] == {"raw": "Aberdeen"}


@pytest.mark.parametrize("url", ["https://jobs.harbourworks.example/9", "https://harbourworks.example/careers/9"])
def test_the_company_is_that_of_the_host_where_the_description_names_it(url: str) -> None:
    prose = "At Harbourworks you keep the lamps of the coast. " + PROSE + " Harbourworks is an equal employer."
    assert job_on(url, "", prose)["hiringOrganization"]["name"] == "Harbourworks"


def test_a_board_that_a_description_names_once_is_not_the_company() -> None:
    prose = PROSE + " Apply through Harbourworks."
    assert "hiringOrganization" not in job_on("https://jobs.harbourworks.example/9", "", prose)


def test_a_site_about_work_there_is_that_of_the_company() -> None:
    page = "<html lang=en><title>Lamp Keeper | Harbourworks Careers</title><body>" + WORK.format(
        "", "At Harbourworks. " + PROSE
    )
    item = extract("jobPosting", page, "https://www.harbourworkscareers.example/jobs/9")
    assert item["hiringOrganization"]["name"] == "Harbourworks"


def test_a_benefit_is_no_salary() -> None:
    assert "baseSalary" not in job_on(URL, "<p>$700/year work setup stipend</p>")
    assert job_on(URL, "<p>$70,000 per year</p>")["baseSalary"]["valueMin"] == "70000"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Mountain View, CA", "Mountain View, CA"),
        ("Boston, MA (View map)", "Boston, MA"),
        ("Program Manager Office, Berlin", "Program Manager Office, Berlin"),
        ("View all offices", None),
    ],
)
def test_words_of_menus_do_not_hide_the_name_of_a_place(text: str, place: str | None) -> None:
    for part in (f"<div class=job-location>{text}</div>", f"<dl><dt>Location</dt><dd>{text}</dd></dl>"):
        assert (job_on(URL, part).get("jobLocation") or {}).get("raw") == place


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("$100,000 - $120,000 per year + bonus", "100000"),
        ("€60,000 per year plus equity", "60000"),
        ("$45 per hour (benefits allowance)", "45"),
        ("Signing bonus: $5,000 per year", None),
        ("$5,000 per year signing bonus", None),
    ],
)
def test_what_comes_on_top_of_a_salary_does_not_hide_it(text: str, least: str | None) -> None:
    assert (job_on(URL, f"<p>{text}</p>").get("baseSalary") or {}).get("valueMin") == least


@pytest.mark.parametrize(
    ("url", "word", "company"),
    [
        ("https://berlin.jobs.de/9", "Berlin", None),
        ("https://jobs.lever.co/acme/9", "Lever", None),
        ("https://boards.greenhouse.io/acme/jobs/9", "Greenhouse", None),
        ("https://jobs.keeper.example/9", "Keeper", None),
        ("https://harbourworks.recruitee.com/o/9", "Harbourworks", "Harbourworks"),
    ],
)
def test_a_host_names_a_company_where_boards_give_hosts_to_companies(url: str, word: str, company: str | None) -> None:
    prose = f"At {word} you keep the lamps of the coast. {PROSE} {word} is an equal employer."
    assert (job_on(url, "", prose).get("hiringOrganization") or {}).get("name") == company


def test_a_place_written_with_other_signs_is_no_company() -> None:
    body = """<h1>Lamp Keeper</h1><dl><dt>Location</dt><dd>Toronto , ON</dd></dl><p class="company">Toronto, ON</p>"""
    assert job(body).get("hiringOrganization") is None


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("年収400万〜600万円", "4000000", "6000000"),
        ("25万-28万5,000円", "250000", "285000"),
        ("1-1.5万元/月", "10000", "15000"),
        ("8千-1.2万元/月", "8000", "12000"),
        ("5000-1万元/月", "5000", "10000"),
        ("월급 250~300만원", "2500000", "3000000"),
        ("8000-12000元/月", "8000", "12000"),
    ],
)
def test_both_ends_of_a_range_in_ten_thousands_count(text: str, low: str, high: str) -> None:
    found = salary_in(text, place_of("https://example.com/"))
    assert found is not None
    assert (found.valueMin, found.valueMax) == (low, high)


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("$61,152 to $69,789 CAD a year", "CAD"),
        ("NZD $28 - $31 an hour", "NZD"),
        ("$28 - $31 an hour", "USD"),
        # No dollar is a franc.
        ("$28 - $31 CHF", "USD"),
    ],
)
def test_a_code_beside_dollars_is_their_currency(text: str, currency: str) -> None:
    salary = salary_in(text, place_of(None, None))
    assert salary is not None
    assert salary.currency == currency


def test_the_label_of_a_salary_may_name_its_time() -> None:
    html = f"<html lang=en><h1>Lamp Keeper</h1><dl><dt>Annual salary<dd>£28,000 - £31,000</dl><p>{PROSE}</p>"
    assert extract("jobPosting", html, URL)["baseSalary"]["rateType"] == "annual"


def test_a_last_day_to_apply_is_a_line_with_its_date() -> None:
    html = f"<html lang=en><h1>Lamp Keeper</h1><p>Applications close 11.59pm Sunday 14 July 2024</p><p>{PROSE}</p>"
    assert extract("jobPosting", html, URL)["validThrough"] == "2024-07-14T23:59:00"


def test_a_list_of_places_has_each_of_them() -> None:
    places = "<dl><dt>Standorte<dd><ul><li>Köln<li>Bonn</ul></dl>"
    html = f"<html lang=de><h1>Lamp Keeper</h1>{places}<p>{PROSE}</p>"
    assert extract("jobPosting", html, URL)["jobLocation"]["raw"] == "Köln; Bonn"


@pytest.mark.parametrize("title", ["Show Control Technician", "View Camera Operator"])
def test_the_title_of_a_job_may_begin_as_a_link_does(title: str) -> None:
    assert job(f"<h1>{title}</h1>{TEXT}", f"{title} | Quays", "https://www.quays.example/jobs/1")["jobTitle"] == title


@pytest.mark.parametrize("text", ["Companies", "12 open positions", "Follow Harbour Works", "4.2 ★", "Zum Unternehmen"])
def test_a_link_to_a_company_without_its_name_beside_the_heading_names_none(text: str) -> None:
    body = f"<h1>Lamp Keeper</h1><p><a href=/companies/harbour>{text}</a></p><p>Harbour Works</p>{TEXT}"
    item = job(body, "Lamp Keeper - Harbour Works", "https://www.quays.example/jobs/1")
    assert item["company"] == "Harbour Works"


@pytest.mark.parametrize(
    ("lines", "date"),
    [
        ("<p>Apply by Friday, December 3, 2027</p>", "2027-12-03T00:00:00"),
        ("<ul><li><a href=/jobs/9>Cook</a><p>Apply by December 3, 2027</p></li></ul>", None),
        ("<p>Apply by December 3, 2027</p><div>Cook<p>Apply by December 4, 2027</p></div>", None),
    ],
)
def test_the_last_day_of_a_line_is_not_that_of_another_job(lines: str, date: str | None) -> None:
    item = extract("jobPosting", f"<html lang=en><title>Lamp Keeper</title><h1>Lamp Keeper</h1>{lines}{TEXT}", URL)
    assert item.get("validThrough") == date


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("<ul><li>Leeds</li><li>York</li></ul>", "Leeds; York"),
        ("<ul><li>Leeds</li><li>View on map</li></ul>", "Leeds"),
    ],
)
def test_a_list_of_places_has_places_alone(value: str, place: str) -> None:
    body = f"<h1>Lamp Keeper</h1><dl><dt>Location</dt><dd>{value}</dd></dl>{TEXT}"
    assert job(body, "Lamp Keeper", "https://www.quays.example/jobs/1")["location"] == place
