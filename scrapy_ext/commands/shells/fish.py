"""The script for fish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final

from scrapy_ext.commands.shells.tree import JOBS, SPIDERS, Option, Place

_HEAD: Final = """\
# Completion of `scrapy platform` in fish, made by `scrapy platform completion fish`.
# To have it in every shell: scrapy platform completion fish > ~/.config/fish/completions/scrapy.fish
set -g __scrapy_platform_with_actions {with_actions}
function __scrapy_platform_place --description 'the subcommand, and its action, before the cursor'
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = platform; or return 1
    if test (count $words) -ge 4; and contains -- "$words[3]" $__scrapy_platform_with_actions
        echo "$words[3] $words[4]"
    else
        echo "$words[3]"
    end
end
function __scrapy_platform_at
    set -l place (__scrapy_platform_place); and test "$place" = "$argv[1]"
end
function __scrapy_platform_spiders
    {python} -m scrapy_ext.commands.shells.names spiders 2>/dev/null
end
function __scrapy_platform_jobs
    echo last
    {python} -m scrapy_ext.commands.shells.names jobs 2>/dev/null
end
complete -c scrapy -n 'test (count (commandline -opc)) -eq 1' -f -a platform -d 'Run jobs, and see what they store'
"""
_LOOKED_UP: Final = {SPIDERS: "(__scrapy_platform_spiders)", JOBS: "(__scrapy_platform_jobs)"}


def fish(places: Sequence[Place], python: str) -> str:
    """The script for fish."""
    with_actions = dict.fromkeys(place.key.split()[0] for place in places if " " in place.key)
    head = _HEAD.replace("{with_actions}", " ".join(with_actions)).replace("{python}", _quoted(python))
    return head + "".join(f"{line}\n" for place in places for line in _lines(place, {*with_actions}))


def _lines(place: Place, with_actions: Set[str]) -> Iterator[str]:
    before, _, name = place.key.rpartition(" ")
    yield f"{_at(before)} -f -a {_quoted(name)} -d {_quoted(place.summary)}"
    at = _at(place.key)
    looked_up = [_LOOKED_UP.get(word, word) for word in place.arguments]
    # The actions of a subcommand have lines of their own.
    if place.arguments and place.key not in with_actions:
        yield f"{at} -f -a {_quoted(' '.join(looked_up))}"
    for option in place.options:
        yield f"{at} {_names(option)} -d {_quoted(option.help)}{_values(option)}"


def _at(key: str) -> str:
    return f"complete -c scrapy -n {_quoted(f'__scrapy_platform_at {_quoted(key)}')}"


def _names(option: Option) -> str:
    return " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)


def _values(option: Option) -> str:
    if option.values is None:
        return ""
    if not option.values:
        return " -r"
    return f" -x -a {_quoted(' '.join(_LOOKED_UP.get(word, word) for word in option.values))}"


def _quoted(text: str) -> str:
    """Fish knows two escapes within single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
