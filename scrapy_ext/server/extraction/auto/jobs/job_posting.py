"""Job postings: the data of a page that offers one job.

Each field is taken from structured data where it is there, else by the labels, names and position of elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import Date, is_mostly_date, read
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.fields.page_dates import Dates
from scrapy_ext.server.extraction.auto.fields.price_notation import place_on
from scrapy_ext.server.extraction.auto.items import (
    BaseSalary,
    DetailsMetadata,
    HiringOrganization,
    JobLocation,
    JobPosting,
)
from scrapy_ext.server.extraction.auto.jobs.description import JobDescription, description_of, requirements_of
from scrapy_ext.server.extraction.auto.jobs.employer import Employer, named_apart
from scrapy_ext.server.extraction.auto.jobs.facts import (
    DatedLine,
    LabelledDates,
    date_in_facts,
    date_in_lines,
    dated_lines,
    place_in_facts,
)
from scrapy_ext.server.extraction.auto.jobs.names import JobFocus, TitleParts
from scrapy_ext.server.extraction.auto.jobs.places import (
    is_place,
    labelled_place,
    mapped_place,
    parts_between_bars,
    place_by_heading,
    remote_status_of_place,
    without_map_link,
)
from scrapy_ext.server.extraction.auto.jobs.salaries import Salaries
from scrapy_ext.server.extraction.auto.jobs.terms import (
    TextReader,
    is_of_jobs,
    relative_date,
    remote_status,
    remote_status_of_title,
    salary_in,
    salary_of_markup,
    stated_remote,
    stated_type,
    type_reader,
)
from scrapy_ext.server.extraction.auto.page import Page, Thing, node_text, now, one_line
from scrapy_ext.server.extraction.auto.page.labelled import Labels, LabelWords
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 120
#: Most words of a company in a heading; more are the rest of a sentence.
MAX_NAME_WORDS: Final = 7
MAX_LINE_LENGTH: Final = 40
MAX_NODES: Final = 30
#: Most locations of a job with several.
MAX_PLACES: Final = 20
#: Greatest distance from the heading, in elements, of a part that only its name or its words identify.
NEAR: Final = 120
#: Greatest distance, and length, of a line of facts: ``Leeds | Full-time``.
BESIDE: Final = 12
MAX_FACTS: Final = 120
#: Most jobs in the structured data of the page of one job; more are a list.
SEVERAL: Final = 3
#: Shortest description, in characters.
SHORT: Final = 200

_VOCABULARY: Final = load_vocabulary("jobs")
_LABELS: Final = LabelWords(
    _VOCABULARY, "company", "salary", "type", "workplace", "identifier", "posted", "deadline", "start", "location",
    "city_label", "region_label", "country_label",
)  # fmt: skip
_COMPANY_NAMES, _LOCATION_NAMES = map(_VOCABULARY.words, ("company_names", "location_names"))
_SALARY_NAMES: Final = _VOCABULARY.words("salary_names")
_COMPANY_NAME, _LOCATION_NAME, _SALARY_NAME = _VOCABULARY.patterns("company_name", "location_name", "salary_name")
#: A label in one element with its value.
_LEADING_LABEL = _VOCABULARY.pattern("leading_label")
#: ``Cook at The Blue Door``, ``The Blue Door hiring Cook in Leeds, UK``, whatever follows them.
_HIRING_TITLE = _VOCABULARY.pattern("hiring_title")
_APPLY = _VOCABULARY.caseless("apply")

_PUBLISHED: Final = ("datePosted", "datePublished")
_LISTS: Final = frozenset({"ul", "ol"})
_CONTROLS: Final = frozenset({"option", "label", "a"})
_SINGLE_ID = re.compile(r"[\w#][\w./#-]{1,39}")


def extract(page: Page) -> JobPosting:
    """Return the job posting of a page. Only ``url`` and ``metadata`` are always present."""
    return _Extraction(page).item()


class _Extraction:
    """One page with the parts of it that several fields need."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._jobs = page.markup.things("JobPosting")
        self._job = _main_job(page, self._jobs)
        self._first = page.sources.first
        self._page_place = place_on(page)
        stated = self._job.text("title", "name") if self._job else None
        self._focus = JobFocus(page, stated)
        self._labels = Labels(page, self._focus, _LABELS)
        self._titles = TitleParts(page, one_line(stated) or self._focus.heading_text)

    def item(self) -> JobPosting:
        page, job = self._page, self._job
        item = JobPosting(url=page.url, headline=headline_of(page, job, self._focus))
        item.jobTitle = self._first(
            "jobTitle",
            (origin(job, "title", "name"), lambda: one_line(job.text("title", "name")) if job else None),
            ("heading, title", lambda: self._title(self._focus.heading_text or item.headline)),
        )
        description = description_of(page, job, self._focus, item.headline)
        item.description, item.descriptionHtml = description.text, description.html
        if description.text:
            page.sources.note("description", description.source, description.node)
            page.sources.note("descriptionHtml", description.source, description.node)
        employer = Employer(page, self._focus, _LABELS, self._titles, description.text or "")
        item.requirements = requirements_of(page, job, self._focus)
        item.jobLocation = self._location(employer, description.text or "")
        item.hiringOrganization = self._organization(item, employer)
        item.baseSalary = self._salary()
        item.employmentType = self._employment_type()
        item.remoteStatus = self._remote_status(item)
        item.jobPostingId = self._identifier()
        self._set_dates(item)
        item.metadata = DetailsMetadata(dateDownloaded=now(), probability=self._probability(item, description))
        return item

    def _title(self, headline: str | None) -> str | None:
        """Return the heading without additions of titles ("at Company", the place); "(m/f/d)" stays."""
        match = _HIRING_TITLE.match(headline or "")
        return match["job"] or match["title"] if match else headline

    def _organization(self, item: JobPosting, employer: Employer) -> HiringOrganization | None:
        stated = next(iter(self._job.values("hiringOrganization")), None) if self._job else None
        if stated is not None and (name := one_line(text_of(stated))):
            self._page.sources.note("hiringOrganization", origin(self._job, "hiringOrganization"))
            identity = stated.text("identifier") if isinstance(stated, Thing) else None
            return HiringOrganization(name=name, nameRaw=name, id=identity)
        name_of = self._first(
            "hiringOrganization",
            ("title", lambda: self._titles.company(sure=True)),
            ("heading", lambda: named_apart(employer.of_heading(_company_of_heading(item.headline)), item)),
            ("label", lambda: named_apart(self._labelled("company"), item)),
            ("named part", lambda: named_apart(self._named(_COMPANY_NAME, _COMPANY_NAMES), item)),
            *employer.rules(item),
            form=lambda name: {"name": name, "nameRaw": name},
        )
        return HiringOrganization(name=name_of, nameRaw=name_of) if name_of else None

    def _location(self, employer: Employer, description: str) -> JobLocation | None:
        raw = self._first(
            "jobLocation",
            (origin(self._job, "jobLocation"), lambda: _places_of(self._job)),
            ("label", lambda: labelled_place(self._labels)),
            ("named part", lambda: self._named(_LOCATION_NAME, _LOCATION_NAMES, is_place)),
            ("title", self._titles.place),
            ("link to a map", lambda: mapped_place(self._page, self._focus)),
            ("line near the heading", lambda: self._place_by_heading(employer)),
            ("line below the heading", lambda: employer.below[1] if employer.below else None),
            ("line of facts", lambda: place_in_facts(self._page, self._focus, description)),
            form=lambda place: {"raw": place},
        )
        return JobLocation(raw=without_map_link(raw)) if raw else None

    def _place_by_heading(self, employer: Employer) -> str | None:
        """Return the line by the heading that is a place by its words, without the employer before it."""
        place = place_by_heading(self._focus)
        name = employer.below[0] if place and employer.below else None
        return place.removeprefix(f"{name}, ") if place and name else place

    def _salary(self) -> BaseSalary | None:
        salaries = Salaries(self._page, self._focus, self._labels)
        return self._first(
            "baseSalary",
            (origin(self._job, "baseSalary"), lambda: salary_of_markup(self._job, self._page_place)),
            ("label", salaries.labelled),
            ("label", salaries.labelled_in_thousands),
            ("named part", lambda: salary_in(self._named(_SALARY_NAME, _SALARY_NAMES), self._page_place)),
            ("line near the heading", salaries.of_lines),
            ("sentence about the salary", salaries.of_sentences),
        )

    def _employment_type(self) -> str | None:
        read_type = type_reader(self._page.language)
        return self._first(
            "employmentType",
            (origin(self._job, "employmentType"), lambda: stated_type(self._job)),
            ("label", lambda: read_type(self._labelled("type", read_type) or "")),
            ("line near the heading", lambda: self._line(read_type)),
        )

    def _remote_status(self, item: JobPosting) -> str | None:
        location = item.jobLocation.raw if item.jobLocation else None
        return self._first(
            "remoteStatus",
            (origin(self._job, "jobLocationType"), lambda: stated_remote(self._job)),
            ("label", lambda: remote_status(self._labelled("workplace", remote_status) or "")),
            # "Type of work" is a label of either.
            ("label of the type", lambda: remote_status(self._labelled("type", remote_status) or "")),
            ("location", lambda: remote_status_of_place(location or "")),
            ("title", lambda: remote_status_of_title(item.headline or "")),
            ("line near the heading", lambda: self._line(remote_status)),
        )

    def _identifier(self) -> str | None:
        def fits(text: str) -> bool:
            return _SINGLE_ID.fullmatch(text) is not None and any(letter.isdigit() for letter in text)

        return self._first(
            "jobPostingId",
            (origin(self._job, "identifier"), lambda: _identifier_of(self._job)),
            ("label", lambda: self._labels.value("identifier", fits)),
            ("attribute data-job-id", self._id_attribute),
        )

    def _id_attribute(self) -> str | None:
        for node in self._focus.path:
            for name in ("data-job-id", "data-jobid", "data-posting-id", "data-vacancy-id"):
                if _SINGLE_ID.fullmatch(value := (node.get(name) or "").strip()):
                    return value
        return None

    def _set_dates(self, item: JobPosting) -> None:
        page, job = self._page, self._job
        company = item.hiringOrganization.name if item.hiringOrganization else None
        place = item.jobLocation.raw if item.jobLocation else None
        labelled = LabelledDates(page, self._labels, item.jobTitle, company, place)
        dates = Dates(page, job, self._focus, labelled.is_of_other)
        published = self._first(
            "datePublished",
            (origin(job, "datePosted"), lambda: self._stated(*_PUBLISHED)),
            ("label", lambda: self._dated("posted") or self._posted_line(dates)),
            ("relative date by the heading", lambda: relative_date(self._focus)),
            ("date by the heading", lambda: dates.published),
            ("line of facts", lambda: date_in_facts(page, self._focus)),
            form=_iso,
        )
        modified = dates.modified
        valid = self._first(
            "validThrough",
            (origin(job, "validThrough"), lambda: self._stated("validThrough")),
            ("label", lambda: self._dated("deadline") or self._dated_line("deadline")),
            form=_iso,
        )
        start = self._first(
            "jobStartDate",
            (origin(job, "jobStartDate"), lambda: self._stated("jobStartDate")),
            ("label", lambda: self._dated("start") or self._dated_line("start")),
            form=_iso,
        )
        stated = job.properties if job else {}
        if published is not None and published == valid and "validThrough" not in stated:
            # The only date of the page is the deadline.
            published = None
        if published and valid and published.iso[:10] > valid.iso[:10] and not self._stated(*_PUBLISHED):
            # No job is published after its last day: it is the date of something else.
            published = None
        item.datePublished, item.datePublishedRaw = (
            (published.iso or None, published.raw) if published else (None, None)
        )
        item.dateModified, item.dateModifiedRaw = modified or (None, None)
        item.validThrough, item.validThroughRaw = valid or (None, None)
        item.jobStartDate, item.jobStartDateRaw = start or (None, None)

    def _stated(self, *names: str) -> Date | None:
        return read(self._job.text(*names), self._page) if self._job else None

    def _dated(self, name: str) -> Date | None:
        return read(self._labels.value(name, lambda text: read(text, self._page)), self._page)

    def _dated_line(self, name: str) -> Date | None:
        return date_in_lines(self._page, self._focus, self._dated_lines, self._labels, name)

    @cached_property
    def _dated_lines(self) -> list[DatedLine]:
        return dated_lines(self._focus)

    def _posted_line(self, dates: Dates) -> Date | None:
        """Return the date of a line that says so; an element with the same day may have its time."""
        found = self._dated_line("posted")
        exact = dates.published if found else None
        return exact if found and exact and exact.iso[:10] == found.iso[:10] else found

    def _labelled(self, name: str, fits: Callable[[str], object] = bool) -> str | None:
        return self._labels.value(name, lambda text: len(text) <= MAX_NAME_LENGTH and fits(text))

    def _named(self, whole: re.Pattern[str], parts: tuple[str, ...], fits: Callable[[str], bool] = bool) -> str | None:
        """Return the short text that fits, of the part with this name that is nearest to the heading."""
        found: list[tuple[int, str]] = []
        for node in self._page.named(*parts)[:MAX_NODES]:
            text = node_text(node, MAX_NAME_LENGTH + 1)
            distance = abs(self._focus.distance(node))
            if not 1 < len(text) <= MAX_NAME_LENGTH or not whole.search(self._page.names(node)) or distance > NEAR:
                continue
            text = one_line(_LEADING_LABEL.sub("", text))
            if (
                any(map(str.isalpha, text))
                and not is_mostly_date(text)
                and fits(text)
                and not _APPLY.fullmatch(text)
                and not self._focus.elsewhere(node)
                and node not in self._focus.path
            ):
                found.append((distance, text))
        return min(found)[1] if found else None

    def _line(self, reading: TextReader) -> str | None:
        """Return the value of a short line by the heading with little else, or of a part of a line of facts."""
        for node, text in self._focus.lines(NEAR, NEAR):
            if node.tag in _CONTROLS:
                continue
            is_of_facts = 0 <= self._focus.distance(node) <= BESIDE and len(text) <= MAX_FACTS
            parts = parts_between_bars(text) if is_of_facts else [text]
            values = (reading(part, whole=True) for part in parts if len(part) <= MAX_LINE_LENGTH)
            found = next(filter(None, values), None)
            if found and not self._focus.elsewhere(node):
                return found
        return None

    def _probability(self, item: JobPosting, description: JobDescription) -> float:
        if self._job is not None:
            return 0.98 if len(self._jobs) <= SEVERAL else 0.5
        signs = sum(
            bool(value)
            for value in (
                item.hiringOrganization,
                item.baseSalary,
                item.employmentType,
                item.remoteStatus or item.jobLocation,
                item.requirements,
                is_of_jobs(self._page),
                any(_APPLY.fullmatch(text) for _, text in self._page.lines),
            )
        )
        if len(description.text or "") < SHORT:
            return 0.05 + 0.05 * min(signs, 4)
        return round(min(0.9, 0.1 + 0.16 * signs), 2)


