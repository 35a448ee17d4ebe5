"""What shops call things, in the languages of most of the web, as regular expressions for whole labels.

A label is matched without regard to case. Each row is a language or a group of neighbours.
"""

from __future__ import annotations

import re
from typing import Final


def labels(*rows: str) -> re.Pattern[str]:
    """A pattern that matches any label of the rows."""
    return re.compile("|".join(rows), re.IGNORECASE)


_NUMBER: Final = r"(?:\s*(?:no|nr|num|number|nummer|numero|número|numéro|code|id|#|№)\.?)"

BRAND_ROWS: Final = (
    r"(?:product )?brand(?: name)?|manufacturer|maker|producer|label|designer|publisher",
    r"marke(?:nname)?|hersteller|merk|fabrikant|m[äæa]rke|merke|merkki|producent",
    r"marque|fabricant|marca|fabricante|fabbricante|produttore",
    r"zna[čc]ka|v[ýy]robc[ae]|znamka|blagovna znamka|marka|proizvo[đd]a[čc]|proizvajalec",
    r"gamintojas|z[īi]mols|ra[žz]ot[āa]js|tootja|kaubam[äa]rk|m[áa]rka|gy[áa]rt[óo]",
    r"бренд|марка|торговая марка|производитель|виробник|μάρκα|κατασκευαστής",
    r"ブランド|メーカー|브랜드|제조사|品牌|العلامة التجارية|الماركة",
)
SKU_ROWS: Final = (
    rf"sku{_NUMBER}?|asin|stock code",
    rf"(?:item|product|article|catalog(?:ue)?|cat|stock|ad|listing|lot|order|web|reference|ref|prod){_NUMBER}",
    rf"(?:artikel|best(?:ell)?|produkt|anzeigen|art|varen?|vare|kat|katalog|objekt|inserat)[.\s-]*(?:{_NUMBER}|nummer|nr|kode)\.?",
    r"r[ée]f(?:[ée]rence)?\.?(?: (?:produit|article|interne))?|code (?:article|produit)|referencia|refer[êe]ncia",
    r"c[óo]d(?:igo)?\.?(?: (?:do |del |de )?(?:produto|producto|art[íi]culo|artigo|item))?",
    r"codice(?: (?:prodotto|articolo))?|cod\.? (?:prodotto|articolo|produs)|tuote(?:numero|koodi|nro)",
    r"artikl|[šs]ifra(?: (?:artikla|proizvoda|izdelka))?|indeks|katalogov[ée] [čc][íi]slo",
    r"(?:k[óo]d|[čc][íi]slo)(?: (?:produktu|v[ýy]robku|tovaru|towaru|zbo[žz][íi]))?",
    r"(?:produkta|prec(?:es|ei)) kods|(?:toote|kauba)?kood|prek[ėe]s kodas|cikksz[áa]m|term[ée]kk[óo]d",
    r"артикул|код(?: (?:товара|товару|продукта))?|арт\.?|номер (?:товара|артикула)|κωδικ[οό]ς(?: προ[ϊi][οό]ντος)?",
    r"商品番号|商品コード|品番|商品編號|商品编号|商品貨號|货号|貨號|상품번호|상품코드|رمز المنتج|الرمز",
    r"[üu]r[üu]n kodu|stok kodu",
)
MPN_ROWS: Final = (
    r"mpn|manufacturer(?:'s)?(?: (?:part|item|model))? (?:number|no\.?|code|ref(?:erence)?)|part (?:number|no\.?)",
    r"(?:item )?model(?: (?:number|no\.?|name))?|model code|modell(?:nummer)?",
    r"(?:hersteller|modell)(?:-?artikel|-?teile)?-?(?:nummer|nr\.?)",
    r"(?:num[ée]ro|r[ée]f[ée]rence) (?:du |de )?(?:mod[èe]le|fabricant)(?: de l'article)?|referencia del fabricante",
    r"(?:n[úu]mero|numero) (?:de )?modell?o(?: articolo| del producto)?|modell?o",
    r"модель|模型|型番|型號|型号",
)
GTIN_ROWS: Final = (
    r"(?:код )?ean(?:[- ]?(?:13|8|code|nr\.?|number))?|gtin(?:-?\d+)?|upc|isbn(?:-?1[03])?|bar ?code|issn|jan",
)

