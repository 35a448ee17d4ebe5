"""The declared language counts, unless the text is surely in another one."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.fields.languages import settled_language

ENGLISH = (
    "The old lock on the east canal has a new gate of oak, and boats may pass again after a pause of nearly two years. "
    "Two carpenters shaped the beams in a yard by the basin. The council paid half of the cost and boatmen gave the "
    "rest. A feast is planned for the first Sunday of the summer, with a brass band and soup for everybody."
)
GERMAN = (
    "Die alte Schleuse am Ostkanal hat ein neues Tor aus Eiche, und nach fast zwei Jahren fahren wieder Boote "
    "hindurch. Zwei Zimmerleute haben die Balken auf einem Hof am Hafen behauen. Die Stadt zahlte die Hälfte, den Rest "
    "gaben die Schiffer. Am ersten Sonntag im Sommer wird gefeiert, mit Blasmusik auf dem Treidelpfad und mit Suppe."
)
DANISH = (
    "Den gamle sluse på østkanalen har fået en ny port af eg, og bådene sejler igen igennem den efter to års pause. "
    "To tømrere huggede bjælkerne til i en gård ved havnen. Kommunen betalte halvdelen, og skipperne gav resten. "
    "Den første søndag i sommeren holder byen fest på stien, med hornmusik og suppe til alle."
)


@pytest.mark.parametrize(
    ("declared", "text", "language"),
    [
        ("en", ENGLISH, "en"),
        ("en", GERMAN, "de"),
        ("fr", ENGLISH, "en"),
        # Danish and Norwegian are too near to each other.
        ("en", DANISH, None),
        ("no", DANISH, "no"),
        # No template declares these.
        ("sr", GERMAN, "sr"),
        (None, GERMAN, None),
        ("en", GERMAN[:100], "en"),
        ("en", f"{ENGLISH} {GERMAN[:60]}", "en"),
        ("en", "ᚠᚢᚦᚨᚱᚲ " * 60, "en"),
    ],
)
def test_the_language_of_a_text(declared: str | None, text: str, language: str | None) -> None:
    assert settled_language(declared, text) == language
