"""Pages of one job each in the shapes of usual job boards, without structured data, and what is true of them.

They are written for these tests: no board's page, text or name is among them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

PROSE = (
    "<p>You join a crew of nine who look after the harbour lights, day and night, in wind and in rain. We keep the "
    "boats going and the lamps lit, and we write down what we did.</p><p>Our days are long in summer and short in "
    "winter. Nobody works alone at night, and everybody has a say in how the work is shared out among us.</p>"
)
NEEDS = ["Two years on the water", "A driving licence for lorries", "Good with ropes and engines"]
_LIST = "<ul>" + "".join(f"<li>{need}</li>" for need in NEEDS) + "</ul>"


class JobPage(NamedTuple):
    html: str
    url: str
    #: Fields as they should be; None where nothing may be found.
    truth: dict[str, Any]


def _page(title: str, body: str, lang: str = "en") -> str:
    return (
        f"<!doctype html><html lang={lang}><head><title>{title}</title></head><body><header><a href=/>Start</a>"
        f"<nav><a href=/jobs>All jobs</a><a href=/about>About us</a></nav></header>{body}"
        "<footer><a href=/imprint>Imprint</a> © 2024</footer></body></html>"
    )


PAGES: dict[str, JobPage] = {
    "a hosted board of one company": JobPage(
        _page(
            "Job Application for Lamp Keeper at Harbour Works",
            "<div id=app><h1 class=app-title>Lamp Keeper</h1><span class=company-name>at Harbour Works</span>"
            f"<div class=location>Aberdeen, Scotland</div><div id=content>{PROSE}<h3>What you'll need</h3>{_LIST}"
            "<div class=pay-range><span>£31,000</span><span> - </span><span>£36,500 GBP</span></div></div>"
            "<a href=#app class=btn>Apply for this job</a></div>",
        ),
        "https://boards.example.com/harbour/jobs/4412",
        {
            "jobTitle": "Lamp Keeper", "company": "Harbour Works", "location": "Aberdeen, Scotland",
            "salary": ("31000", "36500", "GBP"), "requirements": NEEDS, "employmentType": None, "datePublished": None,
        },
    ),
    "tags under the heading": JobPage(
        _page(
            "Harbour Works - Rope Maker",
            "<div class=posting-headline><h2>Rope Maker</h2><div class=posting-categories>"
            "<div class='sort-by-location posting-category location'>Lisbon</div>"
            "<div class='posting-category department'>Workshop</div>"
            "<div class='posting-category commitment'>Part-time</div>"
            "<div class='posting-category workplaceTypes'>On-site</div></div></div>"
            f"<div class='section page-centered'>{PROSE}</div><div class=section><h3>Requirements</h3>{_LIST}</div>"
            "<a class=postings-btn href=/apply>Apply for this job</a>",
        ),
        "https://jobs.example.com/harbour/0b1f",
        {
            "jobTitle": "Rope Maker", "location": "Lisbon", "employmentType": "Part-time", "remoteStatus": "on-site",
            "requirements": NEEDS, "salary": None, "datePublished": None, "validThrough": None,
        },
    ),
    "a definition list beside the text": JobPage(
        _page(
            "Engine Mechanic | Careers",
            f"<main><h1>Engine Mechanic</h1><section class=job-description>{PROSE}<h2>Qualifications</h2>{_LIST}"
            "</section><section><dl><dt>Locations</dt><dd>Bergen, Norway</dd><dt>Time type</dt><dd>Full time</dd>"
            "<dt>Posted on</dt><dd>12 March 2024</dd><dt>Job requisition ID</dt><dd>JR-20931</dd>"
            "<dt>Application deadline</dt><dd>30 April 2024</dd></dl></section><a href=/apply>Apply</a></main>",
        ),
        "https://harbour.example.com/careers/job/Bergen/Engine-Mechanic_JR-20931",
        {
            "jobTitle": "Engine Mechanic", "location": "Bergen, Norway", "employmentType": "Full-time",
            "datePublished": "2024-03-12T00:00:00", "validThrough": "2024-04-30T00:00:00", "jobPostingId": "JR-20931",
            "requirements": NEEDS, "salary": None,
        },
    ),
    "headings with the value below": JobPage(
        _page(
            "Harbour Works hiring Deckhand in Cork, Ireland | Boats",
            "<main><section class=top-card><h1>Deckhand</h1><h4><a class=topcard__org-name-link href=/c/1>Harbour Works"
            "</a> <span class=topcard__flavor--bullet>Cork, Ireland</span></h4></section>"
            f"<div class=show-more-less-html__markup>{PROSE}<strong>Who you are</strong>{_LIST}</div>"
            "<ul><li><h3>Employment type</h3><span>Contract</span></li><li><h3>Job function</h3><span>Other</span></li>"
            "<li><h3>Salary</h3><span>€18.50 - €21.00 per hour</span></li></ul><button>Apply</button></main>",
        ),
        "https://www.example.com/jobs/view/deckhand-at-harbour-works-377",
        {
            "jobTitle": "Deckhand", "company": "Harbour Works", "employmentType": "Contract", "requirements": NEEDS,
            "salary": ("18.5", "21", "EUR"), "rateType": "hourly", "datePublished": None,
        },
    ),
    "german": JobPage(
        _page(
            "Hafenlotse (m/w/d) bei Hafenwerke GmbH",
            "<main><h1>Hafenlotse (m/w/d)</h1><ul class=facts><li>Arbeitgeber: Hafenwerke GmbH</li>"
            "<li>Arbeitsort: 20457 Hamburg</li><li>Vollzeit</li><li>Gehalt: 52.000 € – 61.000 € pro Jahr</li>"
            "<li>Veröffentlicht am: 05.02.2024</li><li>Referenznummer: HH-77</li></ul>"
            f"<article class=stellenbeschreibung>{PROSE}<h3>Ihr Profil</h3>{_LIST}</article>"
            "<a href=/b>Jetzt bewerben</a></main>",
            "de",
        ),
        "https://stellen.example.de/hafenlotse-77",
        {
            "jobTitle": "Hafenlotse (m/w/d)", "company": "Hafenwerke GmbH", "location": "20457 Hamburg",
            "employmentType": "Full-time", "salary": ("52000", "61000", "EUR"), "rateType": "annual",
            "datePublished": "2024-02-05T00:00:00", "jobPostingId": "HH-77", "requirements": NEEDS,
        },
    ),
    "a public notice in a table": JobPage(
        _page(
            "Vacancy: Lock Keeper",
            "<div id=main><h1>Lock Keeper</h1><table><tr><th>Employer:</th><td>Canal Board</td></tr>"
            "<tr><th>Salary:</th><td>Up to $58,200 per annum</td></tr>"
            "<tr><th>Location:</th><td>Smiths Falls, Ontario</td></tr>"
            "<tr><th>Contract type:</th><td>Permanent</td></tr><tr><th>Closing date:</th><td>2024-09-01</td></tr>"
            f"<tr><th>Reference:</th><td>CB/2024/9</td></tr></table>{PROSE}<p><b>Essential skills</b></p>{_LIST}"
            "<p><a href=/f>Apply online</a></p></div>",
        ),
        "https://www.example.ca/vacancies/lock-keeper",
        {
            "jobTitle": "Lock Keeper", "company": "Canal Board", "location": "Smiths Falls, Ontario",
            "employmentType": "Permanent", "salary": (None, "58200", "CAD"), "rateType": "annual",
            "validThrough": "2024-09-01T00:00:00", "jobPostingId": "CB/2024/9", "requirements": NEEDS,
            "datePublished": None,
        },
    ),
    "french, fully remote": JobPage(
        _page(
            "Chargée des cartes marines - Ports de l'Ouest",
            "<main><h1>Chargée des cartes marines</h1><div class=job-meta><span class=company>Ports de l'Ouest</span>"
            "<span class=location>Brest</span><span class=tag>Télétravail</span><span class=tag>CDI</span></div>"
            f"<div class=job-description>{PROSE}<h2>Profil recherché</h2>{_LIST}</div>"
            "<p>Salaire : 38 000 € brut par an</p><p>Publiée le : 14 juin 2024</p><a href=/p>Postuler</a></main>",
            "fr",
        ),
        "https://emplois.example.fr/offres/cartes",
        {
            "jobTitle": "Chargée des cartes marines", "company": "Ports de l'Ouest", "location": "Brest",
            "employmentType": "Permanent", "remoteStatus": "remote", "salary": ("38000", "38000", "EUR"),
            "datePublished": "2024-06-14T00:00:00", "requirements": NEEDS,
        },
    ),
}  # fmt: skip


def flat_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item in the terms of :attr:`JobPage.truth`."""
    salary = item.get("baseSalary") or {}
    return {
        **item,
        "company": (item.get("hiringOrganization") or {}).get("name"),
        "location": (item.get("jobLocation") or {}).get("raw"),
        "salary": tuple(salary.get(name) for name in ("valueMin", "valueMax", "currency")) if salary else None,
        "rateType": salary.get("rateType"),
    }
