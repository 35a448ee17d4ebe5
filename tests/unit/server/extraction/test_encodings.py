"""Encodings of pages that are declared, in a time that grows with the length of the page alone."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.encodings import text_of, xml_declared

#: Bytes of a hostile page, and of its header: the square of either takes minutes.
_LENGTH = 1024 * 1024
_HEADER = 200_000


@pytest.mark.parametrize(
    ("declaration", "label"),
    [
        (b'<?xml version="1.0" encoding="koi8-r"?>', "koi8-r"),
        (b"<?xml version='1.0' encoding = 'koi8-r' standalone='yes'?>", "koi8-r"),
        (b"<?xml\nversion='1.0'\nencoding\n=\n'koi8-r'\n?>", "koi8-r"),
        (b"<?xml encoding='' encoding='koi8-r'?>", ""),
        (b"<?xml encoding='koi8-r\" encoding='utf-8'?>", "utf-8"),
        (b"<?xml version='1.0'?><a encoding='koi8-r'>", None),
        (b"<?xml version='1.0' encoding='koi8-r'", None),
        (b" <?xml version='1.0' encoding='koi8-r'?>", None),
    ],
)
def test_the_encoding_of_an_xml_declaration(declaration: bytes, label: str | None) -> None:
    assert xml_declared(declaration) == label


@pytest.mark.parametrize("end", [b"", b">"])
@pytest.mark.parametrize(
    "piece", [b' encoding="a"', b' encoding="a', b" encoding=", b" encoding='a\"", b" ", b"encoding"]
)
def test_a_long_xml_declaration_takes_a_time_that_grows_with_its_length(piece: bytes, end: bytes) -> None:
    declaration = b"<?xml encoding = " + piece * (_LENGTH // len(piece)) + end
    assert text_of("text/html", declaration).startswith("<?xml")


@pytest.mark.parametrize(
    "piece",
    ["<", "</", "<!", "<?", "<!--", "</ ", "<title>", "<meta ", "<meta charset=", "<a<", "<meta a='", "<style></styl"],
)
def test_a_page_of_broken_tags_takes_a_time_that_grows_with_its_length(piece: str) -> None:
    html = "<p>" + piece * (_LENGTH // len(piece))
    assert text_of("text/html", html.encode()) == html


@pytest.mark.parametrize("piece", [" ", "charset=", "charset= ", ";charset", "\"'", "; charset=' "])
def test_a_long_content_type_takes_a_time_that_grows_with_its_length(piece: str) -> None:
    content_type = "text/html; charset=" + piece * (_HEADER // len(piece))
    assert text_of(content_type, b"text") == "text"


@pytest.mark.parametrize("given", ["koi8-r", '"koi8-r"', "'koi8-r'", ' = " koi8-r "', "koi8-r;a=b", " koi8-r"])
def test_the_encoding_of_a_content_type(given: str) -> None:
    content_type = f"text/html; charset{given if '=' in given[:3] else f'={given}'}"
    assert text_of(content_type, "Ж".encode("koi8-r")) == "Ж"
