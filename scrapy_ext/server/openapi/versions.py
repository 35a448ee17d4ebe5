"""Deployed versions."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.versions import Version, Versions
from scrapy_ext.server.openapi.words import (
    MULTIPART,
    NUMBER,
    STRING,
    TEXT,
    Answer,
    Body,
    Operation,
    Parameter,
    value,
)

_FILE: Final[dict[str, Any]] = {"type": "string", "format": "binary"}
_ALL: Final = "/api/projects/{project}/versions"
_ONE: Final = f"{_ALL}/{{version}}"
_NOT_HOSTED: Final = "The hosted platform has no such path."

OPERATIONS: Final = (
    Operation(
        method="GET",
        path=_ALL,
        summary=f"List the versions of a project. {_NOT_HOSTED}",
        answer=value("The versions, the newest first, without their spiders.", Versions),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path=_ALL,
        summary=f"Deploy a version, which is current once it is checked; ask for it to see when. {_NOT_HOSTED}",
        body=Body(
            MULTIPART,
            {
                "type": "object",
                "properties": {"version": STRING, "archive": _FILE, "settings": STRING, "requirements": STRING},
                "required": ["version", "archive"],
            },
            "An archive: a wheel, an egg, a source distribution or a packed folder with scrapy.cfg. It may also be the "
            "whole body, with the other fields as query parameters. requirements: the text of a requirements file; "
            "settings: the settings module, where the archive does not say it.",
        ),
        status=201,
        answer=value("The version, which is about to be checked.", Version),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path=_ONE,
        summary=f"Read a version; its spiders too, once it is ready. {_NOT_HOSTED}",
        parameters=(Parameter("deploy_id", "this deploy of the name, and no other", NUMBER),),
        answer=value("The version.", Version),
        host=Host.APP,
    ),
    Operation(
        method="DELETE",
        path=_ONE,
        summary=f"Delete a version that no job needs and that is not the current one of several. {_NOT_HOSTED}",
        status=204,
        answer=Answer("It is deleted."),
        errors=(409,),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path=f"{_ONE}/current",
        summary=f"Let new jobs run a version. {_NOT_HOSTED}",
        answer=value("The version.", Version),
        errors=(409,),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path="/api/scrapyd/addversion.json",
        summary="Deploy a version and wait until it is checked.",
        body=Body(
            MULTIPART,
            {
                "type": "object",
                "properties": {"project": NUMBER, "version": STRING, "egg": _FILE, "requirements": _FILE},
                "required": ["project", "version", "egg"],
            },
        ),
        answer=Answer(
            'What the check says, and a last line of JSON: {"status": "ok", …}, or "error" with a message.',
            {TEXT: STRING},
        ),
        errors=(413,),
        host=Host.APP,
    ),
)
