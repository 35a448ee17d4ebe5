"""Completion of ``scrapy platform`` in the real shells that this machine has; bash is one of them everywhere."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_ext.commands.platform import SUBCOMMANDS
from scrapy_ext.commands.shells import names as words
from tests.support.eventually import TIMEOUT
from tests.support.terminal_commands import Platform

SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]

#: Prints what completing a line gives. Each loads the script first, as its user's start-up file does.
_BASH = """\
source {script}
line={line}
COMP_WORDS=($line)
[ "${{line: -1}}" != ' ' ] || COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMPREPLY=()
$(complete -p scrapy | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
#: zsh completes in its line editor only, which needs a terminal; what is added to its choices is written to a file.
_ZSH = """\
export FOUND=$HOME/found.$$
cat > $FOUND.setup <<'END'
autoload -Uz compinit && compinit -C -d "$HOME/zcompdump"
eval "$(<{script})"
compadd() {{
    local -a found
    [[ " $* " == *' -'[OAD]' '* ]] || {{ builtin compadd -O found "$@"; print -rl -- $found >> $FOUND }}
    builtin compadd "$@"
}}
finish() {{ zle complete-word; print -n -- END OF CHOICES }}
zle -N finish
bindkey '^I' finish
END
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $FOUND.setup"
zpty -w -n shell {line}$'\\t'
zpty -r -m shell seen '*END OF CHOICES*'
zpty -d shell
[[ -e $FOUND ]] && cat $FOUND
rm -f $FOUND $FOUND.setup
"""
_FISH = """\
source {script}
complete -C {line} | string replace -r '\\t.*' ''
true
"""
_DRIVERS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile"], "zsh": ["zsh", "-f"], "fish": ["fish", "--no-config"],
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with spiders, written in more ways than one."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    spiders = folder / "shop" / "spiders"
    spiders.mkdir(parents=True)
    (folder / "shop" / "settings.py").write_text("import os\nSPIDER_MODULES = ['shop.spiders']\nX = os.sep\n")
    (spiders / "books.py").write_text("class Books:\n    name = 'books'\n\n\nclass News:\n    name: str = 'news'\n")
    (spiders / "other.py").write_text("class Other:\n    name = make()\n")
    (spiders / "broken.py").write_text("class (:\n")
    return folder


@pytest.fixture(scope="module")
def scripts(served: Platform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts as the command prints them."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in _DRIVERS:
        done = served.run("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / shell).write_text(done.stdout)
    return folder


class Shell:
    """A shell with the script, in a project."""

    def __init__(self, name: str, scripts: Path, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._script = scripts / name
        self._folder = folder
        self._environment = {**environment, "HOME": str(scripts)}

    def __call__(self, line: str) -> list[str]:
        """Completions of the last word of a line."""
        driver = _DRIVERS[self.name].format(script=shlex.quote(str(self._script)), line=shlex.quote(line))
        done = subprocess.run(
            [*_COMMANDS[self.name], "-c", driver],
            cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return sorted(set(filter(None, done.stdout.splitlines())))


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, scripts: Path, project: Path, platform: Platform) -> Shell:
    return Shell(request.param, scripts, project, platform.environment)


def test_the_commands_themselves_are_offered(shell: Shell) -> None:
    assert shell("scrapy platf") == ["platform"]
    assert shell("scrapy platform ") == sorted(SUBCOMMANDS)
    assert shell("scrapy platform st") == ["stats", "stop"]


def test_options_and_their_values_are_offered(shell: Shell) -> None:
    assert shell("scrapy platform run books --f") == ["--follow"]
    assert shell("scrapy platform jobs --state ") == ["deleted", "finished", "pending", "running"]
    assert shell("scrapy platform jobs --state f") == ["finished"]
    assert shell("scrapy platform logs --level W") == ["WARNING"]
    assert shell("scrapy platform run books --priority ") == ["0", "1", "2", "3", "4"]
    assert set(shell("scrapy platform items 1/2/3 --f")) == {"--fields", "--follow", "--format"}


def test_actions_and_what_follows_them_are_offered(shell: Shell) -> None:
    assert shell("scrapy platform frontier d") == ["delete", "dump"]
    assert shell("scrapy platform frontier move books --to") == ["--to", "--to-slot"]
    assert shell("scrapy platform collections put x --type ") == ["cs", "s", "vcs", "vs"]
    assert shell("scrapy platform keys a") == ["add"]
    assert shell("scrapy platform completion z") == ["zsh"]


def test_options_of_extract_are_offered(shell: Shell) -> None:
    assert shell("scrapy extr") == ["extract"]
    assert set(shell("scrapy extract --b")) == {"--bodies", "--browser"}
    assert shell("scrapy extract https://a --field produ") == ["product", "productList", "productNavigation"]


def test_spiders_of_the_project_are_offered(shell: Shell) -> None:
    assert shell("scrapy platform run ") == ["books", "news"]
    assert shell("scrapy platform jobs --spider n") == ["news"]


def test_other_commands_of_scrapy_and_their_spiders_are_offered(shell: Shell) -> None:
    assert shell("scrapy cr") == ["crawl"]
    assert set(shell("scrapy e")) == {"edit", "extract"}
    assert shell("scrapy crawl n") == ["news"]


@pytest.mark.long(keep=1)
def test_jobs_of_the_platform_are_offered(shell: Shell, platform: Platform) -> None:
    keys = [str(platform.job()), str(platform.job())]
    assert shell("scrapy platform stop ") == sorted([*keys, "last"])
    assert shell(f"scrapy platform logs {platform.project}/") == sorted(keys)


def test_bash_leaves_other_commands_to_what_completed_them(scripts: Path, project: Path) -> None:
    driver = _BASH.format(script=shlex.quote(str(scripts / "bash")), line="'scrapy crawl '")
    before = "_others() { COMPREPLY=(theirs); }; complete -F _others scrapy\n"
    # Also when the script is read again, as it is in a shell in a shell.
    again = f"source {shlex.quote(str(scripts / 'bash'))}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", before + again + driver],
        cwd=project, capture_output=True, text=True, timeout=TIMEOUT, check=True,
    )  # fmt: skip
    assert done.stdout == "theirs\n"


def test_names_that_cannot_be_had_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_URL", "http://127.0.0.1:9")
    assert words.spiders(tmp_path) == []
    done = subprocess.run(
        [sys.executable, "-m", "scrapy_ext.commands.shells.names", "jobs"],
        cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_word_that_a_shell_would_run_is_not_offered(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "shop" / "spiders" / "hostile.py"
    file.write_text("class A:\n    name = '$(touch x)'\n\nclass B:\n    name = 'a;b'\n\nclass C:\n    name = 'a\\nb'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        words.main("spiders")
    file.unlink()
    assert capsys.readouterr().out.split() == ["books", "news"]


def test_a_project_is_read_in_a_moment(project: Path) -> None:
    """Nothing large is imported for it: not Scrapy, not the client."""
    code = (
        "import sys; from scrapy_ext.commands.shells import names; names.main('spiders');"
        "print([name for name in ('scrapy', 'twisted', 'aiohttp', 'msgspec') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    assert done.stderr == "[]\n"
