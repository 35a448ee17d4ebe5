"""What the links between the pages of a list say, in the languages of most of the web."""

from __future__ import annotations

import re
from typing import Final

NEXT_WORDS: Final = "|".join((
    r"next|older|forward|newxt|more (?:results|posts|stories|articles|news|items|entries)",
    r"weiter(?:e|bl[äa]ttern)?|n[äa]chste[rs]?|vorw[äa]rts|vor|[äa]ltere|folgende|volgende?|verder|oudere?",
    r"n[äa]sta|neste|n[æe]ste|[äæe]ldre|eldre|fram[åa]t|seuraava|n[æa]sta|vanhemmat",
    r"suivante?s?|apr[èe]s|plus anciens?|anciens articles",
    r"siguientes?|pr[óo]xim[oa]s?|seguintes?|seg[üu]ents?|m[áa]s antigu[oa]s|mais antig[oa]s",
    r"successiv[oaie]|prossim[oaie]|avanti|succ\.?|pi[ùu] vecchi|urm[ăa]to(?:r|area|arele)|înainte|[îi]nainte",
    r"następn[aey]|następne|dalej|starsze|další|dalsi|ďalš(?:í|ia|ie)|nasled(?:ující|ujúca)|star[šs][íi]",
    r"sljede[ćc][aei]|slede[ćc][aei]|naslednj[aei]|dalje|napred|naprijed|k[öo]vetkez[őo]|r[ée]gebbi",
    r"j[äa]rgmi(?:ne|sed)|edasi|nākam[āa]|tālāk|kitas|toliau|sonraki|ileri|[öo]nceki yaz[ıi]lar",
    r"berikut(?:nya)?|selanjutnya|lanjut|seterusnya|susunod|tiếp(?: theo)?|trang sau|sau",
    r"след(?:ующ(?:ая|ие|ий)|\.)?|вперед|вперёд|далее|дальше|наступн[аіий]+|далі|уперед|вперед|следващ[аи]",
    r"следн[аи]|следећа|наредна|напред|επόμεν[ηοα]|επ[όο]μενες|παλαιότερ[αες]+",
    r"次(?:へ|の\w{1,6}|ページ|頁)?|次>|下(?:一)?(?:[页頁]|個|个)|后一?[页頁]|後一?[页頁]|后页|翻页",
    r"다음|다음 ?페이지|이후",
    r"ถัดไป|หน้าถัดไป|अगला|अगले|আরও|পরবর্তী|التالي(?:ة)?|التالى|الصفحة التالية|لاحق|הבא(?:ה)?|לעמוד הבא"
    r"|بعد(?:ی)?|صفحه بعد",
))  # fmt: skip
PAGE_WORDS: Final = "|".join((
    r"pages?|seiten?|p[áaà]ginas?|pagin[ae]|sida|sidan?|side|stron[ay]|str[áa]n(?:ka|ky|a)|oldal|sayfa|sivu|sider",
    r"страниц[аы]|стр\.?|сторінк[аи]|страна|ページ|頁|页|페이지|หน้า|trang|halaman|laman|lk|lapa|puslapis|σελίδ[αες]+",
    r"results?|posts?|messages|set|entries|articles|stories|news|items?|topics|products|messages|listings"
    r"|records|threads|resultados",
    r"eintr[äa]ge|beitr[äa]ge|artikel|artikler|inlägg|innlegg|articles|entrées|entradas|postagens|risultati"
    r"|wpisy|записи|件",
))  # fmt: skip

