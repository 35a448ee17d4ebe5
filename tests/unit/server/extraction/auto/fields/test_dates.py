"""Dates are read as people write them, and not where they could be something else."""

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date, read
from scrapy_ext.server.extraction.auto.fields.page_dates import Dates
from scrapy_ext.server.extraction.auto.page import Focus
from scrapy_ext.server.extraction.auto.page.page import Page


def day(text: str, language: str = "en") -> str | None:
    date = read(text, Page(f"<html lang={language}><p>x", "https://example.com/a"))
    return date.iso.partition("T")[0] if date else None


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Jan 12, 24", "2024-01-12"),
        ("January 3rd, '09", "2009-01-03"),
        ("Jan 12 ’13", "2013-01-12"),
        ("12 Jan 24", "2024-01-12"),
        ("12-Jan-24", "2024-01-12"),
        ("12-Jan-2024", "2024-01-12"),
        ("Thu Aug 03, 06 4:17 pm", "2006-08-03"),
        ("Posted: Dec. 3, 99 at 10:30", "1999-12-03"),
    ],
)
def test_years_of_two_digits_are_read_beside_the_name_of_a_month(text: str, iso: str) -> None:
    assert day(text) == iso
    assert is_mostly_date(text)


@pytest.mark.parametrize(
    ("text", "language", "iso"),
    [("12. März 24", "de", "2024-03-12"), ("3 févr. 21", "fr", "2021-02-03"), ("12 янв 19", "ru", "2019-01-12")],
)
def test_they_are_read_in_the_language_of_the_page(text: str, language: str, iso: str) -> None:
    assert day(text, language) == iso


@pytest.mark.parametrize(
    "text",
    [
        "Jan 12, 10:30", "Jan 12, 10 am", "May 12, 30 people", "March 3, 20 minutes", "12 May 24 hours", "12 Mark 24",
        "Jan 12 24", "2 Pack 24", "12 Jan 24%", "Jun 14, 15, 16", "Jun 14, 15 & 16", "Jun 14, 15",
    ],
)  # fmt: skip
def test_other_numbers_behind_a_day_are_no_years(text: str) -> None:
    assert day(text) is None


def moment(text: str, language: str = "") -> str | None:
    date = read(text, Page(f'<html lang="{language}"><p>x', "https://example.com/a"))
    return date.iso if date else None


@pytest.mark.parametrize(
    ("language", "text", "iso"),
    [
        ("ar", "٠٢:٠٠ الثلاثاء ١ / ١٢ / ٢٠٢٠", "2020-12-01"),
        ("ar", "٣ مارس ٢٠٢١", "2021-03-03"),
        ("ar", "3 كانون الثاني 2021", "2021-01-03"),
        ("bn", "১২ আগস্ট ২০২০", "2020-08-12"),
        ("ca", "12 d’agost de 2020", "2020-08-12"),
        ("el", "Τρίτη 3 Μαρτίου 2020", "2020-03-03"),
        ("fa", "دوشنبه ۲ تير ۱۳۹۹", "2020-06-22"),
        ("fa", "۱۳۹۹/۰۴/۰۲", "2020-06-22"),
        ("fi", "4. kesäkuuta 2020", "2020-06-04"),
        ("he", "12 באוגוסט 2020", "2020-08-12"),
        ("hi", "१६ अप्रैल २०२०", "2020-04-16"),
        ("hr", "3. listopada 2021.", "2021-10-03"),
        ("hu", "2020. június 4.", "2020-06-04"),
        ("ja", "令和2年8月12日", "2020-08-12"),
        ("ko", "2020. 8. 12.", "2020-08-12"),
        ("lt", "2020 m. birželio 4 d.", "2020-06-04"),
        ("lv", "2020. gada 4. jūnijs", "2020-06-04"),
        ("my", "၁၂ ဩဂုတ် ၂၀၂၀", "2020-08-12"),
        ("pl", "3 listopada 2021", "2021-11-03"),
        ("sr", "3. новембра 2021.", "2021-11-03"),
        ("th", "3 มี.ค. 2564", "2021-03-03"),
        ("th", "12 สิงหาคม พ.ศ. 2563", "2020-08-12"),
        ("tr", "12 Ağustos 2020", "2020-08-12"),
        ("vi", "ngày 12 tháng 8 năm 2020", "2020-08-12"),
        ("zh", "民國109年8月12日", "2020-08-12"),
    ],
)
def test_dates_are_read_in_the_notation_of_their_language(language: str, text: str, iso: str) -> None:
    assert day(text, language) == iso


