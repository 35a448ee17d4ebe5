"""Table of all errors of the extraction service (extraction-api.md, Errors)."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

PROBLEM_CONTENT_TYPE: Final = "application/problem+json"


class Scope(str, Enum):
    """The subject of a rate limit or an overload."""

    NONE = "none"
    USER = "user"
    DOMAIN = "domain"
    ORGANISATION_DOMAIN = "organisation and domain"
    GLOBAL = "global"


CAUSE_HEADER: Final = "Extract-Cause"


class Cause(str, Enum):
    """The cause of a problem in more detail than its type, sent in the header :data:`CAUSE_HEADER`, an extension."""

    HOST_NOT_FOUND = "host-not-found"
    HOST_NOT_ALLOWED = "host-not-allowed"
    CONNECTION_REFUSED = "connection-refused"
    TIMEOUT = "timeout"
    CUT_SHORT = "cut-short"
    TOO_LARGE = "too-large"
    NO_BROWSER = "no-browser"


class ProblemType(msgspec.Struct, frozen=True):
    """A row of the table of errors."""

    type: str
    status: int
    title: str
    condition: str
    scope: Scope = Scope.NONE

    @property
    def retry_after(self) -> bool:
        """Return true when the answer has a ``Retry-After`` header (integer seconds, at least 0)."""
        return self.status in (429, 503, 520)

    @property
    def retryable(self) -> bool:
        """Return true when the contract allows sending the same request again."""
        return self.retry_after or self.status == 500


_TOO_MANY: Final = "Too many requests."
_ORGANISATION_TITLE: Final = "Over Organisation Requests limit for the requested domain"
_ORGANISATION: Final = "Too many requests to one domain by the organisation."
_UNPROCESSABLE: Final = "Request cannot be processed, for example incompatible parameters."
_SUSPENDED: Final = "Account suspended, or not allowed to make the request."
_UNREACHABLE: Final = "Domain invalid or unreachable. Not to be retried."
_ROWS: Final = (
    ProblemType("/request/invalid", 400, "Bad Request", "Malformed request, for example an unrecognised field."),
    ProblemType("/request/invalid-json", 400, "Invalid JSON", "Body is not valid JSON."),
    ProblemType("/auth/not-valid", 401, "Authentication Info Invalid", "No valid authentication information."),
    ProblemType("/auth/key-not-found", 401, "Authentication Key Not Found", "Key invalid or cannot be matched."),
    ProblemType("/auth/account-suspended", 403, "Account Suspended", _SUSPENDED),
    # The contract's table has no 413; a body over its 5 MiB limit gets it (rule 12).
    ProblemType("/request/too-large", 413, "Request Too Large", "Request body over 5 MiB."),
    ProblemType("/website/domain-unreachable", 421, "Domain Unreachable", _UNREACHABLE),
    ProblemType("/request/unprocessable", 422, "Unprocessable Request", _UNPROCESSABLE),
    ProblemType("/limits/over-user-limit", 429, "Over User Requests Limit", _TOO_MANY, Scope.USER),
    ProblemType("/limits/over-domain-limit", 429, "Over Domain Requests Limit", _TOO_MANY, Scope.DOMAIN),
    ProblemType("/limits/over-org-domain-limit", 429, _ORGANISATION_TITLE, _ORGANISATION, Scope.ORGANISATION_DOMAIN),
    ProblemType("/download/domain-forbidden", 451, "Domain Forbidden", "Extraction for the domain is forbidden."),
    ProblemType("/server/internal", 500, "Internal Server Error", "Internal error."),
    ProblemType("/server/timed-out", 500, "Request Timed Out", "The request took too long."),
    ProblemType("/limits/over-global-limit", 503, "Global Requests Limit Reached", "System overload.", Scope.GLOBAL),
    ProblemType("/download/temporary-error", 520, "Website Ban", "No ban-free response in reasonable time."),
    ProblemType("/download/internal-error", 521, "Internal Downloading Error", "Permanent downloading error."),
)
PROBLEM_TYPES: Final[dict[str, ProblemType]] = {row.type: row for row in _ROWS}


class Problem(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The body of an error (RFC 9457); ``blocked_domain`` only in the 451 problem."""

    type: str
    title: str
    status: int
    detail: str
    blocked_domain: str | None = None

    @classmethod
    def of(cls, type: str, detail: str, *, blocked_domain: str | None = None) -> Problem:
        """Return the problem of a row of :data:`PROBLEM_TYPES`."""
        row = PROBLEM_TYPES[type]
        return cls(type, row.title, row.status, detail, blocked_domain)

    @classmethod
    def from_answer(cls, status: int, body: bytes) -> Problem:
        """Read an error answer, whose body may be missing or not a problem.

        Absent members and those of a wrong type are derived from the HTTP status (extraction-api.md, Errors).
        """
        try:
            decoded: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            decoded = None
        members: dict[str, Any] = decoded if isinstance(decoded, dict) else {}

        def text(name: str, default: str) -> str:
            value = members.get(name)
            return value if isinstance(value, str) else default

        blocked = members.get("blockedDomain")
        return cls(
            type=text("type", ""),
            title=text("title", f"HTTP {status}"),
            status=status,
            detail=text("detail", ""),
            blocked_domain=blocked if isinstance(blocked, str) else None,
        )
