"""Text of code, with its lines and without what highlighters add."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.text import code_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<pre>\na\n  b\n\nc  \n</pre>", "a\n  b\n\nc"),
        ("<pre><code><div>a</div><div>  b</div></code></pre>", "a\n  b"),
        ("<pre><code><div>a\n</div><div>\n</div><div>b\n</div></code></pre>", "a\n\nb"),
        ("<pre><code><div>a</div>\n<div>b</div>\n</code></pre>", "a\nb"),
        ("<pre><code><div>a</div><div><br></div><div>b</div></code></pre>", "a\n\nb"),
        ("<pre><span style='display:block'>a</span><span style='display: block'>b</span></pre>", "a\nb"),
        ("<pre><code><table><tr><td class=lineno>1<td>a<tr><td class=lineno>2<td> b</table></code></pre>", "a\n b"),
        (
            "<pre><code><span class=line>a</span><span class=line></span><span class=line> b</span></code></pre>",
            "a\n\n b",
        ),
        (
            "<pre><code><span class=line>a</span>\n<span class=line></span>\n<span class=line> b</span></code></pre>",
            "a\n\n b",
        ),
        ("<pre><code><span class=token-line>a<br></span><span class=token-line>b</span></code></pre>", "a\nb"),
        ("<pre><code><span class=line>a</span><span class=note>b</span></code></pre>", "ab"),
        ("<pre>a<br> b</pre>", "a\n b"),
        ("<pre><button>Copy</button><code>ls</code></pre>", "ls"),
        ("<pre><div class=code-header><span>sh</span> <a>Copy</a></div><code>ls</code></pre>", "ls"),
        ("<pre><code>a <span class=copy>copy</span></code></pre>", "a copy"),
        ("<pre><code><span class=ln>1</span>a\n<span aria-hidden=true>2</span>b</code></pre>", "a\nb"),
        ("<pre><span class=line-number>one</span> two</pre>", "one two"),
        ("<pre>1\n2</pre>", "1\n2"),
        ("<table><tr><td><pre>1\n2</pre><td></table>", ""),
        ("<pre> </pre>", ""),
    ],
)
def test_code_is_what_a_reader_would_copy(html: str, text: str) -> None:
    page = Page(f"<body>{html}", "https://a.example/")
    position = page.outline.tags.index("pre")
    assert code_text(page.outline, position, page.displays) == text
