"""The pages, rendered from templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from example_project.site import markup, news, shop
from example_project.site.news import Article
from example_project.site.shop import Category, Product

_SIGNS = {"EUR": "{} €", "GBP": "£{}", "USD": "${}", "SEK": "{} kr", "JPY": "¥{}", "CHF": "CHF {}"}
_STOCK = {"InStock": "In stock", "OutOfStock": "Out of stock", "PreOrder": "Order now, sent next month"}


def _money(amount: str, currency: str) -> str:
    shown = amount.removesuffix(".00") if currency in ("JPY", "SEK") else amount
    return _SIGNS[currency].format(shown.replace(".", ",") if currency == "EUR" else shown)


def _json_ld(objects: list[dict[str, Any]]) -> Markup:
    # "<" would let a value close the script element.
    lines = (json.dumps(described, ensure_ascii=False, indent=1).replace("<", "\\u003c") for described in objects)
    return Markup("\n").join(Markup(f'<script type="application/ld+json">{line}</script>') for line in lines)


_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters["money"] = _money
_environment.globals.update(
    shop_name=shop.NAME,
    paper_name=news.NAME,
    categories=shop.CATEGORIES,
    departments=list(dict.fromkeys(category.department for category in shop.CATEGORIES)),
    sections=news.SECTIONS,
    stock=_STOCK,
    image_paths=markup.image_paths,
)


def _render(template: str, **values: Any) -> str:
    return _environment.get_template(template).render(**values)


def _page_path(path: str, number: int, *, sort_first: bool) -> str:
    """Return the URL of a listing's page. The two pagers write its parameters in different order."""
    if number == 1:
        return path
    return f"{path}?sort=listed&page={number}" if sort_first else f"{path}?page={number}&sort=listed"


def _pager(path: str, page: int, pages: int, *, sort_first: bool) -> list[tuple[int, str | None]]:
    """Return number and URL of every page; no URL for the page itself."""
    return [
        (number, None if number == page else _page_path(path, number, sort_first=sort_first))
        for number in range(1, pages + 1)
    ]


def home() -> str:
    """The shop's first page."""
    return _render("home.html", best=shop.best_rated())


def best(products: list[Product]) -> str:
    """The page of the best rated products."""
    return _render("best.html", products=products)


def listing(category: Category, page: int) -> str:
    """A page of a category."""
    first = (page - 1) * shop.PRODUCTS_PER_PAGE
    path = f"/c/{category.slug}"
    return _render(
        "listing.html",
        category=category,
        products=category.products[first : first + shop.PRODUCTS_PER_PAGE],
        ended=shop.DISCONTINUED[shop.CATEGORIES.index(category)] if page == category.pages else None,
        top=_pager(path, page, category.pages, sort_first=False),
        bottom=_pager(path, page, category.pages, sort_first=True),
    )


def product(shown: Product, base: str) -> str:
    """A product's page."""
    return _render(
        "product.html",
        product=shown,
        base=base,
        json_ld=_json_ld(markup.product_json_ld(shown, base)) if shown.markup == "jsonld" else "",
        crumbs=markup.breadcrumbs(shown, base),
        related=[other for other in shown.category.products if other is not shown][:4],
    )


def search(token: str) -> str:
    """The search form."""
    return _render("search.html", token=token)


def news_front() -> str:
    """The newspaper's first page: the newest article of every section."""
    return _render("news_front.html", fronts={name: news.in_section(name)[:3] for name in news.SECTIONS})


def news_section(section: str, page: int) -> str:
    """A page of a section."""
    articles = news.in_section(section)
    first = (page - 1) * news.ARTICLES_PER_PAGE
    pages = -(-len(articles) // news.ARTICLES_PER_PAGE)
    return _render(
        "news_section.html",
        section=section,
        articles=articles[first : first + news.ARTICLES_PER_PAGE],
        pager=_pager(f"/news/{section}/", page, pages, sort_first=False),
    )


def article(shown: Article, base: str) -> str:
    """An article's page."""
    return _render(
        "article.html",
        article=shown,
        base=base,
        json_ld=_json_ld(markup.article_json_ld(shown, base)) if shown.markup == "jsonld" else "",
        more=[other for other in news.in_section(shown.section) if other is not shown][:4],
    )


def not_found() -> str:
    """Return the page for an unknown URL."""
    return _render("not_found.html")


def sitemap(base: str) -> str:
    """Return every page of the site, for crawlers."""
    paths = ["/", "/best", "/news/", *(f"/c/{category.slug}" for category in shop.CATEGORIES)]
    paths += [product.path for product in shop.PRODUCTS] + [article.path for article in news.ARTICLES]
    places = "".join(f"<url><loc>{base}{path}</loc></url>" for path in paths)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
    )