@pytest.mark.parametrize(
    ("text", "iso"),
    [("15 августа 2016", "2016-08-15"), ("28 luglio 2020", "2020-07-28"), ("12 ağustos 2020", "2020-08-12")],
)
def test_names_of_months_are_read_on_pages_without_a_language(text: str, iso: str) -> None:
    assert day(text, "") == iso


def test_a_name_of_different_months_in_two_languages_is_no_date_without_a_language() -> None:
    assert day("3. listopada 2021", "") is None


@pytest.mark.parametrize("text", ["2020. 06. 04. 11:27", "2020. június 4., 11:27"])
def test_a_year_first_is_not_taken_for_an_hour_or_a_day(text: str) -> None:
    assert moment(text, "hu") == "2020-06-04T11:27:00"


@pytest.mark.parametrize(
    ("language", "text", "iso"),
    [
        ("el", "19 Αυγούστου 2020 9:02 μμ", "2020-08-19T21:02:00"),
        ("el", "19 Αυγούστου 2020 9:02 πμ", "2020-08-19T09:02:00"),
        ("ar", "4 يونيو 2020 04:30 م", "2020-06-04T16:30:00"),
        ("fa", "2 تير 1399 - 04:09:08 ب.ظ", "2020-06-22T16:09:08"),
    ],
)
def test_half_days_behind_a_time_are_read(language: str, text: str, iso: str) -> None:
    assert moment(text, language) == iso


def test_a_zone_in_brackets_behind_a_time_is_read() -> None:
    date = read("Thứ tư, 12/8/2020, 10:30 (GMT+7)", Page("<html lang=vi><p>x", "https://example.com/a"))
    assert date is not None
    assert date == ("2020-08-12T10:30:00+07:00", "12/8/2020, 10:30 (GMT+7)")


@pytest.mark.parametrize("text", ["12 März 1399", "31 اسفند 1399", "3 de cosas de 2020", "30 Şubat 2021"])
def test_days_that_no_calendar_has_are_no_dates(text: str) -> None:
    assert moment(text, "fa") is None


@pytest.mark.parametrize(
    "line",
    [
        "<p class=info>2025年1月14日 01時28分 (1月14日 01時40分更新)",
        "<p class=info>2025-01-14 01:28 | Updated 2025-01-15 09:00",
        "<p class=info>Publié le 14 janv. 2025 à 01:28 Mis à jour le 15 janv. 2025 à 09:00",
    ],
)
def test_a_line_with_both_dates_has_that_of_publication_first(line: str) -> None:
    page = Page(f"<html lang=fr><title>Le vent</title><body><h1>Le vent</h1>{line}</body>", "https://example.com/a")
    found = Dates(page, None, Focus(page, page.title)).published
    assert found is not None
    assert found.iso == "2025-01-14T01:28:00"


def test_the_date_of_a_card_of_another_page_is_not_that_of_the_page() -> None:
    card = "<div><h3><a href=/b>Harbour wall to be rebuilt in spring</a></h3><span class=date>2025-01-14</span></div>"
    page = Page(f"<title>News</title><body><h1>News</h1>{card}</body>", "https://example.com/news")
    assert Dates(page, None, Focus(page, page.title)).published is None


def test_the_label_of_a_date_counts_far_from_the_heading() -> None:
    far = "<i></i>" * 120
    page = Page(
        f"<title>Oro</title><body><h1>Oro</h1>{far}<p>Publicerat: 3 april, 2021</body>", "https://example.com/a"
    )
    found = Dates(page, None, Focus(page, page.title)).published
    assert found is not None
    assert found.iso == "2021-04-03T00:00:00"


