"""Sites that name themselves: of the employer itself, and boards, agencies and newspapers with the jobs of others."""

import json
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

TEXT = (
    "<p>You join the parts of our housings and check each seam. The workshop starts at seven, and ends at four.</p>" * 2
)


def menu(*entries: str) -> str:
    return "<nav>" + "".join(f"<a href=/{number}>{entry}</a>" for number, entry in enumerate(entries)) + "</nav>"


def named(name: str) -> str:
    return f'<meta property="og:site_name" content="{name}">'


def marked(kind: str, name: str, url: str = "https://www.example.com/") -> str:
    thing = {"@context": "https://schema.org", "@type": kind, "name": name, "url": url}
    return f'<script type="application/ld+json">{json.dumps(thing)}</script>'


def employer(path: str, title: str, *, head: str = "", header: str = "", lang: str = "en", more: str = "") -> Any:
    page = (
        f"<html lang={lang}><head><title>{title}</title>{head}</head><header>{header}</header>"
        f"<main><h1>Welder</h1>{more}{TEXT}</main>"
    )
    url = path if path.startswith("https:") else f"https://www.example.com{path}"
    return (extract("jobPosting", page, url).get("hiringOrganization") or {}).get("name")


LOGO = "<a href=/><img src=l.png alt='{}'></a>"
START = "<a href=/>{}</a>"


@pytest.mark.parametrize(
    ("path", "title", "head", "header", "name"),
    [
        (
            "/jobs/12", "Welder - Brightwell Pumps", named("Brightwell Pumps"),
            LOGO.format("Brightwell Pumps logo") + menu("Products", "About us", "Jobs"), "Brightwell Pumps",
        ),
        ("/careers/12", "Welder", named("Brightwell Pumps"), LOGO.format("Brightwell Pumps"), "Brightwell Pumps"),
        (
            "/jobs/12", "Welder (m/w/d) | Hellbrunn Pumpen", "",
            LOGO.format("Logo Hellbrunn Pumpen") + menu("Leistungen", "Referenzen", "Kontakt"), "Hellbrunn Pumpen",
        ),
        ("/karriere/12", "Welder", marked("Organization", "Hellbrunn Pumpen GmbH"), "", "Hellbrunn Pumpen GmbH"),
        (
            "/nous-rejoindre/12", "Welder - Maison Fontclaire", marked("WebSite", "Maison Fontclaire"), "",
            "Maison Fontclaire",
        ),
        ("/recrutement/12", "Welder | Chez Lucette", "", START.format("Chez Lucette") + menu("La carte", "Contact"),
         "Chez Lucette"),
        ("/empleo/12", "Welder", marked("Restaurant", "La Pérgola") + named("La Pérgola"), "", "La Pérgola"),
        (
            "/vacatures/12", "Welder | Van Dijk Pompen", named("Van Dijk Pompen"), menu("Producten", "Over ons"),
            "Van Dijk Pompen",
        ),
        ("/careers/12", "Welder - Workshop Operations - Copper Kettle", named("Copper Kettle"), "", "Copper Kettle"),
        ("/kariera/12", "Welder - Pompy Bałtyk", named("Pompy Bałtyk"), "", "Pompy Bałtyk"),
        ("/lavora-con-noi/12", "Welder | Pompe Adriatico", named("Pompe Adriatico"), "", "Pompe Adriatico"),
        ("/careers/12", "Welder | Harbour Mutual", named("Harbour Mutual"),
         START.format("Harbour Mutual") + menu("Individuals", "Employers", "Brokers"), "Harbour Mutual"),
        (
            "https://careers.example.com/job/12", "Welder | Brightwell Careers", named("Brightwell Careers"),
            LOGO.format("Brightwell"), "Brightwell",
        ),
    ],
)  # fmt: skip
def test_the_name_of_a_site_of_one_company_is_the_employer(
    path: str, title: str, head: str, header: str, name: str
) -> None:
    assert employer(path, title, head=head, header=header) == name


