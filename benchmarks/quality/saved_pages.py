"""Quality of lists, next pages, jobs, results pages and threads on saved real pages with labels.

The pages are kept out of the repository.

``python benchmarks/quality/saved_pages.py DIR [KIND...] [--before TREE] [--pages]`` prints a table of each kind: a row
for each field with its counts and, between brackets, the 95 % confidence interval; the pages that rules were tuned on
apart from those held out; of results pages a row for each engine. ``--before`` has another tree of the package beside
it, on the same pages in the same run. ``--pages`` lists what is wrong on each page that rules may be tuned on, and on
no other.

``DIR`` holds folders named ``products``, ``articles``, ``next``, ``jobs``, ``serp`` and ``forum``, or some of them,
each with ``index.json``: a list of ``file`` (gzip), ``url``, ``site``, ``split`` (``tune`` or ``held-out``, by site),
``labels``, and of jobs ``plain_file`` (the page without its structured data) with ``visible_in_plain`` (the fields that
it shows). Labels of lists are ``items``, each with ``url`` and what is known of it; those of next pages are ``next``,
the URLs that count, empty on a page without one.

Right is the title, company or author with the same words, the place with its city or half of its words, the date of the
same day; texts have the F1 of their bags of words. An entry of a list is found when its URL is. A result is found when
its URL is, or its title, a post when its text has an F1 of 0.5 or more; the fields of entries, results and posts are
those of the found ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from saved_labels import AS_IT_IS, KINDS, MARKUP_OFF, LabelledPage, labelled_pages
from saved_scores import SCORES, fields_in_order
from tallies import Table

HERE: Final = Path(__file__).resolve().parent
SPLITS: Final = ("tune", "held-out")
#: A row with a score below this is listed by ``--pages``.
RIGHT: Final = 0.999
#: Characters of a column.
WIDTH: Final = 56

Items = dict[tuple[str, str, str], dict[str, Any]]


def main() -> int:
    arguments = _arguments()
    trees = {"after": HERE.parents[1]}
    if arguments.before:
        trees = {"before": arguments.before, **trees}
    kinds = arguments.kinds or [kind for kind in KINDS if (arguments.folder / kind).is_dir()]
    items = {name: _extracted(arguments.folder, kinds, tree) for name, tree in trees.items()}
    for kind in kinds:
        pages = list(labelled_pages(arguments.folder / kind, kind))
        _print_kind(kind, pages, items)
        if arguments.pages:
            _print_pages(pages, items["after"])
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Quality of lists, jobs, results pages and threads on saved pages.")
    parser.add_argument("folder", type=Path, help="the folder of labelled pages")
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of {', '.join(KINDS)}; all that DIR has by default")
    parser.add_argument("--before", type=Path, help="another tree of the package, to compare with")
    parser.add_argument("--pages", action="store_true", help="list what is wrong on pages that rules may be tuned on")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}; use {', '.join(KINDS)}")
    return arguments


def _extracted(folder: Path, kinds: list[str], tree: Path) -> Items:
    # From another folder, as the current one precedes PYTHONPATH.
    run = subprocess.run(
        [sys.executable, HERE / "saved_items.py", folder.resolve(), *kinds],
        env={**os.environ, "PYTHONPATH": str(tree.resolve())},
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {(line["kind"], line["file"], line["variant"]): line for line in lines}


def _table(pages: Iterable[LabelledPage], items: Items, variant: str) -> Table:
    table = Table()
    for page in pages:
        # A page whose markup nothing was taken off is one with its markup off.
        if variant in page.files:
            SCORES[page.kind](table, page, items[page.kind, page.name, variant]["item"], variant)
    return table


def _print_kind(kind: str, pages: list[LabelledPage], items: dict[str, Items]) -> None:
    for variant in (MARKUP_OFF, AS_IT_IS):
        if any(variant in page.files for page in pages):
            print(f"\n{KINDS[kind]}" + (f", {variant}" if kind == "jobs" else ""))
            tables = {
                (split, name): _table((page for page in pages if page.split == split), each, variant)
                for split in SPLITS
                for name, each in items.items()
            }
            _print_rows(tables, list(items))
    if kind == "serp":
        print("\nresults by engine")
        for split in SPLITS:
            for site in sorted({page.site for page in pages if page.split == split}):
                some = [page for page in pages if page.site == site]
                shown = " ".join(_cell(_table(some, each, MARKUP_OFF), "results") for each in items.values())
                print(f"  {split:9}{site:13}{len(some):4} pages  {shown}")
    for name, each in items.items():
        spent = [line["seconds"] for key, line in each.items() if key[0] == kind]
        print(f"  {name}: {1000 * statistics.median(spent):.1f} ms a page in the median, {sum(spent):.1f} s in all")


def _print_rows(tables: dict[tuple[str, str], Table], names: list[str]) -> None:
    fields = {field for table in tables.values() for field in table.tallies}
    print(f"  {'':24}" + "".join(f"{f'{split}, {name}':{WIDTH}}" for split in SPLITS for name in names))
    for field in fields_in_order(fields):
        cells = "".join(_cell(tables[split, name], field) for split in SPLITS for name in names)
        print(f"  {field:24}{cells}")


def _cell(table: Table, field: str) -> str:
    tally, (low, high) = table.of(field), table.interval(field)
    judged = f"{tally.right} right, {tally.wrong} wrong, {tally.missing} missing"
    counts = f"{tally.scored} texts" if tally.scored else judged
    return f"{tally.value():.3f} [{low:.2f} {high:.2f}] {counts}".ljust(WIDTH)


def _print_pages(pages: list[LabelledPage], items: Items) -> None:
    for page in pages:
        for variant in page.files if page.split == "tune" else ():
            table = _table([page], items, variant)
            wrong = [field for field in fields_in_order(table.tallies) if table.of(field).value() < RIGHT]
            if wrong:
                shown = defaultdict(list)
                for field in wrong:
                    shown[f"{table.of(field).value():.2f}"].append(field)
                print(f"  {page.name} ({variant}): " + "; ".join(f"{k} {', '.join(v)}" for k, v in shown.items()))


if __name__ == "__main__":
    sys.exit(main())
