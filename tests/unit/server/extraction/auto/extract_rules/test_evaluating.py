"""The XPath of rules selects what a library for XPath selects, and stops on pages that are made to be slow."""

from __future__ import annotations

import pytest
from parsel import css2xpath

from scrapy_ext.api.extraction.xpath import XPathError, of_css, of_xpath
from scrapy_ext.server.extraction.auto.extract_rules.evaluating import Evaluator, TooMuchWorkError
from scrapy_ext.server.extraction.auto.page import Page

URL = "https://shop.example/"
PAGE = """<html lang="de"><head><meta name="sku" content="A-1"><title>Shop</title></head><body>
<nav class="crumbs big"><a href="/">Home</a> <a href="/lamps">Lamps</a></nav>
<div class="box"><div class="box inner"><p class="a">one</p><p>two <b>bold</b> end</p></div>
<p class="a b">three</p></div>
<table><tr><th>Brand</th><td>Acme</td></tr><tr><th>Size</th><td>7</td><td>8</td></tr></table>
<ul><li>1</li><li class="on">2</li><li>3</li><li>4</li></ul><a href="/x.pdf" id="file">File</a></body></html>"""

XPATHS = [
    "//p",
    "//p[1]",
    "//p[last()]",
    "//*[1]",
    "/html/body/div/div/p",
    "//div//p",
    "//div//div",
    "//div/descendant::p[2]",
    "//p[@class]",
    "//p[@class='a']",
    "//p[@class='a'][1]",
    "//tr[th='Brand']/td",
    "//tr[normalize-space(th)='Size']/td[2]",
    "//td[../th='Size']",
    "//th[.='Brand']/following-sibling::td",
    "//li[position()<3]",
    "//li[position() mod 2 = 1]",
    "//li[.>2]",
    "//li[.!=2 and not(@class)]",
    "//li[@class='on']/preceding-sibling::li",
    "//li[@class='on']/following-sibling::*[1]",
    "//a/@href",
    "//a[starts-with(@href, '/l')]/text()",
    "//p[contains(., 'bold')]",
    "//p[contains(translate(., 'TWO', 'two'), 'two')]/b",
    "//b/ancestor::div",
    "//b/ancestor-or-self::*[@class][1]",
    "//b/..",
    "//p/text()",
    "//div//text()",
    "//p//text() | //li/text()",
    "//ul//text()",
    "//p | //p/text()",
    "//li[@class=concat('on', substring(1234567, 8))]",
    "//a[string-length(concat(1234567, '')) = 7]",
    "//nav//text()",
    "//p | //li",
    "//li[count(preceding-sibling::*) = 2]",
    "//a[string-length(@href) > 2]",
    "//a[substring(@href, 2, 5) = 'lamps']",
    "//a[substring-after(@href, '.') = 'pdf']/@id",
    "//*[name() = 'th']",
    "//div[p/b]",
    "//div[.//b]",
    "//tr[td = 7 or th = 'Brand']/th",
    "//*[self::td or self::th]",
    "//meta[@name='sku']/@content",
    "//li[concat(@class, '-', .) = 'on-2']",
    "/descendant::p[2]",
    "//html",
    "//gone",
    "//li[0]",
    "//div/div | //div",
    # Texts are nodes, as elements are.
    "//div//..",
    "//p//.",
    "//ul//parent::*",
    "//nav//ancestor::*",
    "//div/node()",
    "//p/node()[2]",
    "//div//node()",
    "//div/descendant-or-self::node()",
    "//p[node()]",
    "//p[count(node()) = 3]",
    "//b/following-sibling::text()",
    "//b/preceding-sibling::text()[1]",
    "//b/following-sibling::node()",
    "//nav/a/following-sibling::node()[1]",
    "//p/text()/following-sibling::*",
    "//p/text()/preceding-sibling::node()",
    "//p/text()/following-sibling::text()",
    "//li/text()/ancestor::ul",
    "//li/text()/ancestor-or-self::node()",
    "//li/text()/self::text()",
    "//li/text()/@class",
    "//li/@class/ancestor::*",
    "//li/@class/../text()",
    "//nav//text()/descendant-or-self::text()",
    "//div//following-sibling::p",
]
SELECTORS = [
    *("p.a", ".box", ".box p", ".box > p", "div div p", "p.a.b", "#file", "li:nth-child(2)", "li:nth-child(2n+1)"),
    *("li:first-child", "li:last-child", "li + li", "li.on ~ li", "a[href$='.pdf']", "a[href^='/']", "a[href*=amp]"),
    *("p:not(.a)", "p:contains('bold')", "div:has(> p.a)", "th, td", "td:only-child", "p::text", "a::attr(href)"),
    *("nav.crumbs a:last-child", "*", "p:first-of-type", "[lang]", "meta[name=sku]::attr(content)", "ul :is(.on, p)"),
    *("li:nth-last-child(1)", "a:link", "tr:nth-of-type(2) td", "b:empty"),
]


