"""What job boards call things, in the languages of most of the web."""

from __future__ import annotations

import re
from typing import Final, Protocol

from scrapy_ext.server.extraction.auto.page.label_names import labels
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line

COMPANY = labels(
    r"company(?: name)?|(?:hiring )?organi[sz]ation|employer(?: name)?|hiring company|recruiter|agency",
    r"arbeitgeber|firma|unternehmen|bedrijf|werkgever|entreprise|employeur|soci[ée]t[ée]|empresa|empleador|azienda",
    r"virksomhed|arbeidsgiver|arbetsgivare|företag|pracodawca|работодатель|компания|会社名|企業名|公司",
)
LOCATION = labels(
    r"(?:job |work |office |primary )?locations?|(?:work)?place(?: of work)?|city|where|based in|area|region",
    r"(?:arbeits|einsatz|stand)ort|ort|standort|lieu(?: de travail)?|localisation|ubicaci[óo]n|lugar(?: de trabajo)?",
    r"localidad|sede|luogo(?: di lavoro)?|locatie|plaats|standplaats|local(?:idade|iza[çc][ãa]o)?|miejsce pracy",
    r"lokalizacja|sted|arbejdssted|arbeidssted|ort|plats|город|место работы|勤務地|工作地点|근무지",
)
SALARY = labels(
    r"(?:base |annual |gross )?(?:salary|pay|compensation|wages?|remuneration|rate)(?: range| rate| package| details)?",
    r"stipend|hourly rate|gehalt(?:sspanne)?|lohn|vergütung|salaire|r[ée]mun[ée]ration|salario|sueldo|retribuci[óo]n",
    r"stipendio|retribuzione|salaris|loon|sal[áa]rio|remunera[çc][ãa]o|wynagrodzenie|l[øo]nn?|l[öo]n|зарплата|оклад"
    r"|給与|薪资|급여",
)
TYPE = labels(
    r"(?:job|employment|contract|position|work)[ -]?types?|type(?: of (?:employment|contract|job))?"
    r"|employment(?: status)?",
    r"(?:work )?(?:hours|schedule)|time type|commitment|contract|anstellungsart|beschäftigungsart|arbeitszeit",
    r"vertragsart|type de contrat|contrat|tipo de (?:contrato|empleo|jornada|vaga)|jornada|contrato|tipo di contratto",
    r"dienstverband|contracttype|rodzaj umowy|wymiar pracy|тип занятости|занятость|雇用形態|職位類型|고용형태",
)
WORKPLACE = labels(
    r"workplace(?: type)?|work (?:mode|model|setting|arrangement)|remote(?: status| work)?|location type|home office",
    r"arbeitsmodell|homeoffice|t[ée]l[ée]travail|modalidad|teletrabajo|modalit[àa]|tryb pracy|формат работы",
)
IDENTIFIER = labels(
    r"(?:job |position )?(?:job|req(?:uisition)?|posting|position|vacancy|ref(?:erence)?|announcement"
    r"|opening)\s?(?:id|no|nr|number|code|#|ref(?:erence)?)\.?",
    r"ref(?:erence)?\.?(?: (?:no|number|code|id)\.?)?|id|(?:stellen|kenn)(?:nummer|ziffer|-?id)|referenz(?:nummer)?",
    r"r[ée]f[ée]rence(?: de l['’]offre)?|referencia|refer[êe]ncia|riferimento|vacaturenummer|numer ref\w*\.?",
)
POSTED = labels(
    r"(?:date )?(?:posted|published|listed|advertised|added)(?: on| date)?|(?:posting|publication|publish"
    r"|post) date|opening date",
    r"(?:veröffentlicht|online seit|publiziert)(?: am)?|eingestellt am|publi[ée]e? le|date de publication",
    r"publicad[oa](?: el)?|fecha de publicaci[óo]n|pubblicat[oa](?: il)?|data di pubblicazione|geplaatst(?: op)?"
    r"|data publikacji|dodano",
    r"опубликован[оа]|дата публикации|掲載日|发布日期",
)
DEADLINE = labels(
    r"(?:application )?(?:deadline|closing date|closes|close date|expir(?:es|y|ation)(?: date)?)(?: on)?"
    r"|apply (?:by|before|until)",
    r"valid (?:through|until)|applications? (?:close|due|deadline)(?: date)?|bewerbungs(?:frist|schluss)|bewerben bis",
    r"date limite(?: de candidature)?|fecha l[íi]mite|fecha de cierre|scadenza|data di scadenza|reageren voor"
    r"|sluitingsdatum",
    r"ans[øo]gningsfrist|s[øo]knadsfrist|sista ansökningsdag|termin|apply until|срок подачи|応募締切|截止日期",
)
START = labels(
    r"(?:job |expected |desired )?start(?:ing)?(?: date)?|begin(?:s|ning)?(?: date)?|eintrittsdatum|eintritt"
    r"|arbeitsbeginn|beginn",
    r"date de d[ée]but|prise de poste|fecha de inicio|incorporaci[óo]n|data di inizio|startdatum"
    r"|data rozpocz[ęe]cia|oppstart|tiltredelse",
)