def _company_of_heading(heading: str | None) -> str | None:
    """Return the company of a heading that names it: ``Cook at The Blue Door``, not ``Cook at home``."""
    match = _HIRING_TITLE.match(heading or "")
    name = (match["by"] or match["at"]) if match else None
    is_name = name and not name[:1].islower() and len(name.split()) <= MAX_NAME_WORDS
    return name if is_name else None


def _iso(date: Date) -> str:
    return date.iso


def _main_job(page: Page, jobs: list[Thing]) -> Thing | None:
    """Return the job that the page is about: the one of its own URL, else the first, unless they are a list."""
    for job in jobs if len(jobs) > 1 else ():
        if page.is_at(page.link(job.text("url", "sameAs", "mainEntityOfPage") or job.id)):
            return job
    return jobs[0] if 0 < len(jobs) <= SEVERAL else None


def _places_of(job: Thing | None) -> str | None:
    """Return the locations of structured data in one text, separated by semicolons."""
    values = job.values("jobLocation", "applicantLocationRequirements") if job else []
    places = dict.fromkeys(place for value in values[:MAX_PLACES] for place in _places_in(value) if place)
    return "; ".join(islice(places, MAX_PLACES)) or None


def _places_in(value: str | Thing) -> list[str]:
    addresses = [value] if isinstance(value, str) else value.values("address")[:MAX_PLACES]
    return [place for address in addresses if (place := _place_of(address))] or [_place_of(value)]


def _place_of(address: str | Thing) -> str:
    if isinstance(address, str):
        return one_line(address)
    parts = [address.text("addressLocality"), address.text("addressRegion"), address.text("addressCountry")]
    return ", ".join(dict.fromkeys(one_line(part) for part in parts if part)) or one_line(text_of(address))


def _identifier_of(job: Thing | None) -> str | None:
    for value in job.values("identifier") if job else ():
        text = value if isinstance(value, str) else value.text("value", "@value", "propertyID")
        if text and len(one_line(text)) <= MAX_NAME_LENGTH:
            return one_line(text)
    return None
