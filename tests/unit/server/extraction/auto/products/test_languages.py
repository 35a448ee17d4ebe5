"""Prices, currencies and words of the stock in many languages, on pages of one form without names or markup."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.products.offers import availability_in

#: Countries whose currency has a sign of several.
COUNTRIES: Final = {"da": "dk", "is": "is", "nb": "no", "pt": "com.br", "sv": "se", "ur": "pk"}
#: Language, price as shown, amount, currency, words of goods in stock and of others.
OFFERS: Final = [
    ("tr", "₺1.299,90", "1299.90", "TRY", "Stokta var", "Tükendi"),
    ("cs", "1 299 Kč", "1299", "CZK", "Skladem", "Není skladem"),
    ("sk", "1 299,00 €", "1299.00", "EUR", "Na sklade", "Vypredané"),
    ("pt", "R$ 1.299,90", "1299.90", "BRL", "Em estoque", "Produto indisponível"),
    ("fa", "۱٬۲۹۹٬۰۰۰ تومان", "1299000", None, "موجود", "ناموجود"),
    ("ar", "١٬٢٩٩٫٥٠ ر.س", "1299.50", "SAR", "متوفر في المخزون", "غير متوفر"),
    ("ar", "\u200f1,299.50\u00a0ر.س.\u200f", "1299.50", "SAR", "متوفر", "نفدت الكمية"),
    ("he", "\u200f1,299.00 ₪", "1299.00", "ILS", "במלאי", "אזל מהמלאי"),
    ("hi", "₹1,23,456", "123456", "INR", "स्टॉक में", "स्टॉक में नहीं है"),
    ("bn", "৳১,২৯৯", "1299", "BDT", "স্টকে আছে", "স্টক নেই"),
    ("pl", "1 299,00 zł", "1299.00", "PLN", "Dostępny", "Produkt niedostępny"),
    ("ro", "1.299,99 lei", "1299.99", "RON", "În stoc", "Stoc epuizat"),
    ("hu", "12 990 Ft", "12990", "HUF", "Raktáron", "Nincs raktáron"),
    ("bg", "1 299,00 лв.", "1299.00", "BGN", "В наличност", "Няма в наличност"),
    ("ru", "12 990 ₽", "12990", "RUB", "В наличии", "Нет в наличии"),
    ("uk", "1 299 ₴", "1299", "UAH", "Є в наявності", "Немає в наявності"),
    ("el", "1.299,00 €", "1299.00", "EUR", "Διαθέσιμο", "Εξαντλημένο"),
    ("sr", "12.990,00 RSD", "12990.00", "RSD", "Na stanju", "Nema na stanju"),
    ("hr", "1.299,00 €", "1299.00", "EUR", "Dostupno", "Rasprodano"),
    ("sl", "1.299,00 €", "1299.00", "EUR", "Na zalogi", "Ni na zalogi"),
    ("lt", "1 299,00 €", "1299.00", "EUR", "Yra sandėlyje", "Išparduota"),
    ("lv", "1 299,00 €", "1299.00", "EUR", "Pieejams", "Nav pieejams"),
    ("et", "1 299,00 €", "1299.00", "EUR", "Laos", "Läbi müüdud"),
    ("fi", "1 299,00 €", "1299.00", "EUR", "Varastossa", "Loppuunmyyty"),
    ("sv", "1 299 kr", "1299", "SEK", "I lager", "Slut i lager"),
    ("da", "1.299,00 kr.", "1299.00", "DKK", "På lager", "Udsolgt"),
    ("nb", "kr 1 299,-", "1299", "NOK", "På lager", "Utsolgt"),
    ("nl", "€ 1.299,-", "1299", "EUR", "Op voorraad", "Uitverkocht"),
    ("fr", "1 299,00 €", "1299.00", "EUR", "En stock", "Rupture de stock"),
    ("it", "1.299,00 €", "1299.00", "EUR", "Disponibile", "Esaurito"),
    ("es", "1.299,00 €", "1299.00", "EUR", "En stock", "Agotado"),
    ("ja", "¥12,990（税込）", "12990", "JPY", "在庫あり", "在庫切れ"),
    ("ko", "12,990원", "12990", "KRW", "재고 있음", "품절"),
    ("zh", "￥1,299.00", "1299.00", "CNY", "有货", "缺货"),
    ("th", "฿1,299.00", "1299.00", "THB", "มีสินค้า", "สินค้าหมด"),
    ("vi", "1.299.000 ₫", "1299000", "VND", "Còn hàng", "Hết hàng"),
    ("id", "Rp 1.299.000", "1299000", "IDR", "Stok tersedia", "Stok habis"),
    ("ms", "RM1,299.00", "1299.00", "MYR", "Ada stok", "Stok habis"),
    ("ka", "1 299 ₾", "1299", "GEL", "მარაგშია", "არ არის მარაგში"),
    ("hy", "12 990 ֏", "12990", "AMD", "Առկա է", "Առկա չէ"),
    ("kk", "12 990 ₸", "12990", "KZT", "Қоймада бар", "Қоймада жоқ"),
    ("az", "1 299,00 ₼", "1299.00", "AZN", "Stokda var", "Stokda yoxdur"),
    ("ur", "Rs. 1,299", "1299", "PKR", "اسٹاک میں دستیاب", "اسٹاک میں نہیں"),
    ("sq", "12.990 Lekë", "12990", "ALL", "Në stok", "Jashtë stokut"),
    ("mk", "1.299 ден.", "1299", "MKD", "На залиха", "Нема на залиха"),
    ("is", "12.990 kr.", "12990", "ISK", "Til á lager", "Uppselt"),
    ("ca", "1.299,00 €", "1299.00", "EUR", "En estoc", "Esgotat"),
    ("sw", "KSh 1,299", "1299", "KES", "In stock", "Imekwisha"),
    ("ta", "₹1,299", "1299", "INR", "கையிருப்பில் உள்ளது", "கையிருப்பில் இல்லை"),
]


@pytest.mark.parametrize(("language", "price", "amount", "currency", "in_stock", "out_of_stock"), OFFERS)
def test_an_offer_is_read_in_its_language(
    language: str, price: str, amount: str, currency: str | None, in_stock: str, out_of_stock: str
) -> None:
    url = f"https://shop.example.{COUNTRIES.get(language, 'com')}/p/aurora"
    for words, availability in ((in_stock, "InStock"), (out_of_stock, "OutOfStock")):
        assert availability_in(words) == availability
        body = f"<h1>Aurora 40</h1><div><p>{price}</p><p>{words}</p></div>"
        item = extract("product", f"<html lang={language}><title>Aurora 40</title><body>{body}", url)
        assert (Decimal(item["price"]), item.get("currency")) == (Decimal(amount), currency)
        assert item["availability"] == availability


@pytest.mark.parametrize(
    ("text", "availability"),
    [
        ("Solo queda uno disponible", "InStock"),
        ("Piano disponible", "InStock"),
        ("Canon disponibile", "InStock"),
        ("Canon en stock", "InStock"),
        ("Olej i lager", "InStock"),
        ("Nicht im Lagerverkauf", None),
        ("Ekki til inntöku", None),
        ("Поступление на склад 5 мая", None),
        ("На складе", "InStock"),
        ("На склад", "InStock"),
        ("स्टॉक में मौजूद नहीं", "OutOfStock"),
        ("Није на стању", "OutOfStock"),
        ("Nuk është në stok", "OutOfStock"),
        ("Skladem není", "OutOfStock"),
        ("Nije dostupno", None),
    ],
)
def test_words_of_the_stock_inside_others_and_denied_ones_are_not_taken(text: str, availability: str | None) -> None:
    assert availability_in(text) == availability


@pytest.mark.parametrize(
    ("language", "line"), [("sv", "Från 3 Lek & lär"), ("nl", "Lek 12, Utrecht"), ("sv", "Lek 3 i 1")]
)
def test_words_that_are_currencies_elsewhere_are_no_prices(language: str, line: str) -> None:
    page = f"<html lang={language}><title>Aurora</title><body><h1>Aurora</h1><p>{line}</p>"
    assert "price" not in extract("product", page, "https://shop.example.com/p/aurora")
    item = extract("product", f"{page}<p>9,90 €</p>", "https://shop.example.com/p/aurora")
    assert (item["price"], item["currency"]) == ("9.90", "EUR")


@pytest.mark.parametrize("price", ["1.299 Lek", "Lek 1,299", "1299 Lekë"])
def test_prices_in_lek_are_read(price: str) -> None:
    item = extract("product", f"<html lang=sq><title>A</title><body><h1>A</h1><p>{price}</p>", "https://a.example.al/p")
    assert (item["price"], item["currency"]) == ("1299", "ALL")


#: Labels of the brand, the shop's number, the manufacturer's and the global one by language.
LABELS: Final = {
    "de": ("Hersteller", "Artikelnummer", "Herstellernummer", "EAN"),
    "fr": ("Marque", "Référence", "Référence fabricant", "Code-barres"),
    "es": ("Marca", "Referencia", "Referencia del fabricante", "Código de barras"),
    "it": ("Marca", "Codice articolo", "Codice produttore", "Codice EAN"),
    "nl": ("Merk", "Artikelnummer", "Fabrikantcode", "EAN"),
    "sv": ("Märke", "Artikelnummer", "Tillverkarens artikelnummer", "Strekkod"),
    "da": ("Mærke", "Varenummer", "Producentens varenummer", "Stregkode"),
    "fi": ("Valmistaja", "Tuotenumero", "Valmistajan tuotenumero", "Viivakoodi"),
    "pl": ("Marka", "Kod produktu", "Kod producenta", "Kod kreskowy"),
    "cs": ("Značka", "Kód zboží", "Kód výrobce", "Čárový kód"),
    "hu": ("Gyártó", "Cikkszám", "Gyártói cikkszám", "Vonalkód"),
    "ro": ("Producător", "Cod produs", "Cod producător", "Cod de bare"),
    "bg": ("Производител", "Каталожен номер", "Код на производителя", "Баркод"),
    "ru": ("Бренд", "Артикул", "Артикул производителя", "Штрих-код"),
    "uk": ("Виробник", "Код товару", "Артикул виробника", "Штрихкод"),
    "el": ("Κατασκευαστής", "Κωδικός προϊόντος", "Κωδικός κατασκευαστή", "Γραμμωτός κώδικας"),
    "tr": ("Marka", "Ürün kodu", "Üretici kodu", "Barkod"),
    "hr": ("Proizvođač", "Šifra proizvoda", "Šifra proizvođača", "Barkod"),
    "ar": ("العلامة التجارية", "رمز المنتج", "رقم القطعة", "الباركود"),
    "fa": ("برند", "کد کالا", "کد سازنده", "بارکد"),
    "he": ("מותג", 'מק"ט', 'מק"ט יצרן', "ברקוד"),
    "ja": ("メーカー", "商品コード", "メーカー型番", "JANコード"),
    "ko": ("브랜드", "상품코드", "제조사 부품 번호", "바코드"),
    "zh": ("品牌", "商品编号", "制造商编号", "条形码"),
    "th": ("ยี่ห้อ", "รหัสสินค้า", "รหัสผู้ผลิต", "บาร์โค้ด"),
    "vi": ("Thương hiệu", "Mã sản phẩm", "Mã nhà sản xuất", "Mã vạch"),
    "id": ("Merek", "Kode produk", "MPN", "Kode batang"),
}


@pytest.mark.parametrize("language", LABELS)
def test_numbers_and_brands_are_read_by_their_labels_in_each_language(language: str) -> None:
    values = ("Nordlys", "55012877", "DL-7781", "4006381333931")
    pairs = zip(LABELS[language], values, strict=True)
    rows = "".join(f"<tr><th>{label}</th><td>{text}</td></tr>" for label, text in pairs)
    html = f"<html lang={language}><title>Aurora 40</title><h1>Aurora 40</h1><p>59 €</p><table>{rows}</table>"
    item = extract("product", html, "https://shop.example.com/p/aurora")
    assert (item["brand"], item["sku"], item["mpn"]) == ({"name": "Nordlys"}, "55012877", "DL-7781")
    assert [number["value"] for number in item["gtin"]] == ["4006381333931"]


def test_numbers_side_by_side_are_read_each_by_its_label() -> None:
    html = "<h1>Aurora 40</h1><p>59 €</p><div><div>Item # 2385458</div><div> | Mfr # DCD771C2 </div></div>"
    item = extract("product", html, "https://shop.example.com/p/aurora")
    assert (item["sku"], item["mpn"]) == ("2385458", "DCD771C2")