@pytest.mark.parametrize(
    "name",
    [
        "2022 BMW 3 Series", "2010 Barolo 1", "2024 election 10 things to know", "2024 Topps 1 Hobby Box",
        "GALAXY TAB 7 2020", "Room 12, 2024", "MacBook Pro 14 2023", "iPad Pro 11, 2020",
    ],
)  # fmt: skip
def test_a_name_with_a_year_and_a_number_is_no_date(name: str) -> None:
    assert not is_mostly_date(name)
    assert not is_mostly_date(name, "en")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("2024 Jun 5", None), ("2024. május 5.", None), ("20 lip 2020", None), ("Posted 5 Okt 2020", None),
        ("20 lip 2020", "pl"), ("14 مرداد 1402", "fa"), ("5 พ.ค. 2567", "th"), ("5 d'abril de 2024", "ca"),
    ],
)  # fmt: skip
def test_a_line_with_a_month_is_a_date(text: str, language: str | None) -> None:
    assert is_mostly_date(text, language)


@pytest.mark.parametrize(
    "name",
    [
        "MacBook Pro 14 2023", "Philips LED 24 2023", "Intel Gen 12 2023", "5 Set 2019", "Mars 18 2021", "10 out 2020",
        "iPad Pro 11, 2020", "2023 Pro 14", "12 Set 24",
    ],
)  # fmt: skip
def test_short_months_of_other_languages_are_none(name: str) -> None:
    assert day(name) is None


@pytest.mark.parametrize(
    ("text", "language", "iso"),
    [
        ("12 März 2020", "en", "2020-03-12"), ("3 janvier 2020", "en", "2020-01-03"),
        ("5 Oct 2020", "cs", "2020-10-05"),
        ("5. pro 2020", "cs", "2020-12-05"), ("5. okt 2020", "no", "2020-10-05"), ("5 Set 2019", "it", "2019-09-05"),
    ],
)  # fmt: skip
def test_months_are_read_in_the_language_of_the_page_then_in_english(text: str, language: str, iso: str) -> None:
    assert day(text, language) == iso


@pytest.mark.parametrize(
    "name", ["MacBook Pro 14 2023", "Studio Led 19 2021", "2023 Pro 14", "Best of 5 Set 2019 final"]
)
def test_names_are_no_dates_without_a_language(name: str) -> None:
    assert moment(name) is None


def test_short_months_are_read_without_a_language() -> None:
    assert moment("Posted 5 Okt 2020") == "2020-10-05T00:00:00"


@pytest.mark.parametrize(
    ("text", "language", "iso"),
    [
        ("May 5, 2024 10:00 CH", "en", "2024-05-05T10:00:00"),
        ("May 5, 2024 12:30 SA", "en", "2024-05-05T12:30:00"),
        ("5 tháng 5, 2024 10:00 CH", "vi", "2024-05-05T22:00:00"),
        ("5 מאי 2024 12:30 קודם הצהריים", "he", "2024-05-05T00:30:00"),
    ],
)
def test_halves_of_the_day_are_those_of_the_language(text: str, language: str, iso: str) -> None:
    assert moment(text, language) == iso


TEXT = (
    "<p>The council has counted the stones of the harbour wall, and the masons begin in spring, as they did before.</p>"
)


@pytest.mark.parametrize(
    ("between", "name", "found"),
    [
        ("<i></i>" * 60, "date", True),
        (TEXT + "<i></i>" * 60, "date", True),
        (TEXT * 3 + "<i></i>" * 60, "date", False),
        ("<i></i>" * 60, "event-date", False),
    ],
)
def test_a_date_far_from_the_heading_stands_before_the_text(between: str, name: str, found: bool) -> None:
    html = f"<title>The wall</title><h1>The wall</h1>{between}<div class={name}>May 5, 2024</div>{TEXT * 3}"
    page = Page(html, "https://harbour.example/wall")
    assert (Dates(page, None, Focus(page, page.title)).published is not None) is found


