"""Methods of stores that run an operation on their engine: ``get = Method("read", _get)``.

The parameters of a method are those of its operation after the transaction. A :class:`TimedMethod` also adds the time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Concatenate, Generic, Literal, TypeVar

from scrapy_ext.server.store.engine.interface import Engine, Operation, P

T = TypeVar("T")

#: The methods of an engine that run an operation.
Call = Literal["read", "read_inline", "write"]


class EngineStore:
    """Base of the stores: an engine, and a clock in milliseconds."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock


class Method(Generic[P, T]):
    """Method of an :class:`EngineStore` that runs an operation."""

    def __init__(self, call: Call, operation: Operation[P, T]) -> None:
        self._call = call
        self._operation = operation

    def __get__(self, store: EngineStore, _: object) -> Callable[P, Coroutine[Any, Any, T]]:
        return partial(getattr(store._engine, self._call), self._operation)


class TimedMethod(Generic[P, T]):
    """Method of an :class:`EngineStore` that runs an operation with the time (ms) after its transaction."""

    def __init__(self, call: Call, operation: Operation[Concatenate[int, P], T]) -> None:
        self._call = call
        self._operation = operation

    def __get__(self, store: EngineStore, _: object) -> Callable[P, Coroutine[Any, Any, T]]:
        return partial(getattr(store._engine, self._call), self._operation, store._clock())