COMPANY_NAMES: Final = ("company", "employer", "organization", "organisation", "arbeitgeber", "entreprise", "empresa")
COMPANY_NAME = re.compile(
    r"(?:^|[\s_-])(?:company|employer|(?:hiring-?)?organi[sz]ation|arbeitgeber|entreprise|empresa)"
    r"(?:[-_]?(?:name|title|link))?(?:$|\s)"
    r"|(?:company|employer|organi[sz]ation)[-_]?name|hiringorganization"
)
LOCATION_NAMES: Final = ("location", "standort", "lieu", "joblocation", "ubicacion")
LOCATION_NAME = re.compile(
    r"(?:^|[\s_-])(?:job-?)?(?:location|locations|standort|lieu|ubicacion)(?:[-_]?(?:name|text|label))?(?:$|\s)"
    r"|joblocation"
)
SALARY_NAMES: Final = ("salary", "compensation", "gehalt", "salaire", "salario", "pay-range", "payrange")
SALARY_NAME = re.compile(r"salar|compensation|gehalt|pay-?range")
#: A label that stands in one element with its value.
LEADING_LABEL = re.compile(r"^(?:[^\W\d][\w ]{2,25}\s?[:：]\s+|(?:at|by|in|bei|chez|en)\s)")

#: ``Cook at The Blue Door``, ``The Blue Door hiring Cook in Leeds, UK``, whatever follows them.
HIRING_TITLE = re.compile(
    r"^(?P<by>[^|–—]{2,60}?) (?:is )?(?:hiring|recrute|sucht|cerca"
    r"|busca)(?: an?)? (?P<job>[^|–—]{3,100}?)(?: in [^|–—]+)?(?:\s+[|–—-]\s.*)?$"
    r"|^(?P<title>[^|–—@]{3,100}?) (?:at|@|bei|chez) (?P<at>[^|–—,]{2,60}?)(?:,? in [^|–—]+)?(?:\s+[|–—-]\s.*)?$",
)
_PAGE = re.compile(
    r"\b(?:jobs?|careers?|vacanc(?:y|ies)|positions?|openings|hiring|stellen\w*|karriere|emplois?|empleos?|vagas?|lavoro"
    r"|praca|vacatures?|recruit\w*|(?:m/w/d)|вакансия|вакансии|работа)\b|求人|採用|招聘|채용",
    re.IGNORECASE,
)
APPLY = re.compile(
    r"(?:apply(?: (?:now|here|online|for this (?:job|position|role)|to this (?:job|position)|today"
    r"|on company (?:site|website)))?"
    r"|easy apply|(?:jetzt |online )?bewerben|postuler|candidater|inscribirme|aplicar|candidati|solliciteer(?: nu"
    r"| direct)?"
    r"|candidatar-se|aplikuj|откликнуться|応募する|立即申请|지원하기)\W*",
    re.IGNORECASE,
)
#: Headings of what is asked of candidates.
REQUIREMENTS = re.compile(
    r"(?:(?:job |key |minimum |basic |preferred |required |essential |candidate |your |our |the |main )*"
    r"(?:requirements?|qualifications?|skills?(?: (?:and|&) (?:experience|qualifications))?|experience"
    r"|must[- ]haves?|profile)"
    r"(?: required| needed| (?:and|&) \w+)*|what you(?:['’]ll| will)? (?:need|bring)|what we(?:['’]re"
    r"| are) looking for|who you are"
    r"|about you|you (?:have|bring|are)|ideal candidate|(?:dein|ihr|ihre|dei?ne) (?:profil|qualifikation(?:en)?"
    r"|anforderungen)"
    r"|(?:das bringst du mit|anforderungen|qualifikation(?:en)?|voraussetzungen|profil(?: recherch[ée])?|votre profil)"
    r"|comp[ée]tences(?: requises)?|requisitos(?: m[íi]nimos)?|requisiti|perfil|functie-eisen|wat (?:vragen wij"
    r"|breng je mee)"
    r"|wymagania|oczekiwania|kvalifikationer|kvalifikasjoner|требования|応募資格|任职要求|자격요건)\W*",
    re.IGNORECASE,
)

