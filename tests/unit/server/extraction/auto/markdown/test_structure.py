"""Structure of pages in their Markdown, on pages written by hand."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract_more
from tests.support.markdown import read

URL = "https://www.example.org/guide/page?x=1"


def all_of(html: str, **options: bool) -> str:
    found = extract_more(None, html, URL, markdown={"content": "all", **options}).markdown
    assert found is not None
    return found


def test_headings_keep_their_levels() -> None:
    assert all_of("<h1>One</h1><h2>Two <b>bold</b></h2><h6>Six</h6>") == "# One\n\n## Two bold\n\n###### Six\n"


def test_paragraphs_and_line_breaks_are_kept_and_two_breaks_are_paragraphs() -> None:
    assert all_of("<p>a<br>b</p>c<br><br>d <br>\n<br> e<div>f</div>") == "a\\\nb\n\nc\n\nd\n\ne\n\nf\n"


def test_white_space_of_the_source_is_none() -> None:
    assert all_of("<p>\n   a\n  <b> b </b>\t c\u00a0d <br>  e\n</p>") == "a **b** c d\\\ne\n"


def test_lists_keep_nesting_and_numbers() -> None:
    html = "<ul><li>a<ul><li>b<li>c</ul><li>d</ul><ol start=3><li>x<li>y<p>z</p></ol>"
    assert all_of(html) == "- a\n  - b\n  - c\n- d\n\n3. x\n\n4. y\n\n   z\n"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<ol><li value=5>a<li>b</ol>", "5. a\n6. b\n"),
        ("<ol reversed><li>a<li>b<ol><li>c</ol><li>d</ol>", "3. a\n\n2) b\n   1. c\n\n1. d\n"),
        ("<ol reversed start=10><li>a<li>b</ol>", "10. a\n\n9) b\n"),
        ("<ol start=4><li>a<li value=9>b<li>c<li value=x>d</ol>", "4. a\n\n9) b\n10) c\n11) d\n"),
        ("<ol start=0><li>a<li><li>b</ol>", "0. a\n1. b\n"),
        ("<ol start=-3><li>a<li value=99999999999>b</ol>", "1. a\n2. b\n"),
        ("<ul><li value=7>a</ul>", "- a\n"),
    ],
)
def test_items_keep_the_numbers_that_the_page_gives_them(html: str, markdown: str) -> None:
    assert all_of(html) == markdown
    starts = [block[1] for block in read(markdown) if block[0] == "list"]
    assert len(starts) == markdown.count("\n\n") + 1


def test_lists_that_follow_each_other_stay_apart() -> None:
    assert all_of("<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol><li>d</ol>") == "- a\n\n* b\n\n1. c\n\n1) d\n"
    assert [block[0] for block in read(all_of("<ul><li>a</ul>" * 4))] == ["list"] * 4


def test_a_list_below_an_item_is_in_the_item_also_where_the_page_nests_it_wrongly() -> None:
    assert all_of("<ul><li>a</li><ul><li>b</li></ul></ul>") == "- a\n  - b\n"


def test_tasks_of_a_list_keep_their_boxes() -> None:
    box = '<input type="checkbox" disabled class="task-list-item-checkbox"'
    html = f"""<ul><li>{box} checked> Lay the <b>rope</b></li><li><p>{box}>Wait</p></li>
      <li><label><input type=checkbox class=task-item>Sail</label> [x]</li><li>{box}></li></ul>"""
    assert all_of(html) == "- [x] Lay the **rope**\n- [ ] Wait\n- [ ] Sail \\[x\\]\n"


def test_boxes_of_filters_and_menus_are_none_of_tasks() -> None:
    html = "<ul><li><input type=checkbox> Red<li>Blue <input type=checkbox disabled><li><input disabled>Green</ul>"
    assert all_of(html) == "- Red\n- Blue\n- Green\n"


def test_empty_items_and_blocks_are_left_out() -> None:
    assert all_of("<ul><li><li> <li>a</ul><h2></h2><p> <b> </b><blockquote></blockquote><ul><li></ul>") == "- a\n"


def test_code_is_fenced_with_its_language_and_kept_as_it_stands() -> None:
    html = '<pre><code class="hljs language-Python">def f():\n\n    return "*"  \n</code></pre>'
    assert all_of(html) == '```python\ndef f():\n\n    return "*"\n```\n'


@pytest.mark.parametrize(
    "html",
    [
        '<pre class="brush: js">x</pre>',
        '<pre data-lang="js">x</pre>',
        '<pre lang=js class="lang-js">x</pre>',
        '<div class="highlight highlight-source-js"><pre>x</pre></div>',
        '<div class="sourceCode js"><pre class="sourceCode js">x</pre></div>',
    ],
)
def test_languages_are_named_in_many_ways(html: str) -> None:
    assert all_of(html) == "```js\nx\n```\n"


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert all_of("<pre>````\ncode\n````</pre>") == "`````\n````\ncode\n````\n`````\n"


def test_numbers_of_lines_are_no_code() -> None:
    table = "<table><tr><td><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>"
    assert all_of(table) == "```\na\nb\n```\n"
    assert (
        all_of('<pre><span class="lineno">1</span>a<br><span class="line-numbers">2</span>b</pre>')
        == "```\na\nb\n```\n"
    )
    assert all_of("<pre>1\n2</pre>") == "```\n1\n2\n```\n"


def test_code_within_text() -> None:
    assert all_of("<p>Use <code>a`b</code>, <kbd>Ctrl</kbd><kbd>K</kbd> or <code>``</code>.") == (
        "Use `` a`b ``, `Ctrl` `K` or ``` `` ```.\n".replace("`` a`b ``", "``a`b``")
    )


def test_code_in_lists_and_quotes_stays_in_them() -> None:
    found = all_of("<ol><li>a<pre>b\n\n  c</pre></ol><blockquote><pre>d\n\ne</pre></blockquote>")
    assert found == "1. a\n\n   ```\n   b\n\n     c\n   ```\n\n> ```\n> d\n>\n> e\n> ```\n"
    assert read(found)[0] == ("list", 1, [[("paragraph", "a"), ("code", "", "b\n\n  c")]])


def test_quotes_are_quotes_and_nested_ones_too() -> None:
    assert all_of("<blockquote><p>a<p>b<blockquote>c</blockquote></blockquote>") == "> a\n>\n> b\n>\n> > c\n"


def test_emphasis_is_kept_with_spaces_outside_of_it() -> None:
    html = "<p>a<b> b </b>c <i>d</i>, <em><strong>e</strong> f</em> <del>g</del> <b>h</b><b>i</b>"
    assert all_of(html) == "a **b** c _d_, **_e_** _f_ ~~g~~ **hi**\n"


def test_emphasis_goes_on_across_blocks() -> None:
    assert all_of("<b><div>a</div><div>b</div></b><i>c") == "**a**\n\n**b**\n\n_c_\n"


def test_marks_that_no_parser_would_read_are_left_out() -> None:
    assert all_of('<p>x<b>"a"</b>y <i>fo</i>o') == 'x"a"y *fo*o\n'
    assert all_of("<p>x<b>a</b>y") == "x**a**y\n"


def test_links_are_absolute_and_broken_ones_are_text() -> None:
    html = (
        '<base href="/base/"><a href="a b(c)?x=1&amp;copy;=2">one</a> <a href="#top">two</a> <a href="">three</a> '
        '<a href="javascript:alert(1)">four</a> <a href="DATA:text/html,x">five</a> <a href="http://[">six</a> '
        '<a href="mailto:ann@example.org">seven</a>'
    )
    assert all_of(html) == (
        "[one](https://www.example.org/base/a%20b%28c%29?x=1&amp;copy;=2) [two](https://www.example.org/base/#top) "
        "three four five six [seven](mailto:ann@example.org)\n"
    )


def test_text_of_links_is_escaped_and_links_without_text_are_left_out() -> None:
    assert all_of('<a href="/a">[1] *x*</a>!<a href="/c">d</a><a href="/b"> </a>') == (
        "[\\[1\\] \\*x\\*](https://www.example.org/a)\\![d](https://www.example.org/c)\n"
    )


def test_a_link_around_blocks_is_in_each_of_them() -> None:
    assert all_of('<a href="/a"><h3>Title</h3><p>Text</p></a>') == (
        "### [Title](https://www.example.org/a)\n\n[Text](https://www.example.org/a)\n"
    )


def test_neighbours_that_only_style_sets_apart_are_apart() -> None:
    assert all_of("<span>Menu</span><span>Search</span>, W<b>o</b>r<i>d</i>") == "Menu Search, W**o**r*d*\n"


def test_images_have_their_text_and_the_address_that_a_script_would_load() -> None:
    html = (
        '<img src="/a.png" alt="A [b]"><img src="data:image/gif;base64,R0" data-src="/c.png">'
        '<a href="/d"><img srcset="/e.png 1x, /f.png 2x" alt=E></a><img src="/pixel.gif" width=1 height=1><img alt=x>'
    )
    assert all_of(html) == (
        "![A \\[b\\]](https://www.example.org/a.png)![](https://www.example.org/c.png)"
        "[![E](https://www.example.org/e.png)](https://www.example.org/d)\n"
    )


def test_links_and_images_can_be_left_out() -> None:
    html = '<p><a href="/a">text</a> <img src="/b.png" alt=b></p>'
    assert all_of(html, links=False) == "text ![b](https://www.example.org/b.png)\n"
    assert all_of(html, images=False) == "[text](https://www.example.org/a)\n"
    assert all_of(html, links=False, images=False) == "text\n"


def test_a_figure_is_its_image_and_its_caption() -> None:
    assert all_of("<figure><img src=/a.png alt=a><figcaption>The a.</figcaption></figure>") == (
        "![a](https://www.example.org/a.png)\n\nThe a.\n"
    )


def test_definitions_are_items_of_term_and_text() -> None:
    assert all_of("<dl><dt>a<dd>b<dt>c:<dt>d<dd>e<p>f</p></dl>") == ("- **a**: b\n\n- **c:**\n\n  **d**: e\n\n  f\n")


def test_rules_set_blocks_apart_and_nothing_else() -> None:
    assert all_of("<hr><p>a<hr><hr><p>b<hr>") == "a\n\n___\n\nb\n"
    assert read(all_of("<ul><li>a<hr>b</ul>")) == [
        ("list", None, [[("paragraph", "a"), ("rule",), ("paragraph", "b")]])
    ]


def test_superscripts_and_subscripts_stay_what_they_are() -> None:
    assert all_of('10<sup>2</sup> H<sub>2</sub>O x<sup>th</sup> word<sup><a href="#fn1">[1]</a></sup>') == (
        "10² H₂O xth word[\\[1\\]](https://www.example.org/guide/page?x=1#fn1)\n"
    )


def test_what_a_page_hides_and_forms_are_left_out() -> None:
    html = (
        "<p hidden>a<p aria-hidden=true>b<p style='display: none'>c<script>d</script><style>e</style><select><option>f"
        "</select><textarea>g</textarea><template>h</template><iframe>i</iframe><p>j</p>"
    )
    assert all_of(html) == "j\n"


def test_an_empty_page_is_no_text() -> None:
    assert all_of("") == all_of("<html><body><img></body></html>") == ""


def test_a_table_with_a_row_for_each_line_of_code_is_code() -> None:
    row = "<tr><td data-line-number={0}></td><td class='blob-code blob-code-inner js-file-line'>{1}</td></tr>"
    lines = ["def f():", "    <b>return</b> 1", "", "f()"]
    html = "<table class=highlight>" + "".join(row.format(*each) for each in enumerate(lines, 1)) + "</table>"
    assert all_of(html) == "```\ndef f():\n    return 1\n\nf()\n```\n"
    assert "```" not in all_of(html.replace("></td>", ">a price</td>")), "a table of data"
