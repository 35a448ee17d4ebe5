"""Structured data of the pages: schema.org objects for JSON-LD."""

from __future__ import annotations

from typing import Any

from example_project.site import news, shop
from example_project.site.news import Article
from example_project.site.shop import Product


def image_paths(product: Product) -> list[str]:
    """Return the URLs of the product's pictures."""
    return [f"/images/{product.number}-{view}" for view in range(1, product.images + 1)]


def breadcrumbs(product: Product, base: str) -> list[tuple[str, str]]:
    """Return name and URL of each step from the home page to the product."""
    category = product.category
    return [("Home", f"{base}/"), (category.title, f"{base}/c/{category.slug}"), (product.name, base + product.path)]


def product_json_ld(product: Product, base: str) -> list[dict[str, Any]]:
    """Return the product and its breadcrumbs."""
    offer = {
        "@type": "Offer",
        "url": base + product.path,
        "price": product.price,
        "priceCurrency": product.category.currency,
        "availability": f"https://schema.org/{product.availability}",
        "itemCondition": "https://schema.org/NewCondition",
    }
    described: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": product.name,
        "sku": product.sku,
        "gtin13": product.gtin13,
        "mpn": product.mpn,
        "brand": {"@type": "Brand", "name": product.brand},
        "description": "\n".join(product.description),
        "color": product.colour,
        "material": product.material,
        "image": [base + path for path in image_paths(product)],
        "offers": offer,
    }
    if product.rating is not None:
        described["aggregateRating"] = {
            "@type": "AggregateRating",
            "ratingValue": product.rating,
            "reviewCount": len(product.reviews),
            "bestRating": 5,
        }
    steps = [
        {"@type": "ListItem", "position": position, "name": name, "item": address}
        for position, (name, address) in enumerate(breadcrumbs(product, base), start=1)
    ]
    return [described, {"@context": "https://schema.org", "@type": "BreadcrumbList", "itemListElement": steps}]


def article_json_ld(article: Article, base: str) -> list[dict[str, Any]]:
    """Return the article."""
    described: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": article.headline,
        "description": article.lead,
        "datePublished": article.published.isoformat(),
        "author": {"@type": "Person", "name": article.author},
        "publisher": {"@type": "Organization", "name": news.NAME},
        "articleSection": news.SECTIONS[article.section],
        "image": f"{base}/news/images/{article.number}.png",
        "inLanguage": "en",
        "mainEntityOfPage": base + article.path,
    }
    if article.modified is not None:
        described["dateModified"] = article.modified.isoformat()
    return [described]


def review_record(review: shop.Review) -> dict[str, Any]:
    """Return a review as the shop's scripts receive it."""
    return {
        "id": review.id,
        "author": review.author,
        "date": review.date.isoformat(),
        "rating": review.rating,
        "title": review.title,
        "text": review.text,
    }