@pytest.mark.parametrize(
    ("line", "iso", "raw"),
    [
        ("May 5, 2024 10:00, Updated 12:00", "2024-05-05T12:00:00", "Updated 12:00"),
        ("May 5, 2024 10:00 | Updated: 13:15 GMT", "2024-05-05T13:15:00Z", "Updated: 13:15 GMT"),
        ("May 5, 2024 10:00, Updated May 7, 2024 9:00", "2024-05-07T09:00:00", "May 7, 2024 9:00"),
    ],
)
def test_the_time_of_a_change_is_that_of_the_day_named_before(line: str, iso: str, raw: str) -> None:
    page = Page(
        f"<html lang=en><title>The wall</title><h1>The wall</h1><p class=meta>{line}</p>", "https://a.example/b"
    )
    changed = Dates(page, None, Focus(page, page.title)).modified
    assert changed is not None
    assert (changed.iso, changed.raw) == (iso, raw)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Wed, 05/03/2023 - 09:15", "2023-05-03T09:15:00"),
        ("Sunday 05/03/2023", "2023-03-05T00:00:00"),
        # Both are a Tuesday.
        ("Tue, 07/11/2023 - 17:57", None),
        ("05/03/2023", None),
        ("2024年5月3日（金）15:15", "2024-05-03T15:15:00"),
        ("2024.05.03. 오후 3:15", "2024-05-03T15:15:00"),
        ("2024ko maiatzaren 3an", "2024-05-03T00:00:00"),
    ],
)
def test_the_day_of_the_week_decides_and_parts_no_time(text: str, iso: str | None) -> None:
    assert moment(text) == iso


@pytest.mark.parametrize(
    ("others", "iso"),
    [
        ("<li>09-13-2020", "2020-09-11T00:00:00"),
        ("<li>13/09/2020", "2020-11-09T00:00:00"),
        ("<li>09-13-2020<li>13-09-2020", None),
        ("<li>09-12-2020", None),
        ("<p>The form of 13/09/2020 was sent back to everybody who had asked for one.", None),
    ],
)
def test_other_dates_of_a_page_show_the_order_of_day_and_month(others: str, iso: str | None) -> None:
    date = read("09-11-2020", Page(f"<html lang=en><ul><li>09-11-2020{others}</ul>", "https://example.com/a"))
    assert (date.iso if date else None) == iso


TEXT = "The old lock on the east canal has a new gate of oak, and boats may pass again after a pause of two years. " * 5


@pytest.mark.parametrize(
    ("path", "line", "published", "modified"),
    [
        (
            "/a",
            "This story was first published on Jul 25, 2020 and last updated on Sep 5, 2020.",
            "2020-07-25",
            "2020-09-05",
        ),
        ("/a", "The report was published on Jul 25, 2020.", None, None),
        ("/a", "The rule of Jul 25, 2020 was updated on Sep 5, 2020.", None, None),
        ("/a", "This page was last edited on 18 April 2020, at 00:05 (UTC).", None, "2020-04-18"),
        ("/2024/05/03/gate", "By Ada Berg", "2024-05-03", None),
        ("/2024-05-03/gate", "By Ada Berg", "2024-05-03", None),
        ("/2024/05/03/", "By Ada Berg", None, None),
        ("/2024/05/33/gate", "By Ada Berg", None, None),
        ("/docs/2024-05-03-release", "By Ada Berg", None, None),
        ("/a", "<blockquote>The gate is in. <a href=/m>April 2, 2019</a></blockquote>", None, None),
    ],
)
def test_dates_of_sentences_and_addresses(path: str, line: str, published: str | None, modified: str | None) -> None:
    page = Page(f"<html lang=en><h1>The gate</h1><p>{line}</p><p>{TEXT}</p>", f"https://example.com{path}")
    dates = Dates(page, None, Focus(page, "The gate"))
    assert (dates.published and dates.published.iso[:10]) == published
    assert (dates.modified and dates.modified.iso[:10]) == modified