BRAND: Final = labels(*BRAND_ROWS)
SKU: Final = labels(*SKU_ROWS)
MPN: Final = labels(*MPN_ROWS)
GTIN: Final = labels(*GTIN_ROWS)
COLOR: Final = labels(
    r"(?:product )?colou?r|farbe|couleur|colore?|cor|kleur|farve|färg|farge|väri|kolor|barva|цвет|カラー|色|색상",
)
SIZE: Final = labels(
    r"size|(?:product )?dimensions?|größe|abmessungen|maat|afmetingen|storlek|koko",
    r"taille|dimensione|dimensioni|tamaño|talla|tamanho|rozmiar|velikost|размер|サイズ|尺寸",
)
STYLE: Final = labels(r"style|pattern|finish|muster|motif|estampado|stile|fantasia")

#: Words in a text that say that a thing cannot be had, or can.
OUT_OF_STOCK: Final = labels(
    r"out of stock|sold ?out|currently unavailable|not available|no longer available|unavailable|discontinued",
    r"(?:listing|auction|bidding|sale) (?:was |has )?ended|no longer (?:being )?(?:sold|produced|made)",
    r"nicht (?:verfügbar|vorrätig|lieferbar|auf lager)|ausverkauft|derzeit nicht|uitverkocht|niet op voorraad",
    r"slut(?:såld| i lager)|udsolgt|utsolgt|loppu",
    r"indisponible|rupture|épuisé|non disponibile|esaurito|agotado|no disponible|sin stock|esgotado|indispon[íi]vel",
    r"niedostępn|brak w magazynie|vyprod[áa]no|nedostupn|není skladem|ni na zalogi|otsas|nav pieejams",
    r"нет в наличии|распродан|売り切れ|在庫切れ|품절|售罄|缺貨|缺货|غير متوفر|نفد",
)
IN_STOCK: Final = labels(
    r"\bin stock|available|left in stock|\d+ left",
    r"auf lager|lieferbar|vorrätig|verfügbar|op voorraad|i lager|på lager|varastossa",
    r"en stock|disponible|disponibile|disponibilit[àa]|em estoque|disponível",
    r"dostępn|skladem|na sklad[ee]|na zalogi|laos|pieejams|в наличии|есть",
    r"在庫あり|재고|有貨|有货|متوفر",
)
#: What is written on the button that orders a thing.
ORDER: Final = labels(
    r"add to (?:cart|basket|bag|trolley|order)|buy (?:it )?now|buy tickets?|place bid|checkout",
    r"in den (?:warenkorb|einkaufswagen)|in winkel(?:wagen|mand)|l[äa]gg i (?:varukorg|korg)|k[öo]p\b|læg i kurv",
    r"legg i handlekurv|lisää ostoskoriin|osta\b",
    r"ajouter au panier|acheter|aggiungi al carrello|acquista|adicionar ao carrinho|comprar",
    r"añadir (?:al|a la) (?:carrito|cesta|bolsa)|agregar al carr(?:o|ito)|adaug[ăa] [îi]n co[șs]",
    r"do koszyka|do ko[šs][íi]ka|dodaj [vu] ko[šs]aricu|dodaj v ko[šs]arico|kosárba|lisa (?:ostu)?korvi|grozā|pirkt",
    r"в корзину|купить|カートに入れる|장바구니|구매하기|加入購物車|加入购物车|立即購買|立即购买",
    r"أضف إلى|اشتري|sepete ekle",
)
