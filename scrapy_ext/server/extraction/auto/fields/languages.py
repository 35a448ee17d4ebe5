"""The language of a text, where it is surely not the one that its page declares: templates say English by default."""

from __future__ import annotations

from typing import Final

from resiliparse.parse.lang import detect_fast

#: Languages that are distinguished: those of most of the web. Luxembourgish, Galician and the like are as near to a
#: neighbour as two texts in that one are to each other.
LANGUAGES: Final = (
    "ar", "be", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "he", "hi", "hr",
    "hu", "hy", "id", "is", "it", "ja", "ka", "kk", "ko", "lt", "lv", "mk", "nl", "no", "pl", "pt", "ro", "ru", "sk",
    "sl", "sq", "sr", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh",
)  # fmt: skip
#: Languages of templates and themes, which their users leave declared. Each has one script, and is well distinguished.
OF_TEMPLATES: Final = frozenset({"en", "de", "es", "fr", "it", "nl", "pt"})
#: Shorter texts, in letters, are in no language beyond doubt.
MIN_LETTERS: Final = 200
MAX_LENGTH: Final = 6_000
#: By how much a text is farther from the declared language than from another one, in the measure of the detector. Of
#: 452 pages with a declared language, two were by 149, both of them wrong, and the others by 28 at most.
FAR: Final = 80
#: By how much the next language is farther than the first; neighbours such as Danish and Norwegian are nearer.
DISTINCT: Final = 20
#: Languages that are compared.
FEWEST: Final = 2
#: Greatest distance that is measured: above that of a script to another.
MAX_DISTANCE: Final = 2_000


def settled_language(declared: str | None, text: str) -> str | None:
    """Return the ISO 639-1 code that is declared, or that of the text where it is in another language beyond doubt.

    None where the text is not in the declared language, and in one of several others.
    """
    sample = text[:MAX_LENGTH]
    if declared not in OF_TEMPLATES or sum(map(str.isalpha, sample)) < MIN_LETTERS:
        return declared
    found = detect_fast(sample, cutoff=MAX_DISTANCE, n_results=len(LANGUAGES), langs=list(LANGUAGES))
    # Of letters of no language among these, none is found.
    if not isinstance(found, list) or len(found) < FEWEST:
        return declared
    (first, distance), (_, next_distance) = found[:FEWEST]
    if dict(found).get(declared, MAX_DISTANCE) - distance < FAR:
        return declared
    return first if next_distance - distance >= DISTINCT else None
