"""Lines that pages set into the text of articles and that are not of it, in the languages that most pages are in.

All are looked for in lower case, without the signs at their end.
"""

from __future__ import annotations

import re
from typing import Final

#: Longer lines are prose, whatever they begin with.
MAX_LENGTH: Final = 160
#: What lines end with that says nothing.
SIGNS: Final = " :.!…»›→?"


def _any(patterns: str) -> re.Pattern[str]:
    """Whichever of some patterns, written with `` | `` or a line break between them."""
    return re.compile("|".join(part for part in re.split(r" \| |\s*\n\s*", patterns) if part))


#: Lines that say nothing of the subject, wherever they stand.
NOTHING = _any(
    r"""
    advertisements? | advertising | ad | sponsored(?: links?| content)? | anzeige | werbung | publicit[ée]
    publicidade? | pubblicità | реклама | 広告 | 광고 | 广告 | (?:story|article) continues below(?: advertisement)?
    continue reading(?: the main story)? | continue reading below.{0,30}
    (?:read|see|show|learn|view|load|find out) (?:more|less|all) | mehr (?:lesen|anzeigen|erfahren)
    weiterlesen | lire la suite | leer más | leia mais | ler mais | continua a leggere | lees meer
    читать далее | 続きを読む | shar(?:e|ing)(?: (?:this|on|with|it|via|your)\b.{0,60})? | teilen | partager
    compartir | compartilhar | condividi | delen | поделиться | tweet | facebook | twitter | linkedin
    pinterest | whatsapp | telegram | reddit | email | e-mail | print | pin it | copy link | save | embed
    close | listen | play | video | photos? | gallery | image | menu | search | home | next | previous | back
    top | up | comments? | reply | like | follow | subscribe | sign up | log ?in | sign in | tags? | topics?
    contents? | table of contents | highlights | in this (?:article|guide|post) | back to (?:top|gallery)
    jump to .{0,30} | skip to .{0,30} | click (?:here )?to (?:tweet|expand|enlarge|view).{0,40}
    (?:show|hide) caption | (?:\d+ )?comments? | \d+ (?:of|/) \d+ | our standards: ?.{0,60}
    most read in .{0,40} | more on this (?:story|topic) | have your say.{0,40} | what do you think\?.{0,30}
    \(?\d+ ?-? ?min(?:ute)?s?\.?(?: read)?\)? | reading time:? ?.{0,20} | tempo de leitura:? ?.{0,20}
    tiempo de lectura:? ?.{0,20} | temps de lecture:? ?.{0,20} | lesezeit:? ?.{0,20}
    estimated read(?:ing)? time.{0,20}
    """
)

#: Beginnings of short lines that ask for something, or say whose the pictures and the text are.
ASIDE = _any(
    r"""
    subscribe (?:to|now|here|today)\b | sign up (?:for|to|here|now)\b | join our (?:newsletter|mailing)
    get (?:our|the) (?:\w+ ){0,3}(?:newsletter|app)\b | follow (?:us|him|her|me) (?:on|at|@) | like us on
    click here (?:to|for)\b | download (?:our|the) (?:\w+ )?app | get more stuff like this
    get the latest .{0,60}(?:inbox|newsletter) | abonnieren sie | jetzt abonnieren | newsletter abonnieren
    suscr[ií]bete | abonnez-vous | inscrivez-vous | assine (?:a|nossa) | iscriviti | schrijf je in
    подпи(?:сывайтесь|шитесь)
    (?:main |lead )?(?:image|photo|picture|foto|bild)s?(?: credits?| courtesy| source| by| via)?(?: ?[:：©]| by\b)
    (?:photograph|credits?|crédit photo|imagem|imagen|фото|写真|사진)(?: ?[:：©]| (?:courtesy|credit|by|via)\b)
    image caption | image copyright | media caption | copyright\b | © | \(c\) ?\d{4} | all rights reserved
    alle rechte vorbehalten | tous droits réservés | todos los derechos | todos os direitos | tutti i diritti
    все права | 無断転載 | 무단전재 | 版权
    (?:tags?|filed under|posted in|categor(?:y|ies)|topics?|labels|schlagwörter) ?[:：]
    (?:étiquettes|etiquetas|теги|метки|タグ|カテゴリー?|태그|标签) ?[:：] | please (?:enable|turn on) javascript
    your browser does not | this video (?:is|cannot) | we use cookies | microsoft may earn
    we may (?:earn|receive) (?:a|an) .{0,20}commission
    """
)

