from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract
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
    found = salary_in(text, "https://example.com/")
    assert found is not None
    assert (found.valueMin, found.valueMax, found.currency, found.raw) == (low, high, currency, text)
    assert rate is None or found.rateType == rate


@pytest.mark.parametrize("text", ["Competitive", "401k match", "3 - 5 years", "10% bonus", "", "$" * 50, "9" * 5_000])
def test_what_names_no_amount_of_money_is_no_salary(text: str) -> None:
    assert salary_in(text, "https://example.com/") is None
