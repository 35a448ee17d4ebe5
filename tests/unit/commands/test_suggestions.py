"""A word that is mistyped is answered with the one that was probably meant."""

from __future__ import annotations

import pytest
from scrapy.cmdline import execute


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["itmes"], "unknown command 'itmes'; did you mean 'items'? All commands: scrapy platform --help"),
        (["logs", "--cuont", "3"], "did you mean '--count'?"),
        (["logs", "--level", "warnin"], "did you mean 'WARNING'?"),
        (["schedule", "puase", "1"], "did you mean 'pause'?"),
        (["frontier", "show", "a", "b", "--jsn"], "did you mean '--json'?"),
    ],
)
def test_what_was_probably_meant_is_named(words, message, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "platform", *words])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert message in said.err.splitlines()[-1]
    assert said.out == ""


def test_what_resembles_no_command_is_answered_with_all_of_them(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        execute(["scrapy", "platform", "xyzzy"])
    said = capsys.readouterr().err
    assert "unknown command 'xyzzy': choose one of run, jobs, job, " in said
    assert "did you mean" not in said
