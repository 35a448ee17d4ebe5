"""``scrapy platform completion``: scripts for shells, made of the parsers by shtab."""

from __future__ import annotations

import argparse
import pkgutil
import re
import shlex
import sys
from pathlib import Path
from typing import Final

import scrapy.commands
import shtab
from scrapy.settings import BaseSettings

from scrapy_ext.commands.options import SETTING, argument
from scrapy_ext.commands.subcommand import OK, Subcommand

_SHELLS: Final = ("bash", "zsh", "fish")
#: Kinds of names of the project, by the destination of their argument or option.
_NAMES: Final = {"spider": "spiders", "job": "jobs", "jobs": "jobs", "other": "jobs"}
#: Words besides the names of a kind.
_WORDS: Final = {"jobs": "last", "spiders": ""}
#: Commands of Scrapy whose first argument is a spider.
_OF_SPIDERS: Final = ("check", "crawl", "edit")
#: A completion of other scrapy commands in bash remains in use for these.
_BASH: Final = """\
_scrapy_platform_found=$(complete -p scrapy 2>/dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')
[ "$_scrapy_platform_found" = _scrapy_platform ] || _scrapy_platform_before=$_scrapy_platform_found
{script}
_scrapy_platform() {{
    if [ "$COMP_CWORD" -gt 1 ] && [[ " platform extract " == *" ${{COMP_WORDS[1]}} "* ]]; then
        _shtab_scrapy "$@"
        return
    fi
    COMPREPLY=()
    [ -z "$_scrapy_platform_before" ] || "$_scrapy_platform_before" "$@"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(printf '%s\n' "${{COMPREPLY[@]}}" $(compgen -W "{commands}" -- "${{COMP_WORDS[1]}}") | sort -u))
    elif [ "$COMP_CWORD" -eq 2 ] && [ -z "$_scrapy_platform_before" ] &&
        [[ " {of_spiders} " == *" ${{COMP_WORDS[1]}} "* ]]; then
        COMPREPLY=($(_scrapy_platform_spiders "${{COMP_WORDS[2]}}"))
    fi
}}
complete -o bashdefault -o default -F _scrapy_platform scrapy
"""


#: In zsh, shtab mixes the actions with the subcommands when it completes three levels, so these are two.
_ZSH: Final = """\
{script}
{extract}
typeset -A opt_args
_scrapy_platform() {{
    if (( CURRENT == 2 )); then
        compadd -- {commands}
    elif [[ ${{words[2]}} == platform ]]; then
        shift words
        (( CURRENT -= 1 ))
        _shtab_scrapy
    elif [[ ${{words[2]}} == extract ]]; then
        shift words
        (( CURRENT -= 1 ))
        _shtab_extract
    elif (( CURRENT == 3 )) && [[ " {of_spiders} " == *" ${{words[2]}} "* ]]; then
        _scrapy_platform_spiders
    else
        _files
    fi
}}
if [[ ${{funcstack[1]:-}} == _scrapy ]]; then _scrapy_platform "$@"; else compdef _scrapy_platform scrapy; fi
"""
#: Beginning of the part that installs shtab's script for zsh.
_ZSH_END: Final = "typeset -A opt_args"
#: shtab's script for fish would remove the completion of other commands, and of file names after them.
_FISH_ALL: Final = "complete -c scrapy -e\ncomplete -c scrapy -f\n"
_FISH: Final = (
    "complete -c scrapy -n 'set -l words (commandline -opc); "
    'test "$words[2]" = platform -o "$words[2]" = extract\' -f\n'
    "complete -c scrapy -n 'test (count (commandline -opc)) -eq 1' -f -a '{commands}'\n"
    "complete -c scrapy -n 'set -l words (commandline -opc); test (count $words) -eq 2; "
    "and contains -- $words[2] {of_spiders}' -f -a '(_scrapy_platform_spiders)'\n"
)