_TYPES: Final = (
    ("Full-time", r"full[-_ ]?time|vollzeit|temps plein|tiempo completo|jornada completa|tempo pieno|tempo integral"
     r"|voltijd|fulltime"
     r"|heltid|pe[łl]ny etat|полная занятость|正社員|全职|정규직"),
    ("Part-time", r"part[-_ ]?time|teilzeit|temps partiel|tiempo parcial|media jornada|tempo parziale"
     r"|meio per[íi]odo|deeltijd|parttime"
     r"|deltid|część etatu|частичная занятость|アルバイト|兼职"),
    ("Contract", r"contract(?:or)?|freelance|auftrag|ind[ée]pendant|契約社員|zzp"),
    ("Temporary", r"temp(?:orary)?|fixed[- ]term|seasonal|befristet|cdd|int[ée]rim|temporal|determinato|tijdelijk"),
    ("Permanent", r"permanent|unbefristet|festanstellung|cdi|indefinido|indeterminato|vast"),
    ("Internship", r"intern(?:ship)?|praktikum|stage|pr[áa]cticas|est[áa]gio|tirocinio|sta[żz]"),
    ("Apprenticeship", r"apprentice(?:ship)?|ausbildung|alternance|apprentissage"),
    ("Volunteer", r"volunteer|ehrenamt\w*|b[ée]n[ée]vol\w*|volunt[aá]ri\w*"),
    ("Per diem", r"per[-_ ]diem|prn|casual"),
)  # fmt: skip
_TYPE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _TYPES)
_REMOTE: Final = (
    ("hybrid", r"hybrid\w*|teilweise (?:im )?home ?office|t[ée]l[ée]travail partiel|partly remote|h[íi]brido|ibrido"),
    ("remote", r"(?:fully |100% |work )?remote(?:ly)?|work from (?:home|anywhere)|wfh|telecommut\w+|home ?office"
     r"|t[ée]l[ée]travail"
     r"|teletrabajo|remoto|a distancia|zdaln[ay]|praca zdalna|thuiswerken|удал[её]нн\w+(?: работа)?"
     r"|リモート|远程|재택"),
    ("on-site", r"on-?site|in[- ]office|in[- ]person|vor ort|sur site|presencial|in sede|op locatie|stacjonarn[ay]"
     r"|в офисе"),
)  # fmt: skip
_REMOTE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _REMOTE)
_NOT = re.compile(r"\b(?:no|not|non|kein|keine|pas)\b", re.IGNORECASE)


def is_of_jobs(page: Page) -> bool:
    """Whether the title or the address of a page says that it is about jobs."""
    return _PAGE.search(f"{page.title or ''} {page.url.replace('-', ' ')[:500]}") is not None


class Reading(Protocol):
    """Tells a value from a text; with ``whole``, from one that says hardly anything else."""

    def __call__(self, text: str, *, whole: bool = False) -> str | None:
        """The value, if there is one."""


def employment_type(text: str, *, whole: bool = False) -> str | None:
    """The types of employment in a text, as one; with ``whole``, of a text that says hardly anything else."""
    found = [(name, match) for name, words in _TYPE_WORDS if (match := words.search(text))]
    if whole and sum(len(match.group()) for _, match in found) < 0.6 * len(text):
        return None
    return ", ".join(name for name, _ in found) or None


def remote_status(text: str, *, whole: bool = False) -> str | None:
    """``remote``, ``hybrid`` or ``on-site``, as a text tells it; None where it says that it is not."""
    for name, words in _REMOTE_WORDS:
        match = words.search(text)
        if match and not _NOT.search(text) and (not whole or len(match.group()) >= 0.6 * len(text)):
            return name
    return None


def stated_type(job: Thing | None) -> str | None:
    """The type of employment of the markup: in words for the constants of schema.org, else as it is written."""
    texts = [one_line(text) for text in job.texts("employmentType")][:5] if job else []
    told = [employment_type(text.rpartition("/")[2]) or text for text in texts]
    return ", ".join(dict.fromkeys(told)) or None


def stated_remote(job: Thing | None) -> str | None:
    """``remote`` where the markup of a job says so."""
    stated = job.text("jobLocationType") if job else None
    return "remote" if stated and "TELECOMMUTE" in stated.upper() else remote_status(stated or "")
