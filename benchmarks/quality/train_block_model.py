"""Training of the models that find content (of blocks, and of kinds of page), and their test on unseen sites.

``python benchmarks/quality/train_block_model.py DATA_DIR`` prints the word F1 of the text by type of page in a
five-fold cross-validation with the pages of a site kept together, the average of three trainings, beside that of all
blocks that are right (what no choice of blocks can surpass). ``--scores FILE`` writes the scores of each page, and
``--before FILE`` reads such a file of another version for comparison. With ``--write`` it trains on all pages and
writes the models into the package. Needs lightgbm (see ``requirements.txt``); same data and same versions make the
same models.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from block_truth import scores_of
from content_samples import FOLDS, Sample, read_samples
from content_tables import PageScore, read_scores, table_of, write_scores
from page_content import TEST_SPLIT
from scores import mean

from scrapy_ext.server.extraction.auto.content import choice
from scrapy_ext.server.extraction.auto.content.choice import choose

#: Trainings of the cross-validation, whose scores are averaged; the first makes the models of the package.
SEEDS = (0, 1, 2)
#: Exponent of the number of words in the sampling of training blocks, so that each page has the same weight.
SAMPLE, POWER = 100, 0.7
#: Pages with fewer blocks have less weight.
FEW = 20
KINDS = sorted(TEST_SPLIT)
REPEATABLE: dict[str, Any] = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}
BLOCK_TREES = 160
BLOCK_PARAMETERS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.06,
    "num_leaves": 16,
    "min_data_in_leaf": 60,
    "min_sum_hessian_in_leaf": 5,
    "lambda_l2": 10,
    "feature_fraction": 0.2,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "max_bin": 63,
    **REPEATABLE,
}
KIND_TREES = 60
KIND_PARAMETERS: dict[str, Any] = {
    "objective": "multiclass",
    "num_class": len(KINDS),
    "learning_rate": 0.08,
    "num_leaves": 6,
    "min_data_in_leaf": 8,
    "lambda_l2": 5,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    **REPEATABLE,
}


def main() -> int:
    options = _options()
    logging.disable(logging.CRITICAL)
    data = options.data / "labelled" if (options.data / "labelled").is_dir() else options.data
    samples = read_samples(data / "wcxb-dev")
    scores, kinds = cross_validated(samples)
    before = read_scores(options.before) if options.before else None
    for kind, row in table_of(scores, before).items():
        print(json.dumps({"pageContent, cross-validated": kind, **row}), flush=True)
    print(json.dumps({"kinds of pages, by the likeliest": kinds, "of_right_blocks": _highest(samples)}), flush=True)
    if options.scores:
        write_scores(options.scores, scores)
    if options.write:
        folder = Path(choice.__file__).parent
        (folder / choice.BLOCK_DATA).write_text(exported_blocks(samples, SEEDS[0]), "utf-8")
        (folder / choice.KIND_DATA).write_text(exported_kinds(samples, SEEDS[0]), "utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--scores", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def block_model(samples: list[Sample], seed: int) -> lightgbm.Booster:
    random = np.random.RandomState(seed)
    rows, truth, weights = [], [], []
    for sample in samples:
        if not sample.readable:
            continue
        share = sample.counts**POWER
        share /= share.sum()
        count = len(share)
        chosen = np.arange(count)
        if count > SAMPLE:
            chosen, share = random.choice(count, SAMPLE, replace=False, p=share), np.full(SAMPLE, 1 / SAMPLE)
        rows.append(sample.rows[chosen])
        truth.append(sample.truth[chosen] >= 0.5)
        weights.append(1000 * share * min(1, count / FEW))
    known = lightgbm.Dataset(np.vstack(rows), np.concatenate(truth).astype(int), weight=np.concatenate(weights))
    return lightgbm.train({**BLOCK_PARAMETERS, "seed": seed}, known, BLOCK_TREES)


def kind_model(samples: list[Sample], seed: int) -> lightgbm.Booster:
    rows = np.array([sample.of_page for sample in samples])
    known = lightgbm.Dataset(rows, [KINDS.index(sample.kind) for sample in samples])
    return lightgbm.train({**KIND_PARAMETERS, "seed": seed}, known, KIND_TREES)


def cross_validated(samples: list[Sample]) -> tuple[list[PageScore], dict[str, dict[str, int]]]:
    """Return the scores of each page by models that saw no page of its site, and the likeliest kinds by type."""
    found: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    likeliest: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        for fold in range(FOLDS):
            seen = [sample for sample in samples if sample.fold != fold]
            of_block = choice.read_block_model(exported_blocks(seen, seed))
            of_kind = choice.read_kind_model(exported_kinds(seen, seed))
            for sample in samples:
                if sample.fold != fold:
                    continue
                kinds = of_kind.likelihoods(sample.of_page)
                found[sample.name].append(_scores_of_page(sample, of_block, kinds))
                if seed == SEEDS[0]:
                    likeliest[sample.kind, max(kinds, key=kinds.__getitem__)] += 1
    scores = [
        PageScore(
            sample.name, sample.site, sample.kind, *(mean(list(each)) for each in zip(*found[sample.name], strict=True))
        )
        for sample in samples
    ]
    table = {kind: {other: likeliest[kind, other] for other in KINDS if likeliest[kind, other]} for kind in KINDS}
    return scores, table


class UnseenContent(NamedTuple):
    """The content of a page as models that saw no page of its site find it: words, their average chance, and F1."""

    words: int
    chance: float
    f1: float


def unseen_content(samples: list[Sample], seed: int) -> Iterator[tuple[Sample, UnseenContent]]:
    """Yield the content of each page, in a cross-validation by site."""
    for fold in range(FOLDS):
        seen = [sample for sample in samples if sample.fold != fold]
        of_block = choice.read_block_model(exported_blocks(seen, seed))
        of_kind = choice.read_kind_model(exported_kinds(seen, seed))
        for sample in samples:
            if sample.fold == fold:
                judged = _judged(sample, of_block)
                taken = choose(judged, of_kind.likelihoods(sample.of_page))
                chosen = [each for each, is_taken in zip(judged, taken, strict=True) if is_taken]
                words = sum(each.words for each in chosen)
                chance = sum(each.words * each.chance for each in chosen) / max(1, words)
                yield sample, UnseenContent(words, chance, scores_of(taken, sample.blocks, sample.label)[2])


def _scores_of_page(sample: Sample, model: choice.BlockModel, kinds: dict[str, float]) -> tuple[float, float, float]:
    return scores_of(choose(_judged(sample, model), kinds), sample.blocks, sample.label)


def _judged(sample: Sample, model: choice.BlockModel) -> list[choice.Candidate]:
    first = len(sample.names) - len(sample.names_of_page)
    chances = model.likelihoods(sample.rows[:, :first].tolist(), sample.of_page)
    return [each._replace(chance=chance) for each, chance in zip(sample.candidates, chances, strict=True)]


def _highest(samples: list[Sample]) -> float:
    return mean([scores_of((each.truth >= 0.4).tolist(), each.blocks, each.label)[2] for each in samples])


def exported_blocks(samples: list[Sample], seed: int) -> str:
    model = block_model(samples, seed)
    trees = [_tree(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]]
    return f'{{"features": {json.dumps(samples[0].names)},\n"trees": [\n{_lines(trees)}\n]}}\n'


def exported_kinds(samples: list[Sample], seed: int) -> str:
    model = kind_model(samples, seed)
    # LightGBM has one tree a class in each round.
    trees = [_tree(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]]
    of_kinds = ",\n".join(f'"{kind}": [\n{_lines(trees[at :: len(KINDS)])}\n]' for at, kind in enumerate(KINDS))
    return f'{{"features": {json.dumps(samples[0].names_of_page)},\n"trees": {{\n{of_kinds}\n}}}}\n'


def _lines(trees: list[Any]) -> str:
    return ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)


def _tree(node: dict[str, Any]) -> Any:
    if "leaf_value" in node:
        return round(node["leaf_value"], 4)
    threshold = float(f"{node['threshold']:.6g}")
    return [node["split_feature"], threshold, _tree(node["left_child"]), _tree(node["right_child"])]


if __name__ == "__main__":
    sys.exit(main())
