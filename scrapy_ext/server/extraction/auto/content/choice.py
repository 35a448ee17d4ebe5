"""Choice of the blocks that are content: by the chance of each block, and by the kind of page.

The text of an article is what the rules for articles take, as far as the page is one: they leave out more of what is
around it. Pages of forums and products show much that is not their content, so that a doubtful block is taken less
easily there. A text that a page repeats, such as a quoted post, is taken once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

#: Kinds of pages with rules of their own, by their names in the model of kinds.
ARTICLE: Final = "article"
DOCUMENTATION: Final = "documentation"
#: The exponent of the chances of blocks by kind of page: above 1, doubtful blocks are taken less easily.
CARE: Final = {"forum": 1.4, "product": 1.4, DOCUMENTATION: 1.0}
USUAL_CARE: Final = 1.1
#: With less than this share of the words that the model takes, the rules for articles have missed the text.
TOO_LITTLE: Final = 0.3
#: The least words of a text that is a repetition, rather than the same label of two things.
REPEATED_WORDS: Final = 10
#: The chance of documentation from which repetitions stay: manuals repeat their examples.
SURE: Final = 0.4


class Candidate(NamedTuple):
    """A block as the choice sees it."""

    text: str
    words: int
    #: The chance to be content by the model, from 0 to 1.
    chance: float
    #: The share that the rules for articles take, from 0 to 1.
    of_article: float
    is_code: bool


def choose(candidates: Sequence[Candidate], kinds: Mapping[str, float]) -> list[bool]:
    """Return for each block whether it is content; ``kinds`` are the chances of the kinds of page."""
    words = [each.words for each in candidates]
    weight = _weight_of_article(candidates, kinds.get(ARTICLE, 0.0))
    care = sum(chance * CARE.get(kind, USUAL_CARE) for kind, chance in kinds.items())
    chances = [((1 - weight) * each.chance + weight * each.of_article) ** care for each in candidates]
    taken = most_likely(chances, words)
    return taken if kinds.get(DOCUMENTATION, 0.0) >= SURE else _without_repetitions(candidates, taken)


def _weight_of_article(candidates: Sequence[Candidate], chance: float) -> float:
    taken = most_likely([each.chance**USUAL_CARE for each in candidates], [each.words for each in candidates])
    by_model = sum(each.words for each, is_taken in zip(candidates, taken, strict=True) if is_taken)
    by_rules = sum(each.words for each in candidates if each.of_article > 0.5)
    # Squared, as the rules for articles do harm on other pages.
    return chance**2 if by_rules >= TOO_LITTLE * by_model else 0.0


def _without_repetitions(candidates: Sequence[Candidate], taken: Sequence[bool]) -> list[bool]:
    seen: set[str] = set()
    kept = list(taken)
    for at, each in enumerate(candidates):
        if taken[at] and each.words >= REPEATED_WORDS and not each.is_code:
            kept[at] = each.text not in seen
            seen.add(each.text)
    return kept


def most_likely(chances: Sequence[float], words: Sequence[int]) -> list[bool]:
    """Choose the blocks with the highest expected F1 of their words.

    With reliable blocks on a page, a doubtful one adds little and may cost much; where all are doubtful, half of them
    are better than none. So the threshold depends on the page: it is half of the highest F1.
    """
    order = sorted(range(len(chances)), key=lambda at: -chances[at])
    expected = sum(chance * count for chance, count in zip(chances, words, strict=True))
    best = found = taken = 0.0
    least = 2.0
    for at in order:
        found += chances[at] * words[at]
        taken += words[at]
        score = 2 * found / (taken + expected)
        if score > best:
            best, least = score, chances[at]
    return [chance >= least for chance in chances]
