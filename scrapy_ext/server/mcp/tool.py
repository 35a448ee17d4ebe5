"""The record of a tool, and the check of its arguments."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.violations import refused
from scrapy_ext.server.mcp import results
from scrapy_ext.server.mcp.results import Result
from scrapy_ext.server.mcp.services import Need, Services


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a tool; the annotations are its JSON Schema."""


A = TypeVar("A", bound=Arguments)


def with_fields_of(record: type[msgspec.Struct], arguments: type[A], *, without: Collection[str]) -> type[A]:
    """Return arguments that have the fields of a record, too, as it describes them."""
    known = fields_of(record)
    added: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in msgspec.structs.fields(record):
        if each.name in known and each.name not in without:
            meaning = known[each.name].words.help
            is_described = any(isinstance(part, Meta) and part.description for part in each.type.__metadata__)
            sentence = Meta(description=f"{meaning[:1].upper()}{meaning[1:]}.")
            kind = each.type if is_described else Annotated[each.type, sentence]
            added.append((each.name, kind) if each.required else (each.name, kind, each.default))
    made = msgspec.defstruct(
        arguments.__name__, added, bases=(arguments,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    return cast("type[A]", made)


Project = Annotated[int, Meta(ge=0, le=MAX_NUMBER, description="Number of the project, as list_projects gives it.")]
Job = Annotated[
    str, Meta(pattern=r"^[0-9]{1,19}/[0-9]{1,19}/[0-9]{1,19}$", description="Key of the job: PROJECT/SPIDER/NUMBER.")
]
Cursor = Annotated[
    str,
    Meta(max_length=100, description="The next_cursor of the result before, with otherwise equal arguments."),
]
MaxBytes = Annotated[
    int,
    Meta(
        ge=results.LEAST_BYTES,
        le=results.MOST_BYTES,
        description=f"Bytes of the result at most (default {results.DEFAULT_BYTES}); more comes with next_cursor.",
    ),
]
Limit = Annotated[int, Meta(ge=1, le=200, description="Records at most (default 20).")]


class Bounded(Arguments, frozen=True, kw_only=True):
    """Arguments of a tool whose result has foreign text."""

    cursor: Cursor | None = None
    max_bytes: MaxBytes = results.DEFAULT_BYTES


class Listing(Bounded, frozen=True, kw_only=True):
    """Arguments of a tool that lists records."""

    limit: Limit = 20


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool. ``run`` raises ``ContractError`` for wrong arguments and ``ApiError`` for calls that fail.

    ``destructive``: it ends or removes something; ``idempotent``: again with equal arguments, it changes nothing more;
    ``open_world``: it reaches websites.
    """

    name: str
    title: str
    description: str
    arguments: type[A]
    run: Callable[[Services, A], Awaitable[Result]]
    need: Need = Need.READ
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    @property
    def read_only(self) -> bool:
        """True for a tool that changes nothing; one that fetches pages spends what fetching costs."""
        return self.need not in (Need.RUN, Need.WRITE)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        _, components = msgspec.json.schema_components([self.arguments])
        found = components[self.arguments.__name__]
        # The arguments of the tool itself are first.
        names = sorted(found["properties"], key=lambda name: name in Listing.__struct_fields__)
        properties = {name: _simple(found["properties"][name]) for name in names}
        return {"type": "object", **found, "properties": properties}

    async def call(self, services: Services, arguments: Mapping[str, Any]) -> Result:
        """Check the arguments and run the tool."""
        return await self.run(services, self._checked(arguments))

    def _checked(self, arguments: Mapping[str, Any]) -> A:
        try:
            # Not strict: models write numbers as text at times.
            return msgspec.convert(arguments, self.arguments, strict=False)
        except (msgspec.ValidationError, RecursionError) as error:
            place = str(error).partition(" - at ")
            field = place[2].strip("`").removeprefix("$").removeprefix(".")
            raise refused(field[:60] or "arguments", place[0][:200], self._remedy(field)) from None

    def _remedy(self, field: str) -> str:
        """Return the values or the description of a wrong argument; without one, the names of all arguments."""
        argument = re.split(r"[.\[]", field, maxsplit=1)[0]
        schema = self.schema["properties"].get(argument, {})
        if "enum" in schema:
            return f"Write one of {', '.join(schema['enum'])}."
        if "description" in schema:
            return f"{argument}: {schema['description']}"
        return f"The arguments of {self.name} are {', '.join(self.schema['properties'])}."


def _simple(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument without ``anyOf``, which confuses models: without the null that stands for its
    absence, and with several types as a list. Each rule of a schema is for one of the types alone."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if not kinds:
        return schema
    outer = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    if len(kinds) == 1:
        return {**outer, **kinds[0]}
    return {**outer, **dict(ChainMap(*kinds)), "type": [each["type"] for each in kinds]}


#: Seconds of a tool's run. The services have their own limits, which are shorter except for a large read.
SECONDS: Final = 300.0


class Tools(list[Tool[Any]]):
    """The tools of a module, in the order of their declaration."""

    def add(
        self, name: str, title: str, description: str, arguments: type[A], need: Need = Need.READ, **hints: bool
    ) -> Callable[[Callable[[Services, A], Awaitable[Result]]], Callable[[Services, A], Awaitable[Result]]]:
        """Declare the decorated function as the run of a tool; ``hints`` are further fields of :class:`Tool`."""

        def declare(run: Callable[[Services, A], Awaitable[Result]]) -> Callable[[Services, A], Awaitable[Result]]:
            self.append(Tool(name, title, description, arguments, run, need, **hints))
            return run

        return declare
