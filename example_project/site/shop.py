"""The shop's catalogue: departments, categories, products and their reviews."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from example_project.site import grammar
from example_project.site.grammar import Rules
from scrapy_ext.compatibility.toml import tomllib

NAME = "Brindlemoor Goods"
PRODUCTS_PER_PAGE = 12
SEARCH_PAGE_SIZE = 20
BEST_RATED = 12

_DATA = tomllib.loads((Path(__file__).parent / "data" / "shop.toml").read_text("utf-8"))
_RULES: Rules = _DATA["rules"]


@dataclass(frozen=True, eq=False)
class Category:
    """A category: names, materials, uses and prices (in ``currency``) of its products."""

    slug: str
    title: str
    department: str
    noun: str
    shape: str
    size: int
    currency: str
    prices: Sequence[int]
    materials: Sequence[str]
    purpose: str
    uses: Sequence[str]

    @cached_property
    def products(self) -> list[Product]:
        """The products in the order of the listing."""
        return [product for product in PRODUCTS if product.category is self]

    @property
    def pages(self) -> int:
        """The number of pages of the listing."""
        return -(-self.size // PRODUCTS_PER_PAGE)


CATEGORIES: tuple[Category, ...] = tuple(Category(**described) for described in _DATA["categories"])


@dataclass(frozen=True)
class Review:
    """A customer's review; ``rating`` is 1 to 5."""

    id: str
    author: str
    date: dt.date
    rating: int
    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Product:
    """A product; ``markup`` is the format of its page's structured data: jsonld, microdata or none."""

    number: int
    sku: str
    gtin13: str
    mpn: str
    name: str
    brand: str
    category: Category
    price: str
    regular_price: str | None
    availability: str
    colour: str
    material: str
    weight: str
    description: Sequence[str]
    features: Sequence[str]
    images: int
    reviews: Sequence[Review]
    markup: str
    moved: int
    slug: str

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/p/{self.number}-{self.slug}"

    @property
    def link(self) -> str:
        """The path that the shop links to: for a few products an old one, one or two redirects away."""
        return (self.path, f"/item/{self.number}", f"/go/{self.number}")[self.moved]

    @property
    def rating(self) -> str | None:
        """The mean rating with one decimal; None without reviews."""
        if not self.reviews:
            return None
        return f"{sum(review.rating for review in self.reviews) / len(self.reviews):.1f}"


def _gtin13(number: int) -> str:
    # The prefix 2 is for internal numbers of a shop, so that none belongs to another firm.
    digits = f"2{number:011d}"
    total = sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def _price(rng: random.Random, category: Category) -> tuple[str, str | None]:
    low, high = category.prices
    whole = rng.randrange(low, high)
    cents = 0 if category.currency in ("JPY", "SEK") else rng.choice((0, 50, 90, 95))
    amount = f"{whole}.{cents:02d}"
    if rng.random() < 0.2:
        return amount, f"{whole + max(1, whole // 4)}.{cents:02d}"
    return amount, None


def _reviews(rng: random.Random, product: str, category: Category) -> list[Review]:
    count = rng.choice((0, 2, 3, 5, 8))
    reviews = []
    for index in range(count):
        bound = {"use": rng.choice(category.uses)}
        reviews.append(
            Review(
                id=f"{product}-r{index + 1}",
                author=grammar.person(rng),
                date=dt.date(2026, 1, 4) + dt.timedelta(days=rng.randrange(290)),
                rating=rng.choice((2, 3, 4, 4, 5, 5, 5)),
                title=rng.choice(_RULES["review_title"]),
                text=grammar.sentence(grammar.write(rng, "{review}", _RULES, bound)),
            )
        )
    return reviews


def _description(rng: random.Random, category: Category, bound: dict[str, str]) -> list[str]:
    bound = {**bound, "purpose": category.purpose, "use": rng.choice(category.uses)}
    middle = rng.sample(_RULES["middle"], 3)
    first = " ".join(grammar.write(rng, part, _RULES, bound) for part in ("{opening}", middle[0], middle[1]))
    second = " ".join(grammar.write(rng, part, _RULES, bound) for part in (middle[2], "{ending}"))
    return [first, second]


def _product(rng: random.Random, number: int, category: Category) -> Product:
    sku = f"BG-{category.slug[:2].upper()}{number:04d}"
    colour, material = rng.choice(_RULES["colour"]), rng.choice(category.materials)
    line = rng.choice(_RULES["adjective"])
    name = f"{line} {rng.choice(_RULES['second'])} {category.noun.title()} in {colour.title()}"
    price, regular_price = _price(rng, category)
    said = {"name": name, "line": line, "colour_name": colour, "material": material}
    return Product(
        number=number,
        sku=sku,
        gtin13=_gtin13(number),
        mpn=f"{category.shape[:3].upper()}{rng.randrange(10_000, 99_999)}",
        name=name,
        brand=grammar.brand(rng),
        category=category,
        price=price,
        regular_price=regular_price,
        availability=rng.choice(("InStock",) * 7 + ("OutOfStock",) * 2 + ("PreOrder",)),
        colour=colour,
        material=material,
        weight=f"{rng.randrange(80, 4200)} g",
        description=_description(rng, category, said),
        features=[f"Made of {material}", f"Colour: {colour}", f"For use {rng.choice(category.uses)}"],
        images=rng.choice((1, 2, 3)),
        reviews=_reviews(rng, sku, category),
        # Half and half, except for one in twenty, which has it in words only.
        markup="none" if number % 20 == 0 else ("jsonld", "microdata")[number % 2],
        moved=1 if number % 25 == 3 else 2 if number % 50 == 7 else 0,
        slug=grammar.slug(name),
    )


def _products() -> list[Product]:
    rng = random.Random("brindlemoor goods")
    places = [category for category in CATEGORIES for _ in range(category.size)]
    return [_product(rng, number, category) for number, category in enumerate(places, start=1)]


#: Every product, by number.
PRODUCTS: list[Product] = _products()
#: Numbers of removed products that listings still link to: 404.
DISCONTINUED: tuple[int, ...] = tuple(901 + index for index in range(len(CATEGORIES)))


def by_number(number: int) -> Product | None:
    """Return the product with this number."""
    return PRODUCTS[number - 1] if 1 <= number <= len(PRODUCTS) else None


def best_rated() -> list[Product]:
    """Return the products with the best reviews, at least three each."""
    reviewed = [product for product in PRODUCTS if len(product.reviews) >= 3]
    return sorted(reviewed, key=lambda product: (-float(product.rating or 0), product.number))[:BEST_RATED]


def search(query: str) -> list[Product]:
    """Return the products whose name has every word of the query."""
    words = query.lower().split()
    return [product for product in PRODUCTS if words and all(word in product.name.lower() for word in words)]
