"""Limits of ``POST /extract`` (extraction-api.md, Limits), in characters unless stated."""

from __future__ import annotations

from typing import Final

#: Request body in bytes (rule 12).
MAX_BODY_BYTES: Final = 5 * 1024 * 1024
MAX_URL_LENGTH: Final = 8192
#: ``httpRequestBody`` in Base64 characters, as sent.
MAX_HTTP_REQUEST_BODY_LENGTH: Final = 400_000
MIN_HTTP_REQUEST_TEXT_LENGTH: Final = 1
MAX_HTTP_REQUEST_TEXT_LENGTH: Final = 400_000
MAX_CUSTOM_HEADERS: Final = 200
MIN_HEADER_NAME_LENGTH: Final = 1
#: ``requestCookies`` of this package's service and client: more bytes than sites accept in a header.
MAX_COOKIES: Final = 3000
