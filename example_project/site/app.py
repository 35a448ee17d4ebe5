"""Routes of the site."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from example_project.site import images, markup, news, pages, shop
from example_project.site.shop import Product

#: Token of the search form's hidden field; a search without it is refused, as in a shop.
SEARCH_TOKEN = "6f1d2c"

_ROBOTS = """User-agent: *
Disallow: /echo/
Disallow: /basket
Sitemap: {base}/sitemap.xml
"""


def _base(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


def _page_number(request: Request, pages_in_all: int) -> int:
    text = request.query_params.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= pages_in_all:
        raise HTTPException(404)
    return number


def _product(request: Request) -> Product:
    product = shop.by_number(request.path_params["number"])
    if product is None:
        raise HTTPException(404)
    return product


async def _home(_: Request) -> Response:
    return HTMLResponse(pages.home())


async def _best(_: Request) -> Response:
    return HTMLResponse(pages.best(shop.best_rated()))


async def _listing(request: Request) -> Response:
    slug = request.path_params["slug"]
    category = next((category for category in shop.CATEGORIES if category.slug == slug), None)
    if category is None:
        raise HTTPException(404)
    return HTMLResponse(pages.listing(category, _page_number(request, category.pages)))


async def _product_page(request: Request) -> Response:
    product = _product(request)
    if request.path_params["slug"] != product.slug:
        return RedirectResponse(product.path, 301)
    return HTMLResponse(pages.product(product, _base(request)))


async def _moved(request: Request) -> Response:
    return RedirectResponse(_product(request).path, 301)


async def _go(request: Request) -> Response:
    return RedirectResponse(f"/go/{_product(request).number}/on", 302)


async def _go_on(request: Request) -> Response:
    return RedirectResponse(_product(request).path, 302)


async def _reviews(request: Request) -> Response:
    return JSONResponse([markup.review_record(review) for review in _product(request).reviews])


async def _search_form(_: Request) -> Response:
    return HTMLResponse(pages.search(SEARCH_TOKEN))


def _search_fields(content_type: str, body: bytes) -> dict[str, Any]:
    """Return the fields of a search, sent as a form or as JSON; raises ValueError."""
    if content_type.startswith("application/json"):
        fields = json.loads(body)
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        return fields
    return dict(parse_qsl(body.decode()))


def _search_row(product: Product) -> dict[str, str]:
    return {
        "sku": product.sku,
        "name": product.name,
        "price": product.price,
        "currency": product.category.currency,
        "url": product.path,
    }


async def _search(request: Request) -> Response:
    try:
        fields = _search_fields(request.headers.get("content-type", ""), await request.body())
        query, page = str(fields["q"]), int(fields.get("page", 1))
    except (ValueError, KeyError, TypeError):
        return JSONResponse({"error": "send q, and page if not the first, as a form or as JSON"}, 400)
    if fields.get("token") != SEARCH_TOKEN:
        return JSONResponse({"error": "the form has expired"}, 403)
    found = shop.search(query)
    first = (page - 1) * shop.SEARCH_PAGE_SIZE
    rows = [_search_row(product) for product in found[first : first + shop.SEARCH_PAGE_SIZE]]
    more = page + 1 if first + shop.SEARCH_PAGE_SIZE < len(found) else None
    return JSONResponse({"query": query, "total": len(found), "page": page, "next": more, "results": rows})


async def _echo_headers(request: Request) -> Response:
    return JSONResponse({"method": request.method, "headers": dict(request.headers)})


async def _news_front(_: Request) -> Response:
    return HTMLResponse(pages.news_front())


async def _news_section(request: Request) -> Response:
    section = request.path_params["section"]
    if section not in news.SECTIONS:
        raise HTTPException(404)
    count = -(-news.ARTICLES_PER_SECTION // news.ARTICLES_PER_PAGE)
    return HTMLResponse(pages.news_section(section, _page_number(request, count)))


async def _article(request: Request) -> Response:
    article = news.by_number(request.path_params["number"])
    if article is None:
        raise HTTPException(404)
    if article.path != request.url.path:
        return RedirectResponse(article.path, 301)
    return HTMLResponse(pages.article(article, _base(request)))


async def _product_image(request: Request) -> Response:
    product, view = _product(request), request.path_params["view"]
    if not 1 <= view <= product.images:
        raise HTTPException(404)
    drawing = images.product_svg(product.category.shape, product.colour, product.number, view)
    return Response(drawing, media_type="image/svg+xml")


@lru_cache(maxsize=news.ARTICLES_PER_SECTION * len(news.SECTIONS))
def _landscape(number: int) -> bytes:
    return images.landscape_png(number)


async def _news_image(request: Request) -> Response:
    number = request.path_params["number"]
    if news.by_number(number) is None:
        raise HTTPException(404)
    return Response(_landscape(number), media_type="image/png")


async def _robots(request: Request) -> Response:
    return PlainTextResponse(_ROBOTS.format(base=_base(request)))


async def _sitemap(request: Request) -> Response:
    return Response(pages.sitemap(_base(request)), media_type="application/xml")


async def _not_found(_: Request, _error: Exception) -> Response:
    return HTMLResponse(pages.not_found(), 404)


def build() -> Starlette:
    """Return the site as an ASGI application."""
    routes = [
        Route("/", _home),
        Route("/best", _best),
        Route("/c/{slug}", _listing),
        Route("/p/{number:int}/reviews.json", _reviews),
        Route("/p/{number:int}-{slug}", _product_page),
        Route("/item/{number:int}", _moved),
        Route("/go/{number:int}", _go),
        Route("/go/{number:int}/on", _go_on),
        Route("/search", _search_form),
        Route("/search", _search, methods=["POST"]),
        Route("/echo/headers", _echo_headers, methods=["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
        Route("/news/", _news_front),
        Route("/news/images/{number:int}.png", _news_image),
        Route("/news/{section}/", _news_section),
        Route("/news/{section}/{number:int}-{slug}", _article),
        Route("/images/{number:int}-{view:int}", _product_image),
        Route("/robots.txt", _robots),
        Route("/sitemap.xml", _sitemap),
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]
    return Starlette(routes=routes, exception_handlers={404: _not_found})
