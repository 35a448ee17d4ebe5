"""Declarative shadow roots stand in the place of what their hosts contain."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.page import Page

ROOT = "<template shadowrootmode=open>"


def text(html: str) -> str:
    return "|".join(piece.strip() for piece in Page(html, "https://a.example/").tree.itertext() if piece.strip())


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        (f"<x-a>{ROOT}<b>in</b></template></x-a>out", "in|out"),
        (f"<div>{ROOT}a<slot></slot>c</template>b</div>", "abc"),
        (f"<x-a>x{ROOT}<slot name=n></slot><slot></slot></template>y<i slot=n>n</i>z</x-a>", "n|xyz"),
        (f"<x-a>{ROOT}<slot>nothing</slot></template></x-a>", "nothing"),
        (f"<x-a>{ROOT}<slot name=n>nothing</slot></template>not shown</x-a>", "nothing"),
        (f"<x-a>{ROOT}<slot></slot><slot>second</slot></template>first</x-a>", "firstsecond"),
        (f"<x-a>{ROOT}<x-b>{ROOT}[<slot></slot>]</template><slot></slot></x-b></template>in</x-a>", "[in]"),
        ("<x-a><template shadowrootmode=closed>in</template></x-a>", "in"),
        (f"<x-a>{ROOT}first</template>{ROOT}second</template></x-a>", "first"),
        # No shadow roots: another element, another attribute.
        (f"<ul>{ROOT}<li>no</li></template><li>yes</ul>", "yes"),
        ("<x-a><template>no</template>yes</x-a>", "yes"),
        ("<x-a><template shadowroot=open>no</template>yes</x-a>", "yes"),
        ("<p>a <slot>b</slot> c</p>", "a|b|c"),
    ],
)
def test_the_content_of_a_root_is_shown_with_what_its_slots_have(html: str, shown: str) -> None:
    assert text(f"<body>{html}") == shown


def test_a_page_without_a_tag_of_its_body_has_its_content_there() -> None:
    page = Page(
        "<!doctype html><title>t</title><meta name=a content=b><main><h1>h</h1></main>tail<p>p", "https://a.example/"
    )
    body = page.tree.find("body")
    assert "".join(body.itertext()) == "htailp"
    assert [node.tag for node in page.tree.find("head")] == ["title", "meta"]
