"""The scripts for bash and zsh, whose tables are the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scrapy_ext.commands.shells.tree import Place

_TABLES: Final = """\
_scrapy_platform_subcommands={subcommands}
_scrapy_platform_actions() {{  # subcommand
    case "$1" in
{actions}
    esac
}}
_scrapy_platform_options() {{  # place
    case "$1" in
{options}
    esac
}}
_scrapy_platform_values() {{  # place, option; fails for an option that takes none
    case "$1 $2" in
{values}
    *) return 1 ;;
    esac
}}
_scrapy_platform_arguments() {{  # place
    case "$1" in
{arguments}
    esac
}}
_scrapy_platform_named() {{  # words, some of which stand for names of this project
    local word
    for word in "$@"; do
        case "$word" in
        @jobs) printf 'last\\n'; {python} -m scrapy_ext.commands.shells.names jobs 2>/dev/null ;;
        @*) {python} -m scrapy_ext.commands.shells.names "${{word#@}}" 2>/dev/null ;;
        *) printf '%s\\n' "$word" ;;
        esac
    done
}}
"""

_BASH: Final = """\
# Completion of `scrapy platform` in bash, made by `scrapy platform completion bash`.
# To have it in every shell: scrapy platform completion bash >> ~/.bash_completion
{tables}
# What completes other scrapy commands, if something does.
_scrapy_platform_found=$(complete -p scrapy 2>/dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')
[ "$_scrapy_platform_found" = _scrapy_platform ] || _scrapy_platform_before=$_scrapy_platform_found
_scrapy_platform() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if [ "${COMP_WORDS[1]}" != platform ] || [ "$COMP_CWORD" -lt 2 ]; then
        if [ -n "$_scrapy_platform_before" ]; then
            "$_scrapy_platform_before" "$@"
        elif [ "$COMP_CWORD" -eq 1 ]; then
            COMPREPLY=($(compgen -W platform -- "$current"))
        fi
        return
    fi
    local place=${COMP_WORDS[2]} actions words
    if [ "$COMP_CWORD" -eq 2 ]; then
        COMPREPLY=($(compgen -W "$_scrapy_platform_subcommands" -- "$current"))
        return
    fi
    actions=$(_scrapy_platform_actions "$place")
    if [ -n "$actions" ]; then
        if [ "$COMP_CWORD" -eq 3 ]; then
            COMPREPLY=($(compgen -W "$actions" -- "$current"))
            return
        fi
        place="$place ${COMP_WORDS[3]}"
    fi
    if words=$(_scrapy_platform_values "$place" "$previous"); then
        words=$(_scrapy_platform_named $words)
    elif [ "${current:0:1}" = - ]; then
        words=$(_scrapy_platform_options "$place")
    else
        words=$(_scrapy_platform_named $(_scrapy_platform_arguments "$place"))
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _scrapy_platform scrapy
"""

_ZSH: Final = """\
#compdef scrapy
# Completion of `scrapy platform` in zsh, made by `scrapy platform completion zsh`.
# To have it in every shell: scrapy platform completion zsh > a file _scrapy in a folder of $fpath
{tables}
_scrapy_platform() {
    local current=${words[CURRENT]} previous=${words[CURRENT-1]} place=${words[3]}
    local -a found
    if [[ ${words[2]} != platform || $CURRENT -lt 3 ]]; then
        if (( CURRENT == 2 )); then compadd -- platform; else _files; fi
        return
    fi
    if (( CURRENT == 3 )); then
        compadd -- ${=_scrapy_platform_subcommands}
        return
    fi
    local actions="$(_scrapy_platform_actions "$place")" given
    if [[ -n $actions ]]; then
        if (( CURRENT == 4 )); then
            compadd -- ${=actions}
            return
        fi
        place="$place ${words[4]}"
    fi
    if given="$(_scrapy_platform_values "$place" "$previous")"; then
        found=(${(f)"$(_scrapy_platform_named ${=given})"})
    elif [[ $current == -* ]]; then
        found=(${="$(_scrapy_platform_options "$place")"})
    else
        given="$(_scrapy_platform_arguments "$place")"
        found=(${(f)"$(_scrapy_platform_named ${=given})"})
    fi
    if (( $#found )); then compadd -- $found; else _files; fi
}
if [[ ${funcstack[1]:-} == _scrapy ]]; then
    _scrapy_platform "$@"
else
    compdef _scrapy_platform scrapy
fi
"""


def bash(places: Sequence[Place], python: str) -> str:
    """The script for bash."""
    return _BASH.replace("{tables}", _tables(places, python))


def zsh(places: Sequence[Place], python: str) -> str:
    """The script for zsh."""
    return _ZSH.replace("{tables}", _tables(places, python))


def _tables(places: Sequence[Place], python: str) -> str:
    subcommands = [place for place in places if " " not in place.key]
    with_actions = {place.key.split()[0] for place in places if " " in place.key}
    return _TABLES.format(
        subcommands=shlex.quote(" ".join(place.key for place in subcommands)),
        actions=_cases((place.key, place.arguments) for place in subcommands if place.key in with_actions),
        options=_cases((place.key, [name for option in place.options for name in option.names]) for place in places),
        values=_cases(_values(places)),
        arguments=_cases((place.key, place.arguments) for place in places if place.key not in with_actions),
        python=shlex.quote(python),
    )


def _values(places: Iterable[Place]) -> Iterator[tuple[str, Sequence[str]]]:
    for place in places:
        for option in place.options:
            for name in option.names if option.values is not None else ():
                yield f"{place.key} {name}", option.values or ()


def _cases(cases: Iterable[tuple[str, Sequence[str]]]) -> str:
    return "\n".join(f"    {shlex.quote(key)}) printf '%s ' {shlex.join(words)} ;;" for key, words in cases)
