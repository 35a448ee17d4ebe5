"""Labels, words and formats of jobs in many languages, on pages of one form."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.jobs.terms import employment_type, rate_in, remote_status


class Posting(NamedTuple):
    """A posting: its title, labels and values, and the salary as least, greatest, currency and rate."""

    title: str
    labels: tuple[str, str, str, str, str]
    place: str
    employment: str
    salary: str
    posted: str
    truth: tuple[str, str, str | None, str]


POSTINGS = {
    "en": Posting(
        "Nurse",
        ("Company", "Location", "Employment type", "Salary", "Posted"),
        "Leeds",
        "Full-time",
        "£30,000 - £35,000 per year",
        "12 March 2025",
        ("30000", "35000", "GBP", "annual"),
    ),
    "de": Posting(
        "Pflegekraft",
        ("Unternehmen", "Arbeitsort", "Anstellungsart", "Gehalt", "Veröffentlicht am"),
        "Leipzig",
        "Vollzeit",
        "3.200 € - 3.800 € pro Monat",
        "12. März 2025",
        ("3200", "3800", "EUR", "monthly"),
    ),
    "fr": Posting(
        "Infirmier",
        ("Entreprise", "Lieu", "Type de contrat", "Salaire", "Publié le"),
        "Lyon",
        "Temps plein",
        "2 500 € - 3 000 € par mois",
        "12 mars 2025",
        ("2500", "3000", "EUR", "monthly"),
    ),
    "es": Posting(
        "Enfermera",
        ("Empresa", "Ubicación", "Tipo de contrato", "Salario", "Publicado"),
        "Sevilla",
        "Jornada completa",
        "1.800 € - 2.200 € al mes",
        "12 de marzo de 2025",
        ("1800", "2200", "EUR", "monthly"),
    ),
    "pt": Posting(
        "Enfermeiro",
        ("Empresa", "Localização", "Tipo de contrato", "Salário", "Publicado em"),
        "Recife",
        "Tempo integral",
        "R$ 4.500,00 - R$ 5.200,00 por mês",
        "12 de março de 2025",
        ("4500", "5200", "BRL", "monthly"),
    ),
    "it": Posting(
        "Infermiere",
        ("Azienda", "Sede di lavoro", "Tipo di contratto", "Retribuzione", "Pubblicato il"),
        "Torino",
        "Tempo pieno",
        "28.000 € - 32.000 € annui",
        "12 marzo 2025",
        ("28000", "32000", "EUR", "annual"),
    ),
    "nl": Posting(
        "Verpleegkundige",
        ("Bedrijf", "Locatie", "Dienstverband", "Salaris", "Geplaatst op"),
        "Utrecht",
        "Fulltime",
        "€ 2.800 - € 3.600 per maand",
        "12 maart 2025",
        ("2800", "3600", "EUR", "monthly"),
    ),
    "sv": Posting(
        "Sjuksköterska",
        ("Företag", "Ort", "Anställningsform", "Lön", "Publicerad"),
        "Malmö",
        "Heltid",
        "35 000 - 40 000 kr/mån",
        "12 mars 2025",
        ("35000", "40000", "SEK", "monthly"),
    ),
    "da": Posting(
        "Sygeplejerske",
        ("Virksomhed", "Arbejdssted", "Ansættelsesform", "Løn", "Oprettet"),
        "Aarhus",
        "Fuldtid",
        "35.000 - 40.000 kr. pr. måned",
        "12. marts 2025",
        ("35000", "40000", "DKK", "monthly"),
    ),
    "nb": Posting(
        "Sykepleier",
        ("Arbeidsgiver", "Arbeidssted", "Ansettelsesform", "Lønn", "Publisert"),
        "Bergen",
        "Heltid",
        "500 000 - 600 000 kr per år",
        "12. mars 2025",
        ("500000", "600000", "NOK", "annual"),
    ),
    "fi": Posting(
        "Sairaanhoitaja",
        ("Yritys", "Sijainti", "Työsuhde", "Palkka", "Julkaistu"),
        "Turku",
        "Kokoaikainen",
        "2 800 - 3 200 €/kk",
        "12.3.2025",
        ("2800", "3200", "EUR", "monthly"),
    ),
    "pl": Posting(
        "Pielęgniarka",
        ("Firma", "Miejsce pracy", "Wymiar pracy", "Wynagrodzenie", "Data publikacji"),
        "Poznań",
        "Pełny etat",
        "6 000 - 7 500 zł / mies.",
        "12 marca 2025",
        ("6000", "7500", "PLN", "monthly"),
    ),
    "cs": Posting(
        "Zdravotní sestra",
        ("Společnost", "Místo pracoviště", "Typ úvazku", "Plat", "Zveřejněno"),
        "Brno",
        "Plný úvazek",
        "35 000 - 42 000 Kč / měsíc",
        "12. března 2025",
        ("35000", "42000", "CZK", "monthly"),
    ),
    "sk": Posting(
        "Zdravotná sestra",
        ("Spoločnosť", "Miesto práce", "Druh pracovného pomeru", "Plat", "Zverejnené"),
        "Košice",
        "Plný úväzok",
        "1 400 - 1 800 EUR/mesiac",
        "12. marca 2025",
        ("1400", "1800", "EUR", "monthly"),
    ),
    "hu": Posting(
        "Ápoló",
        ("Cég", "Munkavégzés helye", "Foglalkoztatás jellege", "Fizetés", "Közzétéve"),
        "Szeged",
        "Teljes munkaidő",
        "450 000 - 550 000 Ft / hó",
        "2025. március 12.",
        ("450000", "550000", "HUF", "monthly"),
    ),
    "ro": Posting(
        "Asistent medical",
        ("Companie", "Locație", "Tip job", "Salariu", "Publicat"),
        "Cluj-Napoca",
        "Normă întreagă",
        "4.500 - 5.500 lei / lună",
        "12 martie 2025",
        ("4500", "5500", "RON", "monthly"),
    ),
    "bg": Posting(
        "Медицинска сестра",
        ("Компания", "Местоположение", "Вид заетост", "Заплата", "Публикувана"),
        "Пловдив",
        "Пълно работно време",
        "1 800 - 2 200 лв. на месец",
        "12 март 2025",
        ("1800", "2200", "BGN", "monthly"),
    ),
    "ru": Posting(
        "Медсестра",
        ("Компания", "Город", "Тип занятости", "Зарплата", "Опубликовано"),
        "Казань",
        "Полная занятость",
        "от 60 000 до 80 000 ₽ в месяц",
        "12 марта 2025",
        ("60000", "80000", "RUB", "monthly"),
    ),
    "uk": Posting(
        "Медсестра",
        ("Компанія", "Місто", "Вид зайнятості", "Зарплата", "Опубліковано"),
        "Львів",
        "Повна зайнятість",
        "20 000 – 25 000 грн на місяць",
        "12 березня 2025",
        ("20000", "25000", "UAH", "monthly"),
    ),
    "el": Posting(
        "Νοσηλευτής",
        ("Εταιρεία", "Τοποθεσία", "Τύπος απασχόλησης", "Μισθός", "Δημοσιεύτηκε"),
        "Πάτρα",
        "Πλήρης απασχόληση",
        "1.100 € - 1.300 € τον μήνα",
        "12 Μαρτίου 2025",
        ("1100", "1300", "EUR", "monthly"),
    ),
    "tr": Posting(
        "Hemşire",
        ("Şirket", "Konum", "Çalışma şekli", "Maaş", "Yayınlanma tarihi"),
        "İzmir",
        "Tam zamanlı",
        "45.000 - 55.000 TL / ay",
        "12 Mart 2025",
        ("45000", "55000", "TRY", "monthly"),
    ),
    "hr": Posting(
        "Medicinska sestra",
        ("Poslodavac", "Mjesto rada", "Vrsta zaposlenja", "Plaća", "Objavljeno"),
        "Split",
        "Puno radno vrijeme",
        "1.200 € - 1.500 € mjesečno",
        "12. ožujka 2025.",
        ("1200", "1500", "EUR", "monthly"),
    ),
    "sr": Posting(
        "Medicinska sestra",
        ("Poslodavac", "Mesto rada", "Tip zaposlenja", "Plata", "Objavljeno"),
        "Niš",
        "Puno radno vreme",
        "90.000 - 110.000 RSD mesečno",
        "12. mart 2025.",
        ("90000", "110000", "RSD", "monthly"),
    ),
    "sl": Posting(
        "Medicinska sestra",
        ("Delodajalec", "Kraj dela", "Vrsta zaposlitve", "Plača", "Objavljeno"),
        "Maribor",
        "Polni delovni čas",
        "1.500 € - 1.900 € na mesec",
        "12. marec 2025",
        ("1500", "1900", "EUR", "monthly"),
    ),
    "lt": Posting(
        "Slaugytoja",
        ("Įmonė", "Vieta", "Darbo laikas", "Atlyginimas", "Paskelbta"),
        "Kaunas",
        "Visa darbo diena",
        "1 400 - 1 800 €/mėn.",
        "2025-03-12",
        ("1400", "1800", "EUR", "monthly"),
    ),
    "lv": Posting(
        "Medmāsa",
        ("Uzņēmums", "Vieta", "Darba laiks", "Alga", "Publicēts"),
        "Liepāja",
        "Pilna slodze",
        "1 200 - 1 500 €/mēn.",
        "12.03.2025",
        ("1200", "1500", "EUR", "monthly"),
    ),
    "et": Posting(
        "Õde",
        ("Ettevõte", "Asukoht", "Tööaeg", "Palk", "Avaldatud"),
        "Tartu",
        "Täistööaeg",
        "1 500 - 1 900 € kuus",
        "12.03.2025",
        ("1500", "1900", "EUR", "monthly"),
    ),
    "ar": Posting(
        "ممرضة",
        ("الشركة", "الموقع", "نوع الوظيفة", "الراتب", "تاريخ النشر"),
        "جدة",
        "دوام كامل",
        "٥٬٠٠٠ - ٧٬٠٠٠ ر.س شهريا",
        "12 مارس 2025",
        ("5000", "7000", "SAR", "monthly"),
    ),
    "fa": Posting(
        "پرستار",
        ("شرکت", "محل کار", "نوع همکاری", "حقوق", "تاریخ انتشار"),
        "شیراز",
        "تمام وقت",
        "۱۵٬۰۰۰٬۰۰۰ - ۲۰٬۰۰۰٬۰۰۰ تومان ماهانه",
        "۲۲ اسفند ۱۴۰۳",
        ("15000000", "20000000", None, "monthly"),
    ),
    "he": Posting(
        "אחות",
        ("חברה", "מיקום", "היקף משרה", "שכר", "פורסם"),
        "חיפה",
        "משרה מלאה",
        "9,000 - 11,000 ₪ לחודש",
        "12 במרץ 2025",
        ("9000", "11000", "ILS", "monthly"),
    ),
    "hi": Posting(
        "नर्स",
        ("कंपनी", "स्थान", "रोजगार का प्रकार", "वेतन", "प्रकाशित"),
        "पुणे",
        "पूर्णकालिक",
        "₹3,00,000 - ₹4,50,000 प्रति वर्ष",
        "12 मार्च 2025",
        ("300000", "450000", "INR", "annual"),
    ),
    "ja": Posting(
        "看護師",
        ("会社名", "勤務地", "雇用形態", "給与", "掲載日"),
        "大阪府大阪市",
        "正社員",
        "月給 250,000円 〜 300,000円",
        "2025年3月12日",
        ("250000", "300000", "JPY", "monthly"),
    ),
    "ko": Posting(
        "간호사",
        ("회사명", "근무지", "고용형태", "급여", "등록일"),
        "부산",
        "정규직",
        "연봉 3,200만원 ~ 4,000만원",
        "2025.03.12",
        ("32000000", "40000000", "KRW", "annual"),
    ),
    "zh": Posting(
        "护士",
        ("公司名称", "工作地点", "工作性质", "薪资", "发布时间"),
        "杭州",
        "全职",
        "8000-12000元/月",
        "2025年3月12日",
        ("8000", "12000", "CNY", "monthly"),
    ),
    "th": Posting(
        "พยาบาล",
        ("บริษัท", "สถานที่ทำงาน", "ประเภทงาน", "เงินเดือน", "วันที่ประกาศ"),
        "เชียงใหม่",
        "งานประจำ",
        "25,000 - 30,000 บาท/เดือน",
        "12 มีนาคม 2568",
        ("25000", "30000", "THB", "monthly"),
    ),
    "vi": Posting(
        "Điều dưỡng",
        ("Công ty", "Địa điểm làm việc", "Hình thức làm việc", "Mức lương", "Ngày đăng"),
        "Đà Nẵng",
        "Toàn thời gian",
        "10.000.000 - 15.000.000 VND/tháng",
        "12/03/2025",
        ("10000000", "15000000", "VND", "monthly"),
    ),
    "id": Posting(
        "Perawat",
        ("Perusahaan", "Lokasi", "Tipe pekerjaan", "Gaji", "Diposting"),
        "Bandung",
        "Penuh waktu",
        "Rp 5.000.000 - Rp 7.000.000 per bulan",
        "12 Maret 2025",
        ("5000000", "7000000", "IDR", "monthly"),
    ),
}


@pytest.mark.parametrize("language", POSTINGS)
def test_a_posting_is_read_by_its_labels_in_its_language(language: str) -> None:
    posting = POSTINGS[language]
    values = ("Aurora GmbH", posting.place, posting.employment, posting.salary, posting.posted)
    rows = "".join(f"<dt>{label}</dt><dd>{value}</dd>" for label, value in zip(posting.labels, values, strict=True))
    html = f"<html lang={language}><title>{posting.title}</title><h1>{posting.title}</h1><dl>{rows}</dl>"
    item = extract("jobPosting", html, "https://jobs.example.com/job/123")
    assert item["hiringOrganization"]["name"] == "Aurora GmbH"
    assert item["jobLocation"]["raw"] == posting.place
    assert item["employmentType"] == "Full-time"
    assert item["datePublished"][:10] == "2025-03-12"
    salary = item["baseSalary"]
    least, greatest, currency, rate = posting.truth
    assert (Decimal(salary["valueMin"]), Decimal(salary["valueMax"])) == (Decimal(least), Decimal(greatest))
    assert (salary.get("currency"), salary.get("rateType")) == (currency, rate)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Osa-aikainen", "Part-time"),
        ("Deltid", "Part-time"),
        ("Неполный день", "Part-time"),
        ("Неповна зайнятість", "Part-time"),
        ("Μερική απασχόληση", "Part-time"),
        ("دوام جزئي", "Part-time"),
        ("پاره\u200cوقت", "Part-time"),
        ("משרה חלקית", "Part-time"),
        ("Bán thời gian", "Part-time"),
        ("Paruh waktu", "Part-time"),
        ("พาร์ทไทม์", "Part-time"),
        ("パート", "Part-time"),
        ("계약직", "Contract"),
        ("Määräaikainen", "Temporary"),
        ("Határozatlan", "Permanent"),
        ("Стажировка", "Internship"),
        ("Πρακτική άσκηση", "Internship"),
        ("تدريب", "Internship"),
        ("实习", "Internship"),
        ("Wolontariat", "Volunteer"),
    ],
)
def test_types_of_employment_are_known_in_many_languages(text: str, kind: str) -> None:
    assert employment_type(text) == kind
    assert employment_type(text, whole=True) == kind


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("180 kr/time", "hourly"),
        ("15 €/tunti", "hourly"),
        ("180 Kč za hodinu", "hourly"),
        ("150 грн за годину", "hourly"),
        ("50 ₪ לשעה", "hourly"),
        ("시급 10,030원", "hourly"),
        ("25元/小时", "hourly"),
        ("Rp 150.000 per hari", "daily"),
        ("12 000 Ft / hét, heti fizetés", "weekly"),
        ("2 000 €/kk", "monthly"),
        ("45.000 TL/ay", "monthly"),
        ("30,000 บาท/เดือน", "monthly"),
        ("12 000元/月", "monthly"),
        ("36 000 лв. на година", "annual"),
        ("600 000 ₽ в год", "annual"),
        ("120.000 zł rocznie", "annual"),
        ("500 000 kr per år", "annual"),
        ("150 kr/timmen, minst 18 år", "hourly"),
        ("Denne stilling: 40.000 kr. om måneden", "monthly"),
        ("35 000 kr/mån", "monthly"),
        ("Rp 5.000.000 per bulan, 6 hari kerja, 8 jam kerja", "monthly"),
        ("5 000 zł w skali roku", "annual"),
        ("30 000 Kč/rok", "annual"),
        ("50 € denne", "daily"),
        ("연봉 4,000만원", "annual"),
    ],
)
def test_the_time_of_a_salary_is_known_in_many_languages(text: str, rate: str) -> None:
    assert rate_in(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "$30,000 for a full-time man",
        "£20,000, a fast-paced team",
        "€40,000 meeting goals",
        "40.000 kr. i denne stilling",
        "6 000 zł, praca od 2025 roku",
        "Rok założenia 1999, kapitał 5000 zł",
        "150 kr, mån-fre",
        "£3,000 at a jam factory",
    ],
)
def test_words_of_one_language_are_no_times_of_another(text: str) -> None:
    assert rate_in(text) is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Etätyö", "remote"),
        ("Дистанционная работа", "remote"),
        ("عن بعد", "remote"),
        ("在宅勤務", "remote"),
        ("Uzaktan çalışma", "remote"),
        ("Гибрид", "hybrid"),
        ("Hybrydowa", "hybrid"),
        ("하이브리드", "hybrid"),
    ],
)
def test_remote_work_is_known_in_many_languages(text: str, status: str) -> None:
    assert remote_status(text) == status


@pytest.mark.parametrize(
    ("title", "status"),
    [
        ("Hybrid Car Engineer", None),
        ("Mechanic (diesel, hybrid)", None),
        ("Hybrid Cloud Architect - Remote", "remote"),
        ("Mechaniker Elektro/Hybrid", None),
        ("Técnico de vehículo híbrido", None),
        ("Remote Sensing Scientist", None),
        ("Remote-control technician", None),
        ("Profesor de educación a distancia", None),
        ("Hybrid Software Engineer", None),
        ("Lamp Keeper (hybrid)", "hybrid"),
        ("Lamp Keeper - Hybrid", "hybrid"),
        ("Hybrid | Lamp Keeper", "hybrid"),
        ("Lamp Keeper, hybrid working, Leeds", "hybrid"),
        ("Lamp Keeper (Remote/Hybrid)", "hybrid"),
        ("Farero - trabajo híbrido", "hybrid"),
        ("Latarnik (praca hybrydowa)", "hybrid"),
        ("Remote Lamp Keeper", "remote"),
        ("Lamp Keeper Remote", "remote"),
    ],
)
def test_the_subject_of_a_job_is_not_its_place_of_work(title: str, status: str | None) -> None:
    html = f"<html lang=en><title>{title}</title><h1>{title}</h1><p>{title}, for two years.</p>"
    assert extract("jobPosting", html, "https://jobs.example.com/job/123").get("remoteStatus") == status


def test_a_line_about_hybrid_work_is_the_place_of_work() -> None:
    assert remote_status("Praca hybrydowa", whole=True) == "hybrid"


@pytest.mark.parametrize("line", ["Hybrid car", "Hybrid SUV"])
def test_a_line_about_something_hybrid_is_no_place_of_work(line: str) -> None:
    assert remote_status(line, whole=True) is None


@pytest.mark.parametrize(
    ("language", "row", "field"),
    [
        ("de", "Grad: Bachelor", "jobLocation"),
        ("en", "Grad: Physics", "jobLocation"),
        ("es", "Plata: 925 €", "baseSalary"),
        ("fr", "Plat: 12 €", "baseSalary"),
        ("ru", "Плата: 500 ₽", "baseSalary"),
        ("es", "Local: Planta baja", "jobLocation"),
        ("de", "Termin: 12.03.2025", "validThrough"),
    ],
)
def test_a_label_of_another_language_says_nothing(language: str, row: str, field: str) -> None:
    label, value = row.split(": ")
    rows = f"<table><tr><th>{label}</th><td>{value}</td></tr></table><p>{row}</p>"
    html = f"<html lang={language}><title>Lamp Keeper</title><h1>Lamp Keeper</h1>{rows}<p>We keep lamps.</p>"
    assert field not in extract("jobPosting", html, "https://jobs.example.com/job/123")


def test_a_label_counts_where_the_page_or_its_site_is_of_its_language() -> None:
    body = "<title>Svjetioničar</title><h1>Svjetioničar</h1><dl><dt>Grad</dt><dd>Zadar</dd></dl>"
    for language, url in (("hr", "https://jobs.example.com/1"), ("en", "https://posao.example.rs/1")):
        item = extract("jobPosting", f"<html lang={language}>{body}", url)
        assert item["jobLocation"]["raw"] == "Zadar"
    rows = "<title>Sargs</title><h1>Sargs</h1><dl><dt>Alga</dt><dd>1500 € mēnesī</dd></dl>"
    item = extract("jobPosting", f"<html lang=lv>{rows}", "https://jobs.example.com/1")
    assert item["baseSalary"]["raw"] == "1500 € mēnesī"


@pytest.mark.parametrize(
    "place", ["東京都 品川区 大崎駅 徒歩1分", "大阪府大阪市北区", "神奈川県横浜市", "浙江省杭州市", "杭州市西湖区"]
)
def test_a_line_by_the_heading_that_begins_with_a_prefecture_or_province_is_the_place(place: str) -> None:
    html = (
        f"<html lang=ja><title>看護師</title><h1>看護師</h1><p>{place}</p><p>夜勤のある病棟で働く方を探しています。</p>"
    )
    assert extract("jobPosting", html, "https://jobs.example.com/1")["jobLocation"]["raw"] == place
