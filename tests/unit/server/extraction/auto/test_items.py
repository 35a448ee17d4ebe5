"""Items: their schema is that of zyte-common-items."""

from __future__ import annotations

from typing import Any

import attrs
import msgspec
import pytest
import zyte_common_items

from scrapy_ext.server.extraction.auto import items
from scrapy_ext.server.extraction.auto.items import Article, Author, DetailsMetadata, Item, as_dict

#: Those without a name in the schema are only extended.
RECORDS = [
    each
    for name, each in vars(items).items()
    if isinstance(each, type) and issubclass(each, Item) and each is not Item and not name.startswith("_")
]
#: Fields that nothing extracts.
LEFT_OUT = {"validationMessages", "searchText", "body", "headers", "aiOverview"}
#: Fields beyond the schema, which its classes keep without reading them.
EXTENSIONS = {"SocialMediaPostAuthor": {"name"}}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_has_the_fields_of_its_class_in_zyte_common_items_in_their_order(record: type[Item]) -> None:
    theirs = attrs.fields_dict(getattr(zyte_common_items, record.__name__))
    extensions = EXTENSIONS.get(record.__name__, set())
    ours = {field.name: field for field in msgspec.structs.fields(record) if field.name not in extensions}
    names = [name for name in theirs if name not in LEFT_OUT]
    # Required fields come first there, and where they are kept in the answer is of no meaning.
    assert sorted(ours) == sorted(names)
    for name, field in ours.items():
        default = theirs[name].default
        assert (field.required, field.required or field.default) == (
            default is attrs.NOTHING,
            default is attrs.NOTHING or default,
        )
        assert plain(field.type) == plain(theirs[name].type), name


def plain(kind: Any) -> str:
    """Name a type without the modules of its classes; metadata of items with the same fields have one class here."""
    text = str(kind).replace("typing.", "").replace("Optional[", "").removeprefix("<class '").removesuffix("'>")
    parts = text.removesuffix("]" if "Optional" in str(kind) else "").replace("[", " [ ").replace("]", " ] ").split()
    named = [part.rpartition(".")[2] for part in parts]
    details = ("Article", "Product", "PageContent", "JobPosting", "SocialMediaPost")
    shared = {f"{name}Metadata": "DetailsMetadata" for name in details}
    lists = (
        "ArticleList",
        "ProductList",
        "ArticleNavigation",
        "ProductNavigation",
        "JobPostingNavigation",
        "ForumThread",
    )
    shared |= {f"{name}Metadata": "ListMetadata" for name in lists}
    return " ".join(shared.get(name, name) for name in named)


def test_fields_without_a_value_are_left_out_at_every_depth() -> None:
    article = Article(
        url="https://example.com",
        headline="",
        images=[],
        authors=[Author(name="Ada", url=None)],
        metadata=DetailsMetadata(probability=0.0),
    )
    assert as_dict(article) == {
        "headline": "",
        "authors": [{"name": "Ada"}],
        "url": "https://example.com",
        "metadata": {"probability": 0.0},
    }
