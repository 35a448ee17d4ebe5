"""``scrapy platform project``: names of projects from the command line."""

from __future__ import annotations

from tests.support.terminal_commands import Platform


def test_a_project_is_named_found_and_unnamed(platform: Platform) -> None:
    name = f"books of {platform.project}"
    assert platform.lines("project", "name", name) == [{"id": platform.project, "name": name}]
    assert {"id": platform.project, "name": name} in platform.lines("project")
    assert platform.call(lambda client: client.projects.find(name)) == platform.project
    assert platform.call(lambda client: client.projects.find("no such name")) is None
    assert platform.call(lambda client: client.projects.get(platform.project)).name == name
    assert platform.lines("project", "unname") == [{"id": platform.project, "name": None}]


def test_a_wrong_name_is_refused_in_one_line(platform: Platform) -> None:
    assert "must not consist of digits alone" in platform.refused("project", "name", "123")
