"""Archives that are made to harm who reads them, each of a few megabytes at most."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Final

_MEGABYTES = 16


@cache
def _zeros() -> bytes:
    """A member of a gzip file that becomes 16 MB of zeros."""
    return gzip.compress(bytes(_MEGABYTES * 2**20), 9, mtime=0)


def _header(kind: bytes, size: int, name: str = "././@LongLink") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


def tar_header(kind: bytes, gigabytes: int = 3) -> bytes:
    """A header whose own data become gigabytes."""
    size = gigabytes * 2**30
    return gzip.compress(_header(kind, size), mtime=0) + _zeros() * (size // (_MEGABYTES * 2**20))


def gzip_bomb() -> bytes:
    """One file of 4 GB."""
    return gzip.compress(_header(tarfile.REGTYPE, 2**32, "scrapy.cfg"), mtime=0) + _zeros() * 256


def sparse() -> bytes:
    """A sparse file with blocks of its map without end."""
    first = bytearray(_header(tarfile.GNUTYPE_SPARSE, 512, "a"))
    first[482] = 1
    first[148:156] = b" " * 8
    first[148:156] = b"%06o\0 " % sum(first)
    more = gzip.compress((b"0" * 504 + b"\1" + bytes(7)) * 32768, 9, mtime=0)
    return gzip.compress(bytes(first), mtime=0) + more * 20


def pax_sparse() -> bytes:
    """A sparse file of the pax form whose map has as many numbers as there are."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("a")
        entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        data = b"99999999\n" + b"1\n" * 2**20
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def chain() -> bytes:
    """Long names of long names."""
    return gzip.compress((_header(tarfile.GNUTYPE_LONGNAME, 512) + b"a" * 512) * 5000, mtime=0)


def global_fields() -> bytes:
    """Pax fields for all files, which each file would have a copy of."""
    fields = b"".join(b"%d %d=\n" % (len(str(n)) + 5, n) for n in range(1000, 5000))
    parts = [_header(tarfile.XGLTYPE, len(fields)), fields, bytes(-len(fields) % 512)]
    parts += [_header(tarfile.REGTYPE, 0, str(n)) for n in range(15_000)]
    return gzip.compress(b"".join(parts), mtime=0)


def entries(kind: bytes) -> bytes:
    """A link or a device."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("scrapy.cfg")
        entry.type, entry.linkname = kind, "/etc/passwd"
        tar.addfile(entry)
    return packed.getvalue()


def tar_of(*files: tuple[str, bytes]) -> bytes:
    """These files in this order."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path, data in files:
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def zip_of(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    """These files in this order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two files of one name
        for path, data in files:
            archive.writestr(path, data)
    return bytearray(packed.getvalue())


def _patched(packed: bytearray, offset: int, form: str, value: int) -> bytes:
    """The directory entry of the last file with another value."""
    struct.pack_into(form, packed, packed.rindex(b"PK\1\2") + offset, value)
    return bytes(packed)


def zip_directory() -> bytes:
    """A directory with more entries than memory is for."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", *(20, 20, 0, 0, 0, 0), *(0, 0, 0), *(1, 0, 0, 0, 0), *(0, 0)) + b"a"
    count = 900_000
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count % 65536, count % 65536, len(entry) * count, 0, 0)
    return entry * count + end


def zip64() -> bytes:
    """A directory of terabytes, by the larger form of the sizes."""
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 2**42, 0)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1)
    return end64 + locator + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def overlapping() -> bytes:
    """Two files of the same bytes."""
    packed = zip_of(("a", b"1" * 1000), ("b", b"1" * 1000))
    return _patched(packed, 42, "<I", 0)