@pytest.mark.parametrize(
    ("text", "language", "iso"),
    [
        ("Friday, 05/04/2024", "en-US", "2024-04-05"),
        ("Saturday, 05/04/2024", "en-US", "2024-05-04"),
        ("Saturday, 05/04/2024", "en-GB", "2024-05-04"),
        # A day of the week that fits neither leaves the order of the country.
        ("Monday, 05/04/2024", "en-GB", "2024-04-05"),
        ("Monday, 05/04/2024", "en", None),
    ],
)
def test_the_day_of_the_week_decides_before_the_country(text: str, language: str, iso: str | None) -> None:
    assert day(text, language) == iso


@pytest.mark.parametrize(
    ("line", "published"),
    [
        ("Ada Berg, 03.05.24, 10:15 Uhr", "2024-05-03"),
        ("Ada Berg | 3 May 2024 10:15", "2024-05-03"),
        ("Konzert Stadthalle 03.05.2024, 20:00 Uhr", None),
    ],
)
def test_a_date_behind_a_name_and_a_sign_is_that_of_publication(line: str, published: str | None) -> None:
    page = Page(f"<html lang=de><h1>The gate</h1><p>{line}</p><p>{TEXT}</p>", "https://example.com/a")
    date = Dates(page, None, Focus(page, "The gate")).published
    assert (date and date.iso[:10]) == published


@pytest.mark.parametrize(
    ("language", "line", "published"),
    [
        ("fi", "Julkaistu tiistaina 27. lokakuuta 2015 klo 9.30", "2015-10-27T09:30:00"),
        ("en", "Published on Tuesday, 27 October 2015 at 9.30am", "2015-10-27T09:30:00"),
        ("en", "9:15 AM NZST, Wed 5 June 2024", "2024-06-05T09:15:00+12:00"),
        ("lt", "2018 m. sausio 18 d. 10:20", "2018-01-18T10:20:00"),
        ("ca", "27/11/2017 a les 10:19h", "2017-11-27T10:19:00"),
        ("sv", "5 maj ’24 kl 10.30", "2024-05-05T10:30:00"),
    ],
)
def test_a_date_is_read_with_the_words_around_it(language: str, line: str, published: str) -> None:
    page = Page(f"<html lang={language}><h1>The gate</h1><p>{line}</p><p>{TEXT}</p>", "https://example.com/a")
    date = Dates(page, None, Focus(page, "The gate")).published
    assert date is not None
    assert date.iso == published


@pytest.mark.parametrize(
    ("language", "line", "published"),
    [
        ("en", "Application deadline: 3 May 2024", None),
        ("fr", "Date limite mardi 3 mai 2024", None),
        ("de", "Bewerbungsschluss: Freitag, 3. Mai 2024", None),
        ("en", "Posted May 1, 2024. Apply by May 3, 2024", "2024-05-01"),
    ],
)
def test_the_last_day_of_something_is_no_date_of_publication(language: str, line: str, published: str | None) -> None:
    page = Page(f"<html lang={language}><h1>A</h1><p class=meta>{line}</p><p>{TEXT}</p>", "https://example.com/a")
    date = Dates(page, None, Focus(page, "A")).published
    assert (date and date.iso[:10]) == published


def test_a_line_whose_words_are_in_the_text_is_that_of_an_event() -> None:
    line = "Konzert Stadthalle, 03.05.2024, 20:00 Uhr"
    text = "Das Konzert in der Stadthalle beginnt um acht, und wer zu spät kommt, hört die zweite Hälfte."
    page = Page(f"<html lang=de><h1>The gate</h1><p>{line}</p><p>{text}</p>", "https://example.com/a")
    assert Dates(page, None, Focus(page, "The gate")).published is None


