"""Forms with a file, as other tools write them."""

from __future__ import annotations


def form(archive: bytes, name: str = "egg", file_name: str = "x", **fields: str) -> tuple[bytes, str]:
    """A form with an archive, and its content type."""
    parts = [
        f'Content-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode() for field, value in fields.items()
    ]
    parts.append(
        f'Content-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n\r\n'.encode() + archive + b"\r\n"
    )
    return b"".join(b"--limit\r\n" + part for part in parts) + b"--limit--\r\n", "multipart/form-data; boundary=limit"
