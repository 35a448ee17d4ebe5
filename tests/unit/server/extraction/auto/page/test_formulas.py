"""Formulas are part of the text, once, wherever a page has them for the eye and for screen readers."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract, extract_more

FRACTION = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
TEX = (
    '<math><semantics><mi>a</mi><annotation encoding="application/x-tex">{\\displaystyle a_{i}}</annotation>'
    "</semantics></math>"
)


def page(formula: str) -> str:
    text = "<p>Some text that is long enough to be a paragraph of an article, with commas, and more words.</p>"
    value = f"<p>Where the value of {formula} is known to all of the readers of it, or should be.</p>"
    return f"<html><body><main><article><h1>How to</h1>{text}{value}{text}</article></main></body></html>"


@pytest.mark.parametrize(
    ("formula", "text", "markdown"),
    [
        pytest.param(FRACTION, "(a+b)/2", "(a+b)/2", id="MathML"),
        pytest.param(
            "<math><msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup></math>",
            "x^(n+1)",
            "x^(n+1)",
            id="an exponent of several signs",
        ),
        pytest.param("<math><msqrt><mi>y</mi></msqrt></math>", "√y", "√y", id="a root"),
        pytest.param("<math><mi>", "", "", id="an empty one"),
        pytest.param(TEX, "$a_{i}$", "$`a_{i}`$", id="TeX beside MathML"),
        pytest.param(
            f'<span class="mwe-math-mathml-a11y" style="display: none;">{TEX}</span>'
            '<img src="/a.svg" aria-hidden="true" alt="a_i">',
            "$a_{i}$",
            "$`a_{i}`$",
            id="hidden beside a picture",
        ),
        pytest.param(
            f'<span class="katex-mathml">{TEX}</span><span class="katex-html" aria-hidden="true">ai</span>',
            "$a_{i}$",
            "$`a_{i}`$",
            id="beside what is set",
        ),
        pytest.param('<script type="math/tex">a * b_1</script>', "$a * b_1$", "$`a * b_1`$", id="TeX for a script"),
        pytest.param(
            '<span class="MathJax"><nobr aria-hidden="true">z</nobr><span><math><mi>z</mi></math></span></span>'
            '<script type="math/tex">z</script>',
            "z",
            "z",
            id="set by a script",
        ),
        pytest.param(
            '<span class="MathJax_Preview">z/2</span><span class="MathJax"><span>z2</span></span>'
            '<script type="math/tex">\\frac{z}{2}</script>',
            "$\\frac{z}{2}$",
            "$`\\frac{z}{2}`$",
            id="set by a script, without MathML",
        ),
    ],
)
def test_a_formula_is_a_part_of_the_text(formula: str, text: str, markdown: str) -> None:
    html = page(formula)
    expected = f"Where the value of {text} is known".replace("  ", " ")
    assert expected in extract("article", html, "https://a.example/")["articleBody"]
    assert expected in extract("pageContent", html, "https://a.example/")["itemMain"]
    written = extract_more(None, html, "https://a.example/", markdown={}).markdown
    assert written is not None
    assert f"Where the value of {markdown} is known".replace("  ", " ") in written


def test_formulas_have_bounds() -> None:
    deep = page("<math>" + "<msqrt>" * 20_000 + "x")
    assert extract("article", deep, "https://a.example/")["headline"] == "How to"
    long = page(f"<math><mi>{'y' * 100_000}</mi></math>")
    assert len(extract("article", long, "https://a.example/")["articleBody"]) < 5_000


@pytest.mark.parametrize("sign", ["¶", "#", "§", "🔗"])
def test_the_sign_of_a_link_to_a_heading_is_no_part_of_it(sign: str) -> None:
    link = f'<a class="headerlink" href="#top">{sign}</a>'
    html = page("it").replace("How to</h1>", f"How to {link}</h1>").replace("<p>Where", f"<h2>{link}One</h2><p>Where")
    for kind, field in (("article", "articleBody"), ("pageContent", "itemMain")):
        item = extract(kind, html, "https://a.example/")
        assert item["headline"] == "How to"
        assert "\n\nOne\n\nWhere" in item[field]


def test_other_links_of_one_sign_stay() -> None:
    html = page('C<a href="/sharp#x">#</a> and § <a href="#5">5</a>')
    assert "of C# and § 5 is" in extract("article", html, "https://a.example/")["articleBody"]