def zip_larger() -> bytes:
    """A file that becomes a gigabyte, and that the directory calls small."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(2**24)
    data = b"".join(packer.compress(piece) for _ in range(64)) + packer.flush()
    packed = zip_of(("scrapy.cfg", data), method=zipfile.ZIP_STORED)
    for signature, place in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        struct.pack_into("<H", packed, packed.index(signature) + place, zipfile.ZIP_DEFLATED)
    return bytes(packed)


def many_names() -> bytes:
    """Names that are folders in folders, each of which has to be remembered."""
    deep = "/".join("a" * 500)
    return bytes(zip_of(*((f"{n}/{deep}", b"") for n in range(5_000))))


#: By what is wrong: the archive, and the reason that its sender gets.
ATTACKS: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "long name of 3 GB": (lambda: tar_header(tarfile.GNUTYPE_LONGNAME), r"a header in it \(type 'L'\) is over"),
    "long link of 3 GB": (lambda: tar_header(tarfile.GNUTYPE_LONGLINK), r"a header in it \(type 'K'\) is over"),
    "pax header of 3 GB": (lambda: tar_header(tarfile.XHDTYPE), r"a header in it \(type 'x'\) is over"),
    "global pax header of 3 GB": (lambda: tar_header(tarfile.XGLTYPE), r"a header in it \(type 'g'\) is over"),
    "file of 4 GB": (gzip_bomb, "becomes over"),
    "sparse file": (sparse, "neither a file nor"),
    "sparse file by pax": (pax_sparse, "damaged|memory|neither"),
    "chain of names": (chain, "damaged"),
    "fields of all files": (global_fields, "memory|says so"),
    "symbolic link": (lambda: entries(tarfile.SYMTYPE), "neither a file nor"),
    "hard link": (lambda: entries(tarfile.LNKTYPE), "neither a file nor"),
    "device": (lambda: entries(tarfile.CHRTYPE), "neither a file nor"),
    "pipe": (lambda: entries(tarfile.FIFOTYPE), "neither a file nor"),
    "name of 60 kB": (lambda: tar_of(("a" * 60_000, b"")), "over 1024 bytes"),
    "name of 1 MB": (lambda: tar_of(("a/" * 500_000, b"")), "is over"),
    "same path twice": (lambda: tar_of(("scrapy.cfg", b""), ("./scrapy.cfg", b"")), "is in it twice"),
    "path through a file": (lambda: tar_of(("scrapy.cfg", b""), ("scrapy.cfg/a", b"")), "leads through a file"),
    "file where a folder is": (lambda: tar_of(("a/b", b""), ("a", b"")), "is in it twice"),
    "requirements of 9 MB": (
        lambda: bytes(zip_of(("EGG-INFO/requires.txt", b"a\n" * 4_500_000))),
        "is over 8388608 bytes",
    ),
    "metadata of 9 MB": (lambda: bytes(zip_of(("a-1.dist-info/METADATA", b"a" * 9_000_000))), "is over 8388608 bytes"),
    "packed by xz": (lambda: __import__("lzma").compress(b"scrapy.cfg"), "damaged"),
    "packed by bzip2": (lambda: __import__("bz2").compress(b"scrapy.cfg"), "damaged"),
    "gzip in gzip": (lambda: gzip.compress(tar_of(("scrapy.cfg", b""))), "damaged"),
    "zip directory of 900,000": (zip_directory, r"not a file is over|memory"),
    "zip directory of 4 TB": (zip64, "damaged|not a file is over"),
    "zip files that overlap": (overlapping, "share their bytes"),
    "zip file larger than it says": (zip_larger, "damaged|is wrong"),
    "zip file smaller than it says": (
        lambda: _patched(zip_of(("a.py", b"abc")), 24, "<I", 2**28),
        "damaged|is wrong",
    ),
    "zip file by LZMA": (lambda: bytes(zip_of(("scrapy.cfg", b""), method=zipfile.ZIP_LZMA)), "another method"),
    "zip file by bzip2": (lambda: bytes(zip_of(("scrapy.cfg", b""), method=zipfile.ZIP_BZIP2)), "another method"),
    "zip file with a password": (lambda: _patched(zip_of(("scrapy.cfg", b"")), 8, "<H", 1), "encrypted"),
    "zip with a path twice": (lambda: bytes(zip_of(("scrapy.cfg", b"1"), ("scrapy.cfg", b"2"))), "is in it twice"),
    "zip with a long comment": (lambda: bytes(zip_of(("a", b""))) + b"#" * 2**20, "damaged"),
    "zip with deep paths": (many_names, "memory|says so"),
}