@pytest.mark.parametrize(
    ("path", "title", "head", "header"),
    [
        ("/jobs/12", "Welder - Pumpenwelt", named("Pumpenwelt"),
         LOGO.format("Pumpenwelt") + menu("Companies", "Post a job", "Products", "Contact")),
        ("/careers/12", "Welder - Pumpenwelt", named("Pumpenwelt"), START.format("Pumpenwelt") + menu("For employers")),
        ("/career/12", "Welder | Careerwise", named("Careerwise"),
         START.format("Careerwise") + menu("Find a job", "Employers", "Advice")),
        ("/jobs/12", "Welder", "", "<img src=t alt='Twitter logo'>" + menu("Products", "Contact")),
        ("/jobs/12", "Welder - Shiftly", named("Shiftly"), LOGO.format("Shiftly") + menu("Jobs", "About", "Contact")),
        ("/jobs/12", "Welder | Norwood Recruitment", named("Norwood Recruitment"),
         START.format("Norwood Recruitment") + menu("Products", "Services", "Contact")),
        ("/jobs/12", "Welder | Tempo Personal", named("Tempo Personal"),
         START.format("Tempo Personal") + menu("Für Bewerber", "Leistungen", "Kontakt")),
        ("/offres/12", "Welder | Extra", named("Extra"), START.format("Extra") + menu("Recruteurs", "Produits")),
        ("/vacatures/12", "Welder | Werkplek", named("Werkplek"),
         START.format("Werkplek") + menu("Voor werkgevers", "Producten", "Contact")),
        ("/jobs/12", "Welder | The Gazette", named("The Gazette"),
         START.format("The Gazette") + menu("News", "Sport", "Shop", "Contact us")),
        ("/jobs/12", "Welder | The Gazette", named("The Gazette") + marked("NewsMediaOrganization", "The Gazette"),
         START.format("The Gazette") + menu("Shop", "Contact us")),
        ("/jobs/12", "Welder | Pump Makers", named("Pump Makers"),
         START.format("Pump Makers") + menu("Membership", "Projects", "About us")),
        ("/jobs/12", "Welder - North Group", named("Brightwell"), START.format("Start") + menu("Products", "Contact")),
        ("/careers/12", "Welder | Careers", named("Careers"), START.format("Home")),
        ("/karriere/12", "Welder", marked("Organization", "Elsewhere", "https://www.elsewhere.example/"), ""),
        ("https://www.linkedin.com/jobs/view/12", "Welder | LinkedIn", named("LinkedIn"), START.format("LinkedIn")),
        ("https://acme.recruitee.com/o/welder", "Welder - Recruitee", named("Recruitee"), ""),
    ],
)  # fmt: skip
def test_the_name_of_a_site_for_the_jobs_of_others_or_without_evidence_is_not_the_employer(
    path: str, title: str, head: str, header: str
) -> None:
    assert employer(path, title, head=head, header=header) is None


def test_an_employer_that_a_label_names_goes_before_the_site() -> None:
    header = START.format("Brightwell") + menu("Products", "Services")
    more = "<dl><dt>Company</dt><dd>Brightwell Seals</dd></dl>"
    assert employer("/jobs/12", "Welder - Brightwell", header=header, more=more) == "Brightwell Seals"


@pytest.mark.parametrize(
    ("url", "title", "head", "header", "name"),
    [
        ("https://brightwell.wd5.myworkdayjobs.com/en-US/Careers/job/Leeds/Welder_R-1", "Welder", named("Brightwell"),
         "<img src=x alt=Brightwell>", "Brightwell"),
        ("https://jobs.smartrecruiters.com/BrightwellPumps/744-welder", "Brightwell Pumps Welder | SmartRecruiters",
         named("SmartRecruiters"), "<img src=x alt='Brightwell Pumps logo'>", "Brightwell Pumps"),
        ("https://brightwell.jobs.personio.de/job/77", "Welder | Jobs bei Brightwell GmbH", "",
         LOGO.format("Brightwell"), "Brightwell GmbH"),
        ("https://koperketel.recruitee.com/o/welder", "Welder", named("De Koperen Ketel"),
         LOGO.format("De Koperen Ketel"), "De Koperen Ketel"),
        ("https://marmite.teamtailor.com/jobs/9-welder", "Welder - La Marmite", named("La Marmite"), "", "La Marmite"),
        ("https://brightwell.bamboohr.com/careers/44", "Welder", "", "<img src=x alt='Brightwell Ltd logo'>",
         "Brightwell Ltd"),
        ("https://jobs.jobvite.com/copper-kettle/job/oX", "Copper Kettle Careers - Welder", "", "", "Copper Kettle"),
        ("https://apply.workable.com/copper-kettle/j/AB12", "Welder - Copper Kettle", named("Workable"), "",
         "Copper Kettle"),
    ],
)  # fmt: skip
def test_a_company_with_pages_of_its_own_at_a_board_is_the_employer(
    url: str, title: str, head: str, header: str, name: str
) -> None:
    assert employer(url, title, head=head, header=header) == name


@pytest.mark.parametrize("other", ["Leeds", "Workshop Operations", "San Francisco"])
def test_a_place_or_department_in_the_title_is_not_the_employer_of_its_own_site(other: str) -> None:
    title, head = f"Welder - {other} - Copper Kettle", named("Copper Kettle")
    more = f"<p>{other} | Full-time</p><p>{other}</p>"
    assert employer("/careers/12", title, head=head, more=more) == "Copper Kettle"