def test_the_value_of_a_change_is_not_the_date_of_publication_that_its_text_has() -> None:
    line = "<time itemprop=dateModified datetime=2024-05-05T10:00>Published May 3, 2024, updated May 5, 2024</time>"
    item = extract(
        "article", f"<html lang=en><title>The wall</title><h1>The wall</h1><p>{line}</p>", "https://e.example/a"
    )
    assert (item["datePublished"], item["dateModified"]) == ("2024-05-03T00:00:00", "2024-05-05T10:00:00")


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Fri May  3 10:15:00 2024", "2024-05-03T10:15:00"),
        ("Fri May 3 10:15:00 UTC 2024", "2024-05-03T10:15:00Z"),
        ("Fri May 3 10:15:00 CEST 2024", "2024-05-03T10:15:00+02:00"),
    ],
)
def test_the_time_may_stand_before_the_year(text: str, iso: str) -> None:
    date = read(text, Page("<html lang=en><p>x", "https://example.com/a"))
    assert date is not None
    assert date.iso == iso


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Published: 5 May 2024 · 3:45", "2024-05-05T03:45:00"),
        ("5 May 2024 · 3:45", "2024-05-05T00:00:00"),
        ("Outdated: 5 May 2024 · 3:45", "2024-05-05T00:00:00"),
    ],
)
def test_a_time_apart_from_a_day_counts_behind_a_word_for_the_publication(text: str, iso: str) -> None:
    date = read(text, Page("<html lang=en><p>x", "https://example.com/a"))
    assert date is not None
    assert date.iso == iso


@pytest.mark.parametrize(
    "line", ["Town Hall, 3 May 2024, 8 pm", "Since May 3, 2024 in new hands", "Ab 3. Mai 2024", "Concert: 3 May 2024"]
)
def test_the_day_of_an_event_or_of_a_change_is_not_that_of_the_page(line: str) -> None:
    html = f"<h1>Harbour choir</h1><p>{line}</p><p>The choir sings songs of the sea in the old hall.</p>"
    page = Page(f"<html lang=en><title>Harbour choir</title><body>{html}", "https://town.example/choir")
    assert Dates(page, None, Focus(page, "Harbour choir")).published is None


