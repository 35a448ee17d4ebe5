"""Questions: by the sign at their end, in the scripts of most of the web, or by the last word in those without one."""

from __future__ import annotations

import re
from typing import Final

#: The sign of Greek is a semicolon. Japanese, Chinese, Korean and Thai questions need none.
_QUESTION: Final = re.compile(
    r"(?:[?？؟՞⁇]|[\u0370-\u03ff\u1f00-\u1fff]\s?[;\u037e]|[吗呢嗎]|(?:です|ます|でしょう)か|(?:니|은|는|ㄴ)?까|(?:ไหม|มั้ย|หรือไม่|อย่างไร))"
    r"[\s\"'”’»)。]*$"
)
#: The sign of Armenian stands in the word that is asked about, and that of Spanish before the question as well.
_INSIDE: Final = re.compile(r"\w՞|^\s*¿")


def is_question(text: str) -> bool:
    """Return whether a text is a question."""
    return _QUESTION.search(text) is not None or _INSIDE.search(text) is not None
