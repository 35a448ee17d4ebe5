"""A parser of untrusted input, with the property that must hold for every input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

Check = Callable[[bytes], None]

#: Inputs that once broke something, or reach a place that little else reaches: a folder for each target.
CORPUS = Path(__file__).parent / "corpus"


class Target(NamedTuple):
    """A parser. ``check`` takes any bytes; whatever it raises is a finding.

    ``longest``: bytes of an input. ``calls``: how many functions an input may call, at most so many and so many more
    for each of its bytes; that bounds its time, whatever the machine.
    """

    name: str
    check: Check
    seeds: Sequence[bytes]
    longest: int
    calls: tuple[int, int]

    def entries(self) -> list[tuple[str, bytes]]:
        """The corpus: seeds by their number, files by their name."""
        files = sorted(path for path in (CORPUS / self.name).glob("*") if path.is_file())
        seeds = [(f"seed-{number}", seed) for number, seed in enumerate(self.seeds)]
        return [*seeds, *((path.name, path.read_bytes()) for path in files)]


_found: dict[str, Target] = {}


def target(
    name: str,
    seeds: Sequence[bytes],
    *,
    refuses: tuple[type[BaseException], ...] = (),
    longest: int = 2048,
    calls: tuple[int, int] = (20_000, 200),
) -> Callable[[Check], Check]:
    """Register a check. ``refuses``: the documented errors of its parser, which are no findings."""

    def register(check: Check) -> Check:
        def checked(data: bytes) -> None:
            try:
                check(data)
            except refuses:
                return

        assert name not in _found, name
        _found[name] = Target(name, checked, tuple(seeds), longest, calls)
        return check

    return register


def all_targets() -> dict[str, Target]:
    """Every target by its name."""
    from tests.fuzz import targets  # noqa: F401 - they register themselves

    return dict(sorted(_found.items()))
