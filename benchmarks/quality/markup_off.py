"""Pages without their structured data, which serves as the truth for extraction from the rest."""

from __future__ import annotations

import re

_BLOCKS = re.compile(r"<script[^>]*application/ld\+json[^>]*>.*?</script>", re.IGNORECASE | re.DOTALL)
_ATTRIBUTES = re.compile(
    r"""\sitem(?:prop|scope|type|id|ref)(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+))?(?=[\s/>])""", re.IGNORECASE
)


def without_markup(html: str) -> str:
    return _ATTRIBUTES.sub("", _BLOCKS.sub("", html))