@pytest.mark.parametrize(
    ("lang", "lines", "day"),
    [
        ("en", "<p>Received: 3 May 2024; Published: 9 June 2024</p>", "2024-06-09"),
        ("en", "<p>Published: 9 June 2024; Received: 3 May 2024</p>", "2024-06-09"),
        ("en", "<p>Received 3 May 2024 | Accepted 1 June 2024 | Published online 9 June 2024</p>", "2024-06-09"),
        ("en", "<ul><li>Received: 3 May 2024<li>Revised: 20 May 2024<li>Published: 9 June 2024</ul>", "2024-06-09"),
        ("de", "<p>Eingegangen: 3. Mai 2024; Veröffentlicht: 9. Juni 2024</p>", "2024-06-09"),
        ("fr", "<p>Reçu le 3 mai 2024 ; publié le 9 juin 2024</p>", "2024-06-09"),
        ("es", "<p>Recibido: 3 de mayo de 2024. Publicado: 9 de junio de 2024</p>", "2024-06-09"),
        ("it", "<p>Ricevuto: 3 maggio 2024; Pubblicato: 9 giugno 2024</p>", "2024-06-09"),
        ("pt", "<p>Recebido em 3 de maio de 2024; publicado em 9 de junho de 2024</p>", "2024-06-09"),
        ("en", "<p>Received: 3 May 2024</p>", None),
        ("en", "<p>Submitted: 3 May 2024; Accepted: 9 June 2024</p>", None),
        ("en", "<p>The letter was received 3 May 2024 and published 9 June 2024 in the paper.</p>", None),
    ],
)
def test_the_receipt_of_a_manuscript_is_not_its_publication(lang: str, lines: str, day: str | None) -> None:
    html = f"<h1>Harbour choir</h1>{lines}<p>The choir sings songs of the sea in the old hall.</p>"
    page = Page(f"<html lang={lang}><title>Harbour choir</title><body>{html}", "https://town.example/choir")
    date = Dates(page, None, Focus(page, "Harbour choir")).published
    assert (date.iso[:10] if date else None) == day


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("de", "Am 3. Mai 2024 um 10:30 Uhr"),
        ("de", "Am Freitag, 3. Mai 2024 um 10:30 Uhr"),
        ("de", "Am Freitag, dem 3. Mai 2024, um 10.30 Uhr"),
        ("de", "Geschrieben am 3. Mai 2024 um 10:30 Uhr"),
        ("de", "Am 3. Mai 2024 um 10:30 Uhr von Ida Holm"),
        ("de", "Am 3. Mai 2024 um 10:30 Uhr, aktualisiert am 4. Mai 2024 um 9:00 Uhr"),
        ("fr", "Le 3 mai 2024 à 10h30"),
        ("fr", "Le vendredi 3 mai 2024 à 10 h 30"),
        ("fr", "Le vendredi 3 mai 2024 à 10 h 30 par Ida Holm"),
        ("fr", "Mis en ligne le 3 mai 2024 à 10h30"),
        ("es", "El 3 de mayo de 2024 a las 10:30"),
        ("es", "El viernes, 3 de mayo de 2024 a las 10:30 h"),
        ("it", "Il 3 maggio 2024 alle 10:30"),
        ("it", "Venerdì 3 maggio 2024 alle ore 10:30"),
        ("pt", "Sexta-feira, 3 de maio de 2024, às 10h30"),
        ("nl", "3 mei 2024 om 10:30"),
        ("nl", "Op vrijdag 3 mei 2024 om 10:30 uur"),
        ("sv", "3 maj 2024 kl. 10.30"),
        ("sv", "Den 3 maj 2024 klockan 10.30"),
        ("da", "Fredag den 3. maj 2024 kl. 10.30"),
        ("nb", "Fredag 3. mai 2024 klokken 10:30"),
        ("fi", "Perjantaina 3.5.2024 klo 10.30"),
        ("pl", "Piątek, 3 maja 2024 o 10:30"),
        ("cs", "Pátek 3. května 2024 v 10:30"),
        ("ro", "Pe 3 mai 2024, ora 10:30"),
        ("hu", "2024. május 3., péntek 10:30"),
        ("tr", "3 Mayıs 2024 Cuma 10:30"),
        ("ru", "3 мая 2024, 10:30"),
        ("zh", "2024年5月3日 10:30"),
        ("zh", "2024年5月3日 星期五 10:30"),
        ("en", "On Friday, May 3, 2024 at 10:30 am"),
    ],
)
def test_a_day_with_its_time_at_the_head_is_the_date_and_no_text(lang: str, line: str) -> None:
    text = "<p>The choir of the harbour sings songs of the sea in the old hall, and has done so for years.</p>" * 2
    html = f"<title>Harbour choir</title><main><h1>Harbour choir</h1><p>{line}</p>{text}</main>"
    item = extract("article", f"<html lang={lang}>{html}", "https://town.example/choir")
    assert item["datePublished"] == "2024-05-03T10:30:00"
    assert line not in item["articleBody"]


@pytest.mark.parametrize(
    "line", ["Concert on Friday, May 3, 2024 at 8 pm", "Treffen am Freitag, dem 3. Mai 2024, um 10:30 Uhr"]
)
def test_other_words_before_a_day_with_its_time_are_an_event(line: str) -> None:
    assert not is_mostly_date(line)


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("en", "On 3 May 2024 at 10:30 the council met in the hall."),
        ("en", "On 3 May 2024 the plan was published, and it was revised on 4 May 2025."),
        ("en", "On May 3, 2024 the council edited the plan of June 4, 2023"),
        ("en", "3 May 2024: the rules of 4 June 2023 were corrected."),
        ("fr", "Le 3 mai 2024, la loi du 4 juin 2023 a été modifiée."),
        ("de", "Am 3. Mai 2024 trafen sich die Räte im Saal."),
        ("de", "Am 3. Mai 2024 wurde der Plan vom 4. Juni 2023 geändert."),
        ("es", "El 3 de mayo de 2024 fue modificado el plan de 4 de junio de 2023."),
    ],
)
def test_a_first_sentence_that_begins_with_a_day_is_of_the_text(lang: str, line: str) -> None:
    text = "<p>The choir of the harbour sings songs of the sea in the old hall, and has done so for years.</p>" * 2
    html = f"<title>Harbour choir</title><main><h1>Harbour choir</h1><p>{line}</p>{text}</main>"
    assert line in extract("article", f"<html lang={lang}>{html}", "https://town.example/choir")["articleBody"]
