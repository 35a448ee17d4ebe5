"""Small PDFs, written by hand: lines of text in their places, and files that are broken or hostile."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: The size of a page in points.
WIDTH, HEIGHT = 612, 792


class Text(NamedTuple):
    """A line of text. ``top``: points from the top of the page to the line on which the letters stand."""

    text: str
    left: float = 72
    top: float = 72
    size: float = 11


def lines(texts: Sequence[str], *, left: float = 72, top: float = 72, size: float = 11, step: float = 14) -> list[Text]:
    """Lines below each other."""
    return [Text(text, left, top + at * step, size) for at, text in enumerate(texts)]


def pdf(
    *pages: Sequence[Text],
    information: Mapping[str, str] | None = None,
    language: str | None = None,
    catalog: str = "",
) -> bytes:
    """A PDF with these pages. ``catalog`` is added to its root object."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    stated = "".join(f"/{name} {_string(value)} " for name, value in (information or {}).items())
    catalog += f"/Lang {_string(language)}" if language else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} /MediaBox [0 0 {WIDTH} {HEIGHT}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for at, page in enumerate(pages):
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * at} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} >>".encode())
        objects.append(stream("\n".join(map(_shown, page)).encode("cp1252")))
    objects.append(f"<< {stated} >>".encode())
    return file_of(objects, f"/Info {len(objects)} 0 R")


def _shown(text: Text) -> str:
    return f"BT /F1 {text.size} Tf 1 0 0 1 {text.left} {HEIGHT - text.top} Tm {_literal(text.text)} Tj ET"


def _literal(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"({escaped})"


def _string(text: str) -> str:
    marked = "\ufeff" + text
    return f"<{marked.encode('utf-16-be').hex()}>"


def stream(data: bytes, *, compressed: bool = True, more: str = "") -> bytes:
    """A stream object. ``more`` is added to its dictionary."""
    if compressed:
        data, more = zlib.compress(data), f"/Filter /FlateDecode {more}"
    return f"<< /Length {len(data)} {more} >>\nstream\n".encode() + data + b"\nendstream"


def file_of(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """A file of these objects, the first of which is its root, with a table of their places."""
    body, places = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
    begin = len(body)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    body += "".join(f"{place:010} 00000 n \n" for place in places).encode()
    body += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{begin}\n%%EOF\n".encode()
    return bytes(body)


def with_password() -> bytes:
    """A PDF that opens with a password only (RC4, 40 bits); nothing of it can be read, so the password is none."""
    encrypt = f"<< /Filter /Standard /V 1 /R 2 /O <{'41' * 32}> /U <{'42' * 32}> /P -4 >>".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        encrypt,
    ]
    return file_of(objects, f"/Encrypt 3 0 R /ID [<{'43' * 16}> <{'43' * 16}>]")


def of_images() -> bytes:
    """A PDF as scanners make them: a page with an image."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 {WIDTH} {HEIGHT}] >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /I 4 0 R >> >> /Contents 5 0 R >>",
        stream(
            b"\x00\xff\x00\xff",
            more="/Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8",
        ),
        stream(b"q 400 0 0 400 72 72 cm /I Do Q"),
    ]
    return file_of(objects)


def bomb(size: int) -> bytes:
    """A PDF with a page whose content becomes ``size`` bytes, compressed twice."""
    step = zlib.compressobj(9)
    part = b"(a) Tj " * 10_000
    body = step.compress(b"BT /F1 11 Tf ") + b"".join(step.compress(part) for _ in range(size // len(part)))
    packed = zlib.compress(body + step.flush(), 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 {WIDTH} {HEIGHT}] >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
        stream(packed, compressed=False, more="/Filter [/FlateDecode /FlateDecode]"),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    return file_of(objects)


def endless(depth: int = 25) -> bytes:
    """A small PDF with a page that draws a form, which draws another one twice, and so on."""
    names = [f"{6 + at} 0 R" for at in range(depth)]
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 {WIDTH} {HEIGHT}] >>".encode(),
        f"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X {names[0]} >> >> /Contents 4 0 R >>".encode(),
        stream(b"/X Do"),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    form = "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources <<"
    objects += [stream(b"/X Do /X Do", more=f"{form} /XObject << /X {name} >> >>") for name in names[1:]]
    objects.append(stream(b"BT /F1 11 Tf 72 72 Td (a) Tj ET", more=f"{form} /Font << /F1 5 0 R >> >>"))
    return file_of(objects)


def hostile() -> dict[str, bytes]:
    """Small PDFs that are made to break a reader, by their fault."""
    page = b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    root, box = b"<< /Type /Catalog /Pages 2 0 R >>", b"/MediaBox [0 0 612 792]"
    text = stream(b"BT /F1 11 Tf 72 700 Td (The text of the page is here.) Tj ET")
    tree = b"<< /Type /Pages /Kids [3 0 R] /Count 1 " + box + b" >>"

    def with_objects(*changed: tuple[int, bytes]) -> bytes:
        objects = [root, tree, page, text, font]
        for number, body in changed:
            objects[number - 1 : number] = [body]
        return file_of(objects)

    deep = b"[" * 20_000 + b"]" * 20_000
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X 4 0 R >> >>"
    whole = with_objects()
    return {
        "nested arrays": with_objects((5, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /X " + deep + b" >>")),
        "nested arrays in a content": with_objects((4, stream(deep + b" TJ"))),
        "nested dictionaries": with_objects((2, b"<< /X " * 20_000 + b">>" * 20_000)),
        "a page tree in a circle": with_objects((2, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 100000 >>")),
        "a page that is its own parent": with_objects((3, b"<< /Type /Page /Parent 3 0 R /Contents 4 0 R >>")),
        "a reference to itself": with_objects((4, b"4 0 R")),
        "a length in a circle": with_objects((4, b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream")),
        "a form that draws itself": with_objects((4, stream(b"/X Do /X Do", more=form.decode()))),
        "a number of pages": with_objects((2, b"<< /Type /Pages /Kids [3 0 R] /Count 2147483647 " + box + b" >>")),
        "a negative number of pages": with_objects((2, b"<< /Type /Pages /Kids [3 0 R] /Count -5 " + box + b" >>")),
        "the same page many times": with_objects(
            (2, b"<< /Type /Pages /Kids [" + b"3 0 R " * 100_000 + b"] /Count 100000 " + box + b" >>")
        ),
        "an object of its own stream": with_objects(
            (4, stream(b"4 0 " * 1000, more="/Type /ObjStm /N 1000 /First 4 /Extends 4 0 R"))
        ),
        "a table of places in a circle": whole.replace(b"/Root 1 0 R", b"/Prev 15 /Root 1 0 R"),
        "no table of places": whole[: whole.index(b"xref\n")],
        "cut in the middle": whole[: len(whole) // 2],
        "only a signature": b"%PDF-1.7\n",
        "a signature and noise": b"%PDF-1.7\n" + bytes(range(256)) * 50,
        "large numbers": with_objects((4, stream(b"BT /F1 1e38 Tf -1e38 1e38 Td 1e300 Tc (a) Tj 9" * 50 + b" Td ET"))),
        "unknown filter": with_objects((4, stream(b"x", compressed=False, more="/Filter [/A85 /JBIG2Decode /Foo]"))),
    }