def of_library(page: Page, xpath: str) -> list[str]:
    """Return what the library selects, with the paths of elements."""
    found = page.tree.xpath(xpath)
    paths = page.tree.getroottree().getpath
    return [str(each) if isinstance(each, str) else paths(each) for each in found]


def selected(page: Page, tree) -> list[str]:
    paths = page.tree.getroottree().getpath
    return [item.text if item.text is not None else paths(item.node) for item in Evaluator(page).select(tree)]


@pytest.mark.parametrize("xpath", XPATHS)
def test_expressions_select_what_a_library_selects(xpath: str) -> None:
    page = Page(PAGE, URL)
    found = selected(page, of_xpath(xpath))
    assert found == of_library(page, xpath), "in the order of the page"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("substring(., @a)", ""),
        ("substring(., @b)", "12345"),
        ("substring(., 2, @a)", "2345"),
        ("substring(., 2, @b)", ""),
        ("substring(., @b, 3)", ""),
        ("substring(., @b, @a)", ""),
        (f"substring(., {'9' * 330})", ""),
        ("substring(., 0, 3)", "12"),
        ("substring(., 4, 100)", "45"),
    ],
)
def test_a_part_of_a_text_may_begin_and_end_at_any_number(call: str, text: str) -> None:
    page = Page("<p a='Infinity' b='-inf'>12345</p>", URL)
    assert len(selected(page, of_xpath(f"//p[{call} = '{text}']"))) == 1


@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors_select_what_a_library_selects(selector: str) -> None:
    page = Page(PAGE, URL)
    found = selected(page, of_css(selector))
    assert sorted(found) == sorted(of_library(page, css2xpath(selector)))


@pytest.mark.parametrize(
    ("xpath", "message"),
    [
        ("", "must have 1 to"),
        ("//a" * 200, "must have 1 to"),
        ("//a[", "ends too early"),
        ("//a]", "has ] at character 4"),
        ("document('x')", "has document at character 1; the functions"),
        ("re:test(., 'a')", "is no XPath at character 3"),
        ("//a[matches(., 'a')]", "the functions of rules are"),
        ("$x", "is no XPath at character 1"),
        ("//following::a", "the axes of rules are"),
        ("count(//a)", "must select elements"),
        ("'text'", "must select elements"),
        ("//a[contains(.)]", "contains() with 1 arguments, and it takes 2"),
        ("//a" + "[a" * 21 + "]" * 21, "nested at most"),
        ("//a[count('a')=1]", "count() of what is no path"),
    ],
)
def test_other_expressions_are_refused(xpath: str, message: str) -> None:
    with pytest.raises(XPathError, match=message.replace("(", r"\(").replace(")", r"\)").replace("]", r"\]")):
        of_xpath(xpath)


@pytest.mark.parametrize("selector", ["a{", "a::before", "", "a:unknown", "a" * 501])
def test_other_selectors_are_refused(selector: str) -> None:
    with pytest.raises(XPathError):
        of_css(selector)


NESTED = "<div class=a>" * 200 + "<p>" * 3 + "<i>x</i>" * 4_000
FLAT = "<ul>" + "<li>x</li>" * 6_000


@pytest.mark.parametrize(
    ("html", "xpath"),
    [(NESTED, "//div//div//div//i"), (NESTED, "//i/ancestor::div/p"), (FLAT, "//li/following-sibling::li")],
)
def test_steps_visit_each_element_once(html: str, xpath: str) -> None:
    """Element by element, these would visit a hundred million."""
    page = Page(html, URL)
    evaluator = Evaluator(page)
    assert evaluator.select(of_xpath(xpath))
    assert evaluator.work < 20 * len(page.elements)


@pytest.mark.parametrize(
    ("html", "xpath"),
    [
        (FLAT, "//li[count(preceding-sibling::li) = 5900]"),
        (FLAT, "//li[../li = 'y']"),
        (FLAT, "//li[following-sibling::li[following-sibling::li[. = 'y']]]"),
        (FLAT, "//li[. = //li]"),
        (FLAT, "//li[not(//li | //li)]"),
        (FLAT, "//li[//li/@class]"),
        (FLAT, "//li[count(//text()) = 3]"),
        ("<p>" + "word " * 40_000 + "</p>" + "<i></i>" * 3_000, "//i[contains(../p, 'mark')]"),
    ],
)
def test_other_work_is_bounded(html: str, xpath: str) -> None:
    with pytest.raises(TooMuchWorkError):
        Evaluator(Page(html, URL)).select(of_xpath(xpath))


def test_all_of_a_long_text_is_read() -> None:
    page = Page(f"<div><b>{'word ' * 3_000}</b><i>mark</i></div>", URL)
    assert selected(page, of_xpath("//div[contains(., 'mark')]/i")) == ["/html/body/div/i"]
    assert not selected(page, of_xpath("//div[not(contains(., 'mark'))]/i"))
