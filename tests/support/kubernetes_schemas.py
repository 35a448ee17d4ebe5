"""Check of Kubernetes manifests against the types of its API, as lightkube-models has them of its OpenAPI document."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import msgspec


def faults(manifest: dict[str, Any]) -> list[str]:
    """Fields of a manifest that the API does not have, lacks, or has with another type."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    module = importlib.import_module(f"lightkube.models.{group.split('.')[0] or 'core'}_{version}")
    return list(_faults(manifest, getattr(module, manifest["kind"]), manifest["kind"]))


def _faults(value: Any, kind: Any, where: str) -> Iterator[str]:
    if get_origin(kind) in (Union, types.UnionType):
        found = [list(_faults(value, each, where)) for each in get_args(kind) if each is not type(None)]
        yield from min(found, key=len)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _of_object(value, kind, where)
    elif get_origin(kind) is list:
        if isinstance(value, list):
            for index, each in enumerate(value):
                yield from _faults(each, get_args(kind)[0], f"{where}[{index}]")
        else:
            yield f"{where} is no list"
    elif isinstance(kind, type):
        right = isinstance(value, (int, float) if kind is float else kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            yield f"{where} is not of type {kind.__name__}: {value!r}"


def _of_object(value: Any, kind: type[msgspec.Struct], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is no object: {value!r}"
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name, each in value.items():
        if name in fields:
            yield from _faults(each, fields[name].type, f"{where}.{name}")
        else:
            yield f"{where} has no field {name}"
    yield from (f"{where} lacks {name}" for name, field in fields.items() if field.required and name not in value)