#: Short lines with which a page turns to other things. What they head goes with them.
TURN = _any(
    r"""
    related(?: (?:articles?|posts?|stories|news|content|links?|coverage|reading|topics?|items?|products?|resources))?
    similar (?:articles|posts|stories|news)
    (?:you (?:may|might|could|will|'ll|’ll)) (?:also )?(?:be interested in|like|enjoy|love|want to read).{0,20}
    (?:readers) (?:also )?(?:be interested in|like|enjoy|love|want to read).{0,20}
    (?:you )?(?:may|might) also (?:like|enjoy).{0,20}
    recommended(?: (?:for you|stories|articles|reading|posts))?
    more (?:from|in|on|about|by|like this)\b.{0,50}
    more(?: (?:top|popular|recent|latest|related|good))? (?:stories|news|articles|posts) | more great .{0,40}
    more .{1,30} stories | more | (?:read|see|watch|up|what to read) (?:next|also|this next|more|more stories)
    next up.{0,30} | also (?:read|see|on|in)\b.{0,40}
    (?:most|top|latest) (?:read|viewed|stories|news|posts|articles|videos|now|comments?)
    (?:recent|popular|trending|featured) (?:read|viewed|stories|news|posts|articles|videos|now|comments?)
    most popular | editor['’]s picks? | trending(?: now| stories)? | don['’]t miss.{0,20}
    from (?:around )?the web | sponsored links | story timeline | further reading
    about (?:the |our )?(?:authors?|writers?|contributors?) | about the company | author bio | meet the author
    written by | share this(?: \w+){0,2} | share your thoughts.{0,30} | tell us what you think.{0,20}
    newsletter | tags | sources? | article sources | das könnte (?:sie|dich) (?:auch )?interessieren
    (?:mehr|weitere|ähnliche|verwandte) (?:artikel|beiträge|themen|zum thema|nachrichten).{0,20}
    (?:weitere|neueste) beiträge.{0,20} | lesen sie auch | auch interessant | zum thema
    über (?:den|die) autor(?:in|en)? | schlagworte | meistgelesen | (?:à )?lire aussi
    sur le même (?:sujet|thème) | articles? (?:similaires|liés|connexes|recommandés) | vous aimerez aussi.{0,20}
    à propos de l['’]auteur | les plus lus | (?:lea|lee|leer|mira|ver|vea) (?:también|más) | te puede interesar
    (?:noticias|artículos|entradas|contenidos?) relacionad[oa]s? | tal vez te interese.{0,20} | sobre el autor
    lo más (?:leído|visto) | (?:leia|veja|confira|saiba) (?:também|mais)
    (?:artigos|notícias|posts|matérias|conteúdos?) relacionad[oa]s? | você (?:pode|também).{0,30}
    sobre o autor | mais lidas | (?:leggi|vedi|guarda) anche | (?:articoli|notizie) correlat[ei]
    potrebbe(?: anche)? interessarti.{0,20} | (?:l['’])?autore | i più letti | lees (?:ook|verder)
    gerelateerde? (?:artikelen|berichten) | (?:läs|les) (?:också|også|mer|mere)
    (?:relaterade|relaterede|relaterte) (?:artiklar|artikler) | czytaj (?:także|też|również)
    zobacz (?:także|też|również) | powiązane artykuły | читайте (?:также|ещё|еще) | по теме
    похожие (?:статьи|записи|материалы|новости) | смотрите также | материалы по теме | об авторе | популярное
    ayrıca oku.{0,10} | ilgili haberler | 関連(?:記事|リンク|ニュース|する記事).{0,10} | (?:こちらの|この)記事も.{0,20}
    あわせて読みたい.{0,10} | おすすめ記事 | 著者について | 人気記事
    관련 ?(?:기사|뉴스|글) | 많이 본 .{0,8} | 추천 ?기사 | 相关(?:文章|新闻|阅读|推荐)
    相關(?:文章|新聞|報導) | (?:延伸|推荐)阅读 | 延伸閱讀 | مقالات ذات صلة | اقرأ أيضا.{0,5}
    """
)

#: Short lines after which readers talk.
TALK = _any(
    r"""
    (?:\d+ )?(?:comments?|responses?|replies|reviews|discussion)(?: \(?\d+\)?| are closed| on .{0,80})?
    (?:leave|post|write|add|submit) (?:a |your )?(?:comment|reply|response|review)s?.{0,20}
    join the (?:conversation|discussion).{0,20} | no comments(?: yet)?
    (?:\d+ )?(?:kommentar(?:e|er)?|commentaires?|coment[aá]rios?|commenti|reacties|komentarze|yorumlar)(?: \(\d+\))?
    schreibe? einen kommentar.{0,20} | laisser un commentaire | deja (?:un comentario|una respuesta)
    deixe (?:um comentário|uma resposta|seu comentário).{0,20} | lascia un commento
    (?:комментарии|отзывы|обсуждение)(?: \(?\d+\)?)? | (?:добавить|оставить) (?:комментарий|отзыв)
    コメント(?:を残す)? | 댓글.{0,8} | 评论 | 留言 | التعليقات
    """
)