_ARROWS: Final = "›»→>❯⟩▶►⇒≫⏵⮕➔➜➡＞﹥〉》▸⯈⟶⇨"
_LEFT: Final = "‹«←<❮⟨◀◄⇐≪＜"
_BEFORE: Final = (
    r"(?:(?:go|move|skip|jump|aller|vai|ir|gå|zu|ga)\s+)?"
    r"(?:(?:to|on|the|my|zu[rm]?|die|der|das|la|le|les|el|los|as?|il|à|al|alla|till|til|naar|de)\s+){0,3}"
)
#: A text that leads to the next page, whole.
NEXT_TEXT = re.compile(
    rf"\W{{0,3}}{_BEFORE}(?:(?:{PAGE_WORDS})\s*)?(?:{NEXT_WORDS})"
    rf"(?:[\s.\xa0]*(?:{PAGE_WORDS}|\d{{1,5}}|of|von|de|di|sur))*[\s\])|.…:*_#{_ARROWS}-]*"
    rf"|[{_ARROWS}]{{1,3}}\s*(?:next)?|-+>|=>",
    re.IGNORECASE,
)
ARROW = re.compile(rf"[\s{_ARROWS}=-]+")
#: A text that leads to more of the same: the next page, where its address says so.
MORE = re.compile(
    r"(?:load|show|view|see|display|get) (?:\d+ )?more\b.{0,20}|(?:see |view )?more(?:\.\.\.|…| ?[›»>])?|mehr "
    r"(?:laden|anzeigen)"
    r"|weitere .{0,20}|voir plus|charger plus|plus de .{0,20}|ver más|cargar más|mostrar más|carregar mais"
    r"|carica altri|mostra altri"
    r"|meer (?:laden|tonen)|visa fler|ladda fler|vis flere|näytä lisää|pokaż więcej|načíst další|zobrazit další"
    r"|показать ещ[её]|ещ[её]|загрузить ещ[её]|daha fazla"
    r"|もっと見る|さらに表示|加载更多|查看更多|更多|더 ?보기|المزيد|عرض المزيد",
    re.IGNORECASE,
)
#: A text that leads to the page before, or to the ends of the list: whatever else speaks for it, not the next page.
NOT_NEXT_TEXT = re.compile(
    r"\W*(?:go to (?:the )?|zur )?(?:prev(?:ious)?|newer|back|first|last|final|erste|letzte|zur[üu]ck|vorige|vorherige"
    r"|pr[ée]c[ée]dente?s?|derni[èe]re?|premi[èe]re?|anterior|[úu]ltim[oa]|primer[oa]?|primeir[oa]|precedente|indietro"
    r"|laatste|eerste|f[öo]reg[åa]ende|forrige|sista|siste|sidste|poprzedni[ae]?|ostatni[ae]?|p[řr]edchoz[íi]"
    r"|posledn[íi]|назад|пред(?:ыдущая|\.)?|последняя|первая|[öo]nceki|son|ilk|前へ|前の\w*|上一[页頁]|最后一?[页頁]"
    r"|最後(?:へ|の?ページ)?|末页|尾页|首页|이전|마지막|처음|السابق)"
    rf"(?:\s*(?:{PAGE_WORDS}|\d{{1,5}}))*\W*|[{_LEFT}]+",
    re.IGNORECASE,
)
#: Older entries, which blogs that go back in time call the previous ones.
OLDER = re.compile(
    r"\W*(?:previous (?:entries|posts|articles|page|stories|news)|(?:entradas|p[áa]ginas?) anteriores?"
    r"|(?:articles|billets|messages) pr[ée]c[ée]dents|предыдущие (?:записи|посты|новости))\W*",
    re.IGNORECASE,
)
#: What links between pages are called: by a number, a word, or an arrow.
PAGE_NAME = re.compile(
    r"^\W{1,3}$|\b\d{1,5}\W*$|\b(?:page|seite|página|pagina|first|last|prev(?:ious)?|newer|older|more)\b"
    rf"|^(?:erste|letzte|zurück)|^(?:{NEXT_WORDS})\b",
    re.IGNORECASE,
)
#: The number of a page as a link says it: ``2``, ``[2]``, ``Page 2``, ``第2页``.
NUMBER = re.compile(
    r"(?:(?:you(?:'re| are) (?:currently )?(?:on|reading) )?(?:go to |zur |ir a la |aller à la )?"
    rf"(?:{PAGE_WORDS})\s*)?"
    rf"[\[(|·•-]?\s*第?\s*(\d{{1,5}})\s*(?:[页頁]|ページ目?|페이지)?[\])|,·•.-]?",
    re.IGNORECASE,
)
#: ``Page 2 of 10``.
OF_PAGES = re.compile(
    rf"(?:{PAGE_WORDS})\W{{0,3}}(\d{{1,5}})\s*(?:of|von|de|di|sur|van|av|af|z|ze|из|от|sao?|/|od|iš|dari)\s*\d{{1,6}}"
    r"|第?(\d{1,5})\s*/\s*\d{1,5}\s*[页頁]",
    re.IGNORECASE,
)
