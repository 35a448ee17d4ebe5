"""Schema of the items that are extracted: the fields of zyte-common-items, as records.

The names and meanings of the fields are part of the contract of the extraction API. A test compares each record with
the class of the same name in zyte-common-items, which is not needed to extract: it brings libraries for page objects,
one of them as source. Fields that nothing here extracts are left out. None stands for a value that a page does not
have.
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


class Audio(Item):
    url: str


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


class Brand(Item):
    name: str


class Breadcrumb(Item):
    name: str | None = None
    url: str | None = None


class Gtin(Item):
    #: ``gtin13``, ``gtin8``, ``gtin14``, ``upc``, ``isbn10``, ``isbn13``, ``ismn`` or ``issn``.
    type: str
    value: str


class HiringOrganization(Item):
    name: str | None = None
    nameRaw: str | None = None
    id: str | None = None


class Image(Item):
    url: str


class JobLocation(Item):
    raw: str | None = None


class Link(Item):
    text: str | None = None
    url: str | None = None


class NamedLink(Item):
    name: str | None = None
    url: str | None = None


class Reactions(Item):
    replies: int | None = None
    reposts: int | None = None
    likes: int | None = None
    dislikes: int | None = None


class Request(Item):
    url: str
    method: str = "GET"
    name: str | None = None


class ProbabilityRequest(Request):
    metadata: ProbabilityMetadata | None = None


class Topic(Item):
    name: str


class Url(Item):
    url: str


class Video(Item):
    url: str


# ── one thing on a page ──


class Article(Item, kw_only=True):
    headline: str | None = None
    datePublished: str | None = None
    datePublishedRaw: str | None = None
    dateModified: str | None = None
    dateModifiedRaw: str | None = None
    authors: list[Author] | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    inLanguage: str | None = None
    mainImage: Image | None = None
    images: list[Image] | None = None
    description: str | None = None
    articleBody: str | None = None
    articleBodyHtml: str | None = None
    videos: list[Video] | None = None
    audios: list[Audio] | None = None
    canonicalUrl: str | None = None
    url: str
    metadata: DetailsMetadata | None = None


class JobPosting(Item):
    url: str
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
    metadata: DetailsMetadata | None = None


class PageContent(Item):
    url: str
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
    metadata: DetailsMetadata | None = None


class ProductVariant(Item):
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
    url: str | None = None


class Product(Item, kw_only=True):
    additionalProperties: list[AdditionalProperty] | None = None
    aggregateRating: AggregateRating | None = None
    availability: str | None = None
    brand: Brand | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    canonicalUrl: str | None = None
    color: str | None = None
    currency: str | None = None
    currencyRaw: str | None = None
    description: str | None = None
    descriptionHtml: str | None = None
    features: list[str] | None = None
    gtin: list[Gtin] | None = None
    images: list[Image] | None = None
    mainImage: Image | None = None
    metadata: DetailsMetadata | None = None
    mpn: str | None = None
    name: str | None = None
    price: str | None = None
    productId: str | None = None
    regularPrice: str | None = None
    size: str | None = None
    sku: str | None = None
    style: str | None = None
    url: str
    variants: list[ProductVariant] | None = None


# ── several things on a page ──


class ArticleFromList(Item):
    articleBody: str | None = None
    authors: list[Author] | None = None
    datePublished: str | None = None
    datePublishedRaw: str | None = None
    headline: str | None = None
    inLanguage: str | None = None
    mainImage: Image | None = None
    images: list[Image] | None = None
    metadata: ProbabilityMetadata | None = None
    url: str | None = None


class ArticleList(Item):
    url: str
    canonicalUrl: str | None = None
    articles: list[ArticleFromList] | None = None
    breadcrumbs: list[Breadcrumb] | None = None
    metadata: ListMetadata | None = None


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


class ProductList(Item, kw_only=True):
    breadcrumbs: list[Breadcrumb] | None = None
    canonicalUrl: str | None = None
    categoryName: str | None = None
    metadata: ListMetadata | None = None
    pageNumber: int | None = None
    paginationNext: Link | None = None
    products: list[ProductFromList] | None = None
    url: str


class SocialMediaPostAuthor(Item):
    #: An extension: the schema has no name of the author of a post.
    name: str | None = None
    numberOfFollowers: int | None = None
    numberOfFollowing: int | None = None
    dateAccountCreated: str | None = None
    location: str | None = None
    isVerified: bool | None = None


class SocialMediaPost(Item):
    url: str
    postId: str | None = None
    reactions: Reactions | None = None
    text: str | None = None
    datePublished: str | None = None
    hashtags: list[str] | None = None
    mediaUrls: list[Url] | None = None
    author: SocialMediaPostAuthor | None = None
    metadata: DetailsMetadata | None = None


class ForumThread(Item):
    url: str
    topic: Topic | None = None
    threadId: str | None = None
    posts: list[SocialMediaPost] | None = None
    metadata: ListMetadata | None = None


class SerpOrganicResult(Item):
    description: str | None = None
    name: str | None = None
    url: str | None = None
    rank: int | None = None
    displayedUrlText: str | None = None
    guessedOrigin: str | None = None
    guessedUrl: str | None = None


class Serp(Item, kw_only=True):
    organicResults: list[SerpOrganicResult] | None = None
    url: str
    pageNumber: int | None = None
    metadata: SerpMetadata | None = None


# ── links of a page ──


class ArticleNavigation(Item):
    url: str
    categoryName: str | None = None
    subCategories: list[ProbabilityRequest] | None = None
    items: list[ProbabilityRequest] | None = None
    nextPage: Request | None = None
    pageNumber: int | None = None
    metadata: ListMetadata | None = None


class ProductNavigation(ArticleNavigation):
    pass


class JobPostingNavigation(Item):
    url: str
    items: list[ProbabilityRequest] | None = None
    nextPage: Request | None = None
    pageNumber: int | None = None
    metadata: ListMetadata | None = None