def _script(shell: str) -> str:
    whole = platform = argparse.ArgumentParser("scrapy", add_help=False)
    extract = argparse.ArgumentParser("extract", add_help=False)
    if shell != "zsh":
        commands = whole.add_subparsers()
        platform = commands.add_parser("platform", help="run jobs, and show their stored data")
        extract = commands.add_parser("extract", help="send URLs to the extraction service")
    _add_commands(platform)
    _add_extract(extract)
    script = shtab.complete(whole, shell)
    words = {"commands": " ".join(_commands()), "of_spiders": " ".join(_OF_SPIDERS)}
    if shell == "fish":
        return script.replace(_FISH_ALL, _FISH.format(**words)) + "\n"
    if shell == "bash":
        return _BASH.format(script=script, **words)
    parts = [shtab.complete(parser, shell).partition(_ZSH_END)[0] for parser in (whole, extract)]
    return _ZSH.format(script=parts[0], extract=parts[1].replace("#compdef extract", ""), **words)


def _commands() -> list[str]:
    """Return the names of Scrapy's commands and of those of this package."""
    return sorted({*(module.name for module in pkgutil.iter_modules(scrapy.commands.__path__)), "extract", "platform"})


def _add_extract(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``scrapy extract`` to a parser."""
    from scrapy_ext.api.extraction import OUTPUTS
    from scrapy_ext.commands import extract

    extract.add_options(parser)
    parser.epilog = None
    SETTING(parser)
    for action in parser._actions:
        if action.dest in ("input", "output"):
            _complete_by(action, shtab.FILE)
        elif action.dest in ("bodies", "screenshots"):
            _complete_by(action, shtab.DIRECTORY)
        elif action.dest == "field":
            action.choices = sorted(OUTPUTS)
    _complete(parser)


def _add_commands(platform: argparse.ArgumentParser) -> None:
    """Add all arguments of ``scrapy platform`` to a parser."""
    from scrapy_ext.commands.platform import SUBCOMMANDS as SUMMARIES
    from scrapy_ext.commands.platform import load

    commands = platform.add_subparsers()
    for name, summary in SUMMARIES.items():
        subcommand = load(name)
        parser = commands.add_parser(name, help=summary, description=summary)
        if not subcommand.actions:
            SETTING(parser)
        try:
            subcommand.add_options(parser)
        except SystemExit:  # Its libraries are not installed.
            continue
        _complete(parser)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Set the completion of the values of a parser's arguments, and of those of its actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for of_action in action.choices.values():
                _complete(of_action)
        elif action.dest in _NAMES and action.choices is None and action.metavar is not None:
            _complete_by(action, _looked_up(_NAMES[action.dest]))
        elif action.type is Path:
            _complete_by(action, shtab.FILE)
        if isinstance(action.metavar, str):
            # In zsh, a colon would end the name.
            action.metavar = re.sub(r"\W+", " ", action.metavar).strip()


def _complete_by(action: argparse.Action, completion: object) -> None:
    """Set the attribute of an argument that shtab reads."""
    vars(action)["complete"] = completion


def _looked_up(kind: str) -> dict[str, str | dict[str, str]]:
    """Return the completion by names that a command prints on demand."""
    python = shlex.quote(sys.executable)
    call = f"echo {_WORDS[kind]}; {python} -m scrapy_ext.commands.shells.names {kind} 2>/dev/null"
    name = f"_scrapy_platform_{kind}"
    scripts = {
        "bash": f'{name}() {{ compgen -W "$({call})" -- "$1"; }}',
        "zsh": f"{name}() {{ compadd -- $({call}) }}",
        "fish": f"function {name}; {call}; end",
    }
    return {"bash": name, "zsh": name, "fish": f"({name})", "preamble": scripts}


def _run(_settings: BaseSettings, options: argparse.Namespace) -> int:
    sys.stdout.write(_script(options.shell))
    return OK


SUBCOMMANDS: Final = (
    Subcommand(
        name="completion",
        examples=(
            ('eval "$(scrapy platform completion bash)"', "in this shell; likewise with zsh"),
            ("scrapy platform completion fish | source", "in fish"),
        ),
        arguments=(argument("shell", choices=_SHELLS, help="the shell"),),
        run=_run,
    ),
)
