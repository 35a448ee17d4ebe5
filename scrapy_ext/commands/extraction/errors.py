"""What ends the command before its work is done; each message is one line that says why and what to do."""

from __future__ import annotations


class CallError(Exception):
    """The call, its files or the settings are wrong: nothing was sent."""


class StopError(Exception):
    """Nothing more can be sent, or kept: the lines that are left are not done."""
