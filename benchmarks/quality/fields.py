"""Quality of each field of products and articles: counts and confidence, tuned-on and held-out sites apart.

``python benchmarks/quality/fields.py DATA_DIR`` prints a JSON line for each set of pages, field and half.
``--before`` names a folder with another version of the sources, which reads
the same pages in the same run; ``--more`` one with further pages with markup (an ``index.json`` of files and URLs or
sites); ``--table`` prints a table for people; ``--wrong`` the wrong and missing values of fields, of the tuned half
alone.

Sets: pages with labels as they are (``labels``), the same without markup (``labels, plain``), and pages whose markup is
the truth and taken off before (``markup``, see ``markup_truth.py``). Articles with labels are apart from pages of other
types, whose title, author and date are labelled too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import extruct
from data import page, type_of, wcxb_labels
from field_values import FOUND, Truth, outcome_of
from halves import half_of, site_name
from intervals import Outcome, bootstrap, f1_of, wilson
from markup_truth import Plain, article_truth, plain, product_truth

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PRODUCT_LABELS = ("price", "availability", "sku", "mpn", "gtin", "brand")
#: Fields of which a page with labels may have none: something found there is wrong.
COMPLETE = {"labels", "labels, plain"}


class Case(NamedTuple):
    """A page, and the true values of its fields."""

    pages: str
    kind: str
    name: str
    url: str
    html: str
    truth: Truth


class Result(NamedTuple):
    """The outcomes of a field on a page, before (None without ``--before``) and after."""

    before: Outcome | None
    after: Outcome | None


def main() -> int:
    options = _options()
    trees = [tree for tree in (options.before, ROOT) if tree]
    extractors = [_extractor(Path(tree)) for tree in trees]
    results: defaultdict[tuple[str, str, str], list[tuple[Outcome | None, ...]]] = defaultdict(list)
    for case in _cases(options.data, options.more):
        if options.only and not f"{case.kind} {case.pages}".startswith(options.only):
            continue
        items = [_extracted(extractor, case) for extractor in extractors]
        site, half = site_name(case.url), half_of(case.url)
        for field in _fields(case):
            true = case.truth.get(field, [])
            outcomes = tuple(outcome_of(field, site, true, item) for item in items)
            if any(outcomes):
                results[f"{case.kind}, {case.pages}", field, half].append(outcomes)
            if field in options.wrong and half == "tuned" and _share(outcomes[-1]) < 1:
                print(field, "|", case.pages, case.name, case.url, "| true", true, "| found", FOUND[field](items[-1]))
    rows = [_row(*key, outcomes) for key, outcomes in sorted(results.items())]
    for row in rows if not options.wrong else ():
        print(_line(row) if options.table else json.dumps(row))
    for extractor in extractors:
        extractor.stdin.close()
        extractor.wait()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--more", type=Path, action="append", default=[])
    parser.add_argument("--only", help="beginning of the name of a set, such as: product labels")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--wrong", choices=list(FOUND), nargs="+", default=[])
    return parser.parse_args()


def _extractor(tree: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "extract_cases.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tempfile.gettempdir(),
        env={**os.environ, "PYTHONPATH": str(tree.resolve())},
    )


def _extracted(extractor: subprocess.Popen[str], case: Case) -> dict[str, Any]:
    assert extractor.stdin is not None
    assert extractor.stdout is not None
    extractor.stdin.write(json.dumps({"kind": case.kind, "html": case.html, "url": case.url}) + "\n")
    extractor.stdin.flush()
    return dict(json.loads(extractor.stdout.readline()))


def _fields(case: Case) -> Iterator[str]:
    if case.kind == "product" and case.pages in COMPLETE:
        yield from PRODUCT_LABELS
    else:
        yield from case.truth


def _cases(data: Path, more: list[Path]) -> Iterator[Case]:
    folder = data / "labelled" if (data / "labelled").is_dir() else data
    products, wcxb = folder / "products", folder / "wcxb-dev"
    labels = json.loads((products / "labels.json").read_text("utf-8"))
    for name, label in sorted(labels.items()):
        html = page(products, name)
        truth = {field: label[field] for field in PRODUCT_LABELS if field in label}
        yield Case("labels", "product", name[:8], label["url"], html, truth)
        yield Case("labels, plain", "product", name[:8], label["url"], plain(html).html, truth)
        yield from _of_markup(name[:8], label["url"], html)
    for name, label in sorted(wcxb_labels(wcxb).items()):
        html = page(wcxb, name)
        kind = type_of(label)
        pages = "labels of articles" if kind == "article" else "labels of other pages"
        yield Case(pages, "article", f"{name} {kind}", label["url"], html, _article_labels(label))
        yield from _of_markup(f"{name} {kind}", label["url"], html)
    for folder in [data / "real-pages", *more]:
        for name, url in _index(folder):
            html = gzip.decompress((folder / name).read_bytes()).decode("utf-8", "replace")
            yield from _of_markup(name, url, html)


def _article_labels(label: dict[str, Any]) -> Truth:
    truth = {"headline": label["title"], "date": label["publish_date"], "authors": label["author"]}
    return {field: [value] if value else [] for field, value in truth.items()}


def _index(folder: Path) -> list[tuple[str, str]]:
    index = folder / "index.json"
    entries = json.loads(index.read_text()) if index.exists() else {}
    if isinstance(entries, dict):
        return sorted(entries.items())
    return [(entry["file"], entry["url"] or f"https://{entry['site']}/") for entry in entries]


def _of_markup(name: str, url: str, html: str) -> Iterator[Case]:
    """Yield the page without its markup for each kind of which that has one."""
    try:
        found = extruct.extract(html, base_url=url, syntaxes=["json-ld", "microdata"], errors="ignore", uniform=True)
    # extruct's parsers fail on some broken pages.
    except Exception:
        return
    if not any(found.values()):
        return
    bare: Plain = plain(html)
    for kind, truth in (("product", product_truth(found, bare)), ("article", article_truth(found, bare))):
        if truth:
            yield Case("markup", kind, name, url, bare.html, truth)


def _row(pages: str, field: str, half: str, outcomes: list[tuple[Outcome | None, ...]]) -> dict[str, Any]:
    row: dict[str, Any] = {"pages": pages, "field": field, "half": half}
    versions = [[each for each in version if each] for version in zip(*outcomes, strict=True)]
    for name, version in zip(("before", "after")[-len(versions) :], versions, strict=True):
        found = [each.precision for each in version if each.precision is not None]
        true = [each.recall for each in version if each.recall is not None]
        precision, recall = (sum(part) / len(part) if part else 1.0 for part in (found, true))
        row[name] = {
            "sites": len({each.site for each in version}),
            "true": len(true),
            "found": len(found),
            "right": round(sum(found), 2),
            "precision": _rounded(precision, *wilson(precision, len(found))),
            "recall": _rounded(recall, *wilson(recall, len(true))),
            "f1": _rounded(f1_of(version), *bootstrap(version)),
        }
    if len(versions) == 2:
        changes = [_share(after) - _share(before) for before, after in outcomes]
        row["better"], row["worse"] = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return row


def _share(outcome: Outcome | None) -> float:
    """Return how right a page is: 1.0 where nothing is true and nothing found."""
    return 1.0 if outcome is None else f1_of([outcome])


def _rounded(*values: float) -> list[float]:
    return [round(value, 3) for value in values]


def _line(row: dict[str, Any]) -> str:
    after = row["after"]
    f1, low, high = after["f1"]
    text = f"{row['pages']:<32}{row['field']:<13}{row['half']:<9}"
    text += f"{after['true']:>4} true {after['found']:>4} found {after['right']:>6.1f} right"
    text += f"  P {after['precision'][0]:.3f} R {after['recall'][0]:.3f} F1 {f1:.3f} ({low:.2f}-{high:.2f})"
    if "before" in row:
        text += f"  before {row['before']['f1'][0]:.3f}, {row['better']} better, {row['worse']} worse"
    return text


if __name__ == "__main__":
    sys.exit(main())
