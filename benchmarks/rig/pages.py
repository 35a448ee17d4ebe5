"""Pages of any size similar to those of a shop: nested markup, links, a script, text with some accents."""

from __future__ import annotations

import json
import random
from typing import Final

_VOCABULARY: Final = (
    "kettle spout handle steel brushed pour thin stream water coffee cup saucer tray wood oak glass lid filter paper "
    "weight litre warm cold slow morning café crème Größe Höhe señal naïve façade € – “quoted” … 珈琲 кофе & price "
    "delivery returns review stars stock basket compare wish list shop brand model colour width depth guarantee"
)
_WORDS: Final = tuple(_VOCABULARY.split())

_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>A page of a shop</title>
<link rel="stylesheet" href="/static/site.css?v=3">
<script>window.dataLayer = [{"page": "product", "ids": [1, 2, 3]}]; if (1 < 2) { console.log("ready"); }</script>
</head>
<body class="product-list">
<nav><ul><li><a href="/">Home</a></li><li><a href="/kitchen/">Kitchen</a></li></ul></nav>
<main>
"""
_TAIL: Final = "</main>\n<footer><p>All prices include taxes. <a href='/terms'>Terms</a></p></footer>\n</body></html>\n"


def page(size: int, seed: int) -> bytes:
    """Return a page of ``size`` bytes of UTF-8; another for each seed."""
    chance = random.Random(seed)
    parts = [_HEAD.encode()]
    left = size - len(parts[0]) - len(_TAIL.encode())
    while (block := _block(chance).encode()) and len(block) + len("<!---->") <= left:
        parts.append(block)
        left -= len(block)
    filling = "<!--" + "-" * (left - len("<!---->")) + "-->" if left >= len("<!---->") else ""
    made = b"".join((*parts, filling.encode(), _TAIL.encode()))
    if len(made) != size:
        raise ValueError(f"a page of {size} bytes cannot be made")
    return made


def _block(chance: random.Random) -> str:
    number = chance.randrange(100_000)
    text, name = (" ".join(chance.choices(_WORDS, k=count)).replace("&", "&amp;") for count in (30, 5))
    return (
        f'<article class="card card--wide" data-sku="SKU-{number:06d}">\n'
        f'  <a href="/product/{number}?from=list&amp;position={number % 40}">'
        f'<img src="/images/{number}.jpg" alt=""></a>\n'
        f'  <h2 class="card__title">{name}</h2>\n  <p class="card__text">{text}</p>\n'
        f'  <span class="price">€ {number / 100:.2f}</span>\n</article>\n'
    )


def as_json(text: str) -> bytes:
    """Return a JSON string with non-ASCII characters unescaped."""
    return json.dumps(text, ensure_ascii=False).encode()
