"""Schema of the items that are extracted: the fields of zyte-common-items, as records.

The names and meanings of the fields are part of the contract of the extraction API. A test compares each record with
the class of the same name in zyte-common-items, which is not needed to extract: it brings libraries for page objects,
one of them as source. Fields that nothing here extracts are left out. None stands for a value that a page does not
have.

Fields that several records have stand in one that these extend. Records without a name in the schema begin with an
underscore. The order of the fields of an entry of a list matters: the source of the list is that of the first which has
one.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Item(Struct):
    """A record of the schema, which may hold others."""


def as_dict(item: Item) -> dict[str, Any]:
    """Return an item as plain data, without the fields that are None or empty lists."""
    found: dict[str, Any] = {}
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if isinstance(value, Item):
            found[name] = as_dict(value)
        elif isinstance(value, list):
            if value:
                found[name] = [as_dict(each) if isinstance(each, Item) else each for each in value]
        elif value is not None:
            found[name] = value
    return found


# ── metadata ──


class ProbabilityMetadata(Item):
    #: 0 to 1: how sure it is that the page, or its part, holds such an item.
    probability: float | None = 1.0


class ListMetadata(Item):
    #: ISO 8601, in UTC.
    dateDownloaded: str | None = None


class DetailsMetadata(ListMetadata):
    probability: float | None = 1.0


class SerpMetadata(ListMetadata):
    displayedQuery: str | None = None
    searchedQuery: str | None = None
    totalOrganicResults: int | None = None


# ── components ──


class AdditionalProperty(Item):
    name: str
    value: str


class AggregateRating(Item):
    bestRating: float | None = None
    ratingValue: float | None = None
    reviewCount: int | None = None


class Author(Item):
    email: str | None = None
    url: str | None = None
    name: str | None = None
    nameRaw: str | None = None


class BaseSalary(Item):
    raw: str | None = None
    valueMin: str | None = None
    valueMax: str | None = None
    rateType: str | None = None
    currency: str | None = None
    currencyRaw: str | None = None


class Gtin(Item):
    #: ``gtin13``, ``gtin8``, ``gtin14``, ``upc``, ``isbn10``, ``isbn13``, ``ismn`` or ``issn``.
    type: str
    value: str


class HiringOrganization(Item):
    name: str | None = None
    nameRaw: str | None = None
    id: str | None = None


class JobLocation(Item):
    raw: str | None = None


class _Named(Item):
    name: str


class Brand(_Named):
    pass


class Topic(_Named):
    pass


class Url(Item):
    url: str


class Audio(Url):
    pass


class Image(Url):
    pass


class Video(Url):
    pass


class Request(Url):
    method: str = "GET"
    name: str | None = None


class ProbabilityRequest(Request):
    metadata: ProbabilityMetadata | None = None


class Link(Item):
    text: str | None = None
    url: str | None = None


class NamedLink(Item):
    name: str | None = None
    url: str | None = None


class Breadcrumb(NamedLink):
    pass


class Reactions(Item):
    replies: int | None = None
    reposts: int | None = None
    likes: int | None = None
    dislikes: int | None = None


# ── pages ──


class _Page(Item):
    url: str


class _Details(_Page):
    """One thing that a page is about."""

    metadata: DetailsMetadata | None = None


class _List(_Page):
    """Several things on a page."""

    metadata: ListMetadata | None = None


class _Listing(_List):
    """The entries of a section or a category."""

    canonicalUrl: str | None = None
    breadcrumbs: list[Breadcrumb] | None = None


class _Navigation(_List):
    """The links of a section, a category or a list of openings."""

    items: list[ProbabilityRequest] | None = None
    nextPage: Request | None = None
    pageNumber: int | None = None


# ── articles ──


class _Article(Item):
    """An article, on a page of its own or in a list."""

    articleBody: str | None = None
    authors: list[Author] | None = None
    datePublished: str | None = None
    datePublishedRaw: str | None = None
    headline: str | None = None
    inLanguage: str | None = None
    mainImage: Image | None = None
    images: list[Image] | None = None


class Article(_Article, kw_only=True):
    dateModified: str | None = None
    dateModifiedRaw: str | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    description: str | None = None
    articleBodyHtml: str | None = None
    videos: list[Video] | None = None
    audios: list[Audio] | None = None
    canonicalUrl: str | None = None
    url: str
    metadata: DetailsMetadata | None = None


class ArticleFromList(_Article):
    metadata: ProbabilityMetadata | None = None
    url: str | None = None


class ArticleList(_Listing):
    articles: list[ArticleFromList] | None = None


class ArticleNavigation(_Navigation):
    categoryName: str | None = None
    subCategories: list[ProbabilityRequest] | None = None


# ── products ──


class _Product(Item):
    """A product, or one of its variants."""

    additionalProperties: list[AdditionalProperty] | None = None
    availability: str | None = None
    canonicalUrl: str | None = None
    color: str | None = None
    currency: str | None = None
    currencyRaw: str | None = None
    gtin: list[Gtin] | None = None
    images: list[Image] | None = None
    mainImage: Image | None = None
    mpn: str | None = None
    name: str | None = None
    price: str | None = None
    productId: str | None = None
    regularPrice: str | None = None
    size: str | None = None
    sku: str | None = None
    style: str | None = None


class ProductVariant(_Product):
    url: str | None = None


class Product(_Product, kw_only=True):
    aggregateRating: AggregateRating | None = None
    brand: Brand | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    description: str | None = None
    descriptionHtml: str | None = None
    features: list[str] | None = None
    metadata: DetailsMetadata | None = None
    url: str
    variants: list[ProductVariant] | None = None


class ProductFromList(Item):
    currency: str | None = None
    currencyRaw: str | None = None
    mainImage: Image | None = None
    metadata: ProbabilityMetadata | None = None
    name: str | None = None
    price: str | None = None
    productId: str | None = None
    regularPrice: str | None = None
    url: str | None = None


class ProductList(_Listing):
    categoryName: str | None = None
    pageNumber: int | None = None
    paginationNext: Link | None = None
    products: list[ProductFromList] | None = None


class ProductNavigation(ArticleNavigation):
    pass


# ── jobs ──


class JobPosting(_Details):
    jobPostingId: str | None = None
    datePublished: str | None = None
    datePublishedRaw: str | None = None
    dateModified: str | None = None
    dateModifiedRaw: str | None = None
    validThrough: str | None = None
    validThroughRaw: str | None = None
    jobTitle: str | None = None
    headline: str | None = None
    jobLocation: JobLocation | None = None
    description: str | None = None
    descriptionHtml: str | None = None
    employmentType: str | None = None
    baseSalary: BaseSalary | None = None
    requirements: list[str] | None = None
    hiringOrganization: HiringOrganization | None = None
    jobStartDate: str | None = None
    jobStartDateRaw: str | None = None
    remoteStatus: str | None = None


class JobPostingNavigation(_Navigation):
    pass


# ── forums, searches, any page ──


class SocialMediaPostAuthor(Item):
    #: An extension: the schema has no name of the author of a post.
    name: str | None = None
    numberOfFollowers: int | None = None
    numberOfFollowing: int | None = None
    dateAccountCreated: str | None = None
    location: str | None = None
    isVerified: bool | None = None


class SocialMediaPost(_Details):
    postId: str | None = None
    reactions: Reactions | None = None
    text: str | None = None
    datePublished: str | None = None
    hashtags: list[str] | None = None
    mediaUrls: list[Url] | None = None
    author: SocialMediaPostAuthor | None = None


class ForumThread(_List):
    topic: Topic | None = None
    threadId: str | None = None
    posts: list[SocialMediaPost] | None = None


class SerpOrganicResult(Item):
    description: str | None = None
    name: str | None = None
    url: str | None = None
    rank: int | None = None
    displayedUrlText: str | None = None
    guessedOrigin: str | None = None
    guessedUrl: str | None = None


class Serp(_Page):
    organicResults: list[SerpOrganicResult] | None = None
    pageNumber: int | None = None
    metadata: SerpMetadata | None = None


class PageContent(_Details):
    canonicalUrl: str | None = None
    headline: str | None = None
    title: str | None = None
    itemMain: str | None = None
    itemMainXPath: str | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    navigationHeader: list[NamedLink] | None = None
    navigationFooter: list[NamedLink] | None = None
    navigationSidebar: list[NamedLink] | None = None
    pagination: list[NamedLink] | None = None
    nextPage: Request | None = None