@pytest.mark.parametrize(
    ("path", "entries", "text"),
    [
        ("/careers/12", [], "Our client is looking for a welder for its plant in Hull."),
        ("/careers/12", [], "On behalf of our client, a maker of pumps, we look for a welder."),
        ("/stellen/12", ["Leistungen", "Referenzen"], "Für unseren Kunden aus Kiel suchen wir einen Schweißer."),
        ("/offres/12", ["Réalisations", "Contact"], "Nous recherchons pour l'un de nos clients un soudeur."),
        ("/empleo/12", ["Soluciones", "Contacto"], "Para nuestro cliente, fabricante de bombas, buscamos un soldador."),
        ("/vacatures/12", ["Diensten", "Over ons"], "Voor onze opdrachtgever in Breda zoeken wij een lasser."),
        ("/jobs/12", ["Services", "Industries", "About us", "Contact"], ""),
        ("/emploi/12", ["Politique", "Économie", "Boutique", "Contact"], ""),
        ("/empleo/12", ["Deportes", "Economía", "Tienda", "Contacto"], ""),
        ("/lavoro/12", ["Cronaca", "Prodotti", "Contatti"], ""),
        ("/stellen/12", ["Lokales", "Shop", "Kontakt", "Produkte"], ""),
        ("/emploi/12", ["Adhérents", "Réalisations", "Contact"], ""),
        ("/careers/12", ["Jobs", "Companies", "Salaries", "Blog"], ""),
    ],
)
def test_agencies_papers_and_boards_are_not_the_employer(path: str, entries: list[str], text: str) -> None:
    header = LOGO.format("Norwood") + menu(*entries)
    more = f"<p>{text}</p>" if text else ""
    assert employer(path, "Welder | Norwood", head=named("Norwood"), header=header, more=more) is None


@pytest.mark.parametrize(
    "text",
    [
        "Our clients value that you visit them on site, and our client managers plan it with you.",
        "Each of our clients has a welder of their own with us.",
        "Wir suchen für unsere Werkstatt in Kiel einen Schweißer, der unsere Kunden berät.",
        "Voor onze klanten bouwen wij pompen.",
        "Vous travaillez avec nos clients dans toute la région.",
    ],
)
def test_the_customers_of_an_employer_make_it_no_agency(text: str) -> None:
    header = LOGO.format("Norwood")
    assert employer("/careers/12", "Welder", head=named("Norwood"), header=header, more=f"<p>{text}</p>") == "Norwood"


@pytest.mark.parametrize(
    "name",
    ["Norwood Recruitment", "Norwood Staffing Ltd", "Norwood Executive Search", "Hansen Personalvermittlung GmbH"],
)
@pytest.mark.parametrize("text", ["", "{} is looking for a welder in Leeds."])
def test_an_agency_that_names_no_client_is_not_the_employer(name: str, text: str) -> None:
    more = f"<p>{text.format(name)}</p>" if text else ""
    assert employer("/careers/12", f"Welder | {name}", head=named(name), header=LOGO.format(name), more=more) is None


def test_an_agency_is_the_employer_of_its_recruiters() -> None:
    name = "Norwood Staffing"
    page = (
        f"<html lang=en><title>Recruitment Consultant | {name}</title>{named(name)}<header>{LOGO.format(name)}</header>"
        f"<h1>Recruitment Consultant</h1>{TEXT}"
    )
    item = extract("jobPosting", page, "https://www.example.com/careers/12")
    assert item["hiringOrganization"]["name"] == name


@pytest.mark.parametrize(
    ("entries", "text", "name"),
    [
        (["About", "Contact"], "Send your letter to jobs@example.com.", "Brightwell Pumps"),
        (["About", "Contact"], "Send your letter to jobs@brightwell.example.", None),
        (["Search", "Log in"], "Send your letter to jobs@example.com.", None),
        (["About", "Contact", "Post a job"], "Send your letter to jobs@example.com.", None),
        (["About", "Contact"], "", None),
        (["About", "Contact"], "Acme Ltd needs a welder. Send your letter to jobs@example.com.", None),
        (["About", "Contact"], "Our client makes pumps. Send your letter to jobs@example.com.", None),
        (["About", "Contact"], "Brightwell Pumps Ltd makes pumps. Write to jobs@example.com.", "Brightwell Pumps"),
    ],
)
def test_a_site_that_takes_the_applications_is_that_of_the_employer(
    entries: list[str], text: str, name: str | None
) -> None:
    header = LOGO.format("Brightwell Pumps") + menu(*entries)
    assert employer("/jobs/12", "Welder | Brightwell Pumps", header=header, more=f"<p>{text}</p>") == name


def test_a_site_that_writes_of_a_job_as_that_of_others_is_not_the_employer() -> None:
    text = "<p>A maker of pumps needs a welder who joins housings. Questions about this advert to info@example.com.</p>"
    html = (
        f"<title>Welder | Leeds Hub</title><header>{LOGO.format('Leeds Hub')}{menu('About', 'Contact')}</header>"
        f"<main><h1>Welder</h1>{text}</main>"
    )
    assert "hiringOrganization" not in extract("jobPosting", html, "https://www.example.com/jobs/12")
