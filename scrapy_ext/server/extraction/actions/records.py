"""An action as a caller writes it."""

from __future__ import annotations

import msgspec


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An element: the first that a CSS selector, an XPath or a visible text finds.

    ``state`` is what ``waitForSelector`` waits for.
    """

    value: str
    type: str = "css"
    state: str = "visible"


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One action. Which members an action of its kind takes is in :data:`~.table.ACTIONS`."""

    action: str
    selector: Selector | None = None
    text: str = ""
    key: str = ""
    values: list[str] = []
    button: str = "left"
    delay: float = 0.0
    timeout: float | None = None
    wait_for_navigation_timeout: float = 0.0
    wait_until: str = "load"
    url: str = ""
    url_pattern: str = ""
    url_matching_options: str = "contains"
    source: str = ""
    max_scroll_count: int | None = None
    max_scroll_delay: float = 3.0
    max_page_height: int | None = None
    top: int = 0
    left: int = 0
    on_error: str = "return"
    #: Why the service does not do it. No member: nobody but the service sets it.
    refused: str = ""


class ActionError(Exception):
    """An action failed; the message is for the caller."""
