"""What the links between the pages of a list say, in the languages of most of the web."""

from __future__ import annotations

import re
from typing import Final

NEXT_WORDS: Final = "|".join((
    r"next|older(?: (?:posts|entries|articles|stories|news))?|more (?:results|posts|stories)",
    r"weiter|n[äa]chste[rs]?|vor|folgende|volgende?|n[äa]sta|neste|n[æe]ste|seuraava",
    r"suivante?s?|siguientes?|pr[óo]xim[oa]s?|seguintes?|successiv[oaie]|prossim[oa]|avanti|urm[ăa]to(?:r|area)|înainte",
    r"następn[ay]|dalej|další|ďalš(?:í|ia)|nasled(?:ující|ujúca)|sljedeć[ae]|sledeć[ae]|naslednja|k[öo]vetkez[őo]",
    r"järgmine|nākam[āa]|kitas|sonraki|ileri|berikutnya|selanjutnya|seterusnya|tiếp(?: theo)?|trang sau",
    r"след(?:ующая|\.)?|вперед|вперёд|далее|наступна|далі|следваща|επόμεν[ηο]",
    r"次(?:へ|の\w{1,6}|ページ)?|下一[页頁]|下[页頁]|后一页|다음|다음 페이지|ถัดไป|अगला|التالي(?:ة)?|הבא|بعدی",
))  # fmt: skip
PAGE_WORDS: Final = "|".join((
    r"page|seite|página|pagina|pàgina|sida|side|strona|stránka|strana|oldal|sayfa|страница|сторінка|ページ",
    r"results?|posts|set",
))  # fmt: skip

_ARROWS: Final = "›»→>❯⟩▶"
#: A text that leads to the next page, whole.
NEXT_TEXT = re.compile(
    rf"\W{{0,2}}(?:go to |zur |zum |la |le |to )?(?:the )?(?:(?:{PAGE_WORDS})\s+)?(?:{NEXT_WORDS})"
    rf"(?:\s+(?:{PAGE_WORDS}|\d+))*[\s\].…:{_ARROWS}]*|[{_ARROWS}]\s*(?:next)?",
    re.IGNORECASE,
)
ARROW = re.compile(rf"[\s{_ARROWS}]+")
#: A text that leads to more of the same: the next page, where its address says so.
MORE = re.compile(
    r"(?:load|show|view|see) more\b.{0,20}|more|mehr (?:laden|anzeigen)|voir plus|ver más|mostrar más|carregar mais"
    r"|もっと見る",
    re.IGNORECASE,
)
#: What links between pages are called: by a number, a word, or an arrow.
PAGE_NAME = re.compile(
    r"^\W{1,3}$|\b\d{1,5}\W*$|\b(?:page|seite|página|pagina|first|last|prev(?:ious)?|newer|older|more)\b"
    rf"|^(?:erste|letzte|zurück)|^(?:{NEXT_WORDS})\b",
    re.IGNORECASE,
)
NUMBER = re.compile(rf"(?:(?:go to |zur )?(?:{PAGE_WORDS})\s*)?(\d{{1,5}})", re.IGNORECASE)
#: ``Page 2 of 10``.
OF_PAGES = re.compile(
    rf"(?:{PAGE_WORDS})\s*(\d{{1,5}})\s*(?:of|von|de|di|sur|van|av|af|z|из|/)\s*\d{{1,6}}", re.IGNORECASE
)
