"""The parser of command lines, with one-line errors that suggest a correction."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final, NoReturn

#: The errors of argparse for a value, and for an option, that do not exist (Python 3.11 to 3.14).
_CHOICE: Final = re.compile(r"invalid choice: '?([^']*?)'? \(choose from (.*)\)", re.DOTALL)
_OPTION: Final = re.compile(r"unrecognized arguments: (-[^\s=]+)")


#: The exit code of a wrong call, as in argparse.
_USAGE: Final = 2


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'items'?"`` for the nearest known word, or ""."""
    nearest = get_close_matches(word, list(known), 1)
    return f"did you mean {nearest[0]!r}?" if nearest else ""


class SuggestingParser(argparse.ArgumentParser):
    """A parser whose errors suggest its own options and actions, and the options of those."""

    def error(self, message: str) -> NoReturn:
        """Exit with the message and a suggestion."""
        if found := _CHOICE.search(message):
            meant = did_you_mean(found[1], re.findall(r"[^\s',]+", found[2]))
        elif found := _OPTION.match(message):
            meant = did_you_mean(found[1], _options(self))
        else:
            meant = ""
        message = f"{message}; {meant}" if meant else message
        # The error would be hard to find below a full screen of options.
        self.exit(_USAGE, f"usage: {self.prog} …; see {self.prog} --help\n{self.prog}: error: {message}\n")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for of_action in action.choices.values():
                yield from _options(of_action)
