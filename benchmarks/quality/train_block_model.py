"""Training of the model that finds content blocks, and its cross-validation on unseen sites.

``python benchmarks/quality/train_block_model.py DATA_DIR [--write]`` prints the word F1 of its text by type of page in
a five-fold cross-validation with the pages of a site kept together, beside that of all blocks that are right (what no
choice of blocks can surpass). With ``--write`` it trains on all pages and writes the model into the package. Needs
lightgbm (see ``requirements.txt``); same data and same versions make the same model.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lightgbm
import numpy as np
from block_truth import Words, f1_of, truths
from data import page, type_of, wcxb_labels
from scores import mean, words

from scrapy_ext.server.extraction.auto.content import main_content as block_model
from scrapy_ext.server.extraction.auto.content.blocks import Blocks
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.content.main_content import MAX_BLOCKS, most_likely
from scrapy_ext.server.extraction.auto.page.page import Page

FOLDS = 5
#: Exponent of the number of words in the sampling of training blocks, so that each page has the same weight.
SAMPLE, POWER = 100, 0.7
#: Pages with fewer blocks have less weight.
FEW = 20
#: Pages whose right blocks have a smaller share of the expected words are excluded from training.
READABLE = 0.3
TREES = 100
PARAMETERS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.1,
    "num_leaves": 16,
    "min_data_in_leaf": 60,
    "min_sum_hessian_in_leaf": 5,
    "lambda_l2": 10,
    "feature_fraction": 0.2,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 0,
    "verbose": -1,
}


@dataclass
class Sample:
    """A labelled page: features, truth and words of its blocks."""

    site: str
    kind: str
    names: tuple[str, ...]
    rows: np.ndarray
    truth: np.ndarray
    blocks: list[Words]
    label: Counter[str]

    @property
    def counts(self) -> np.ndarray:
        return np.array([len(block) for block in self.blocks], dtype=float)

    @property
    def readable(self) -> bool:
        wanted = min(self.label.total(), self.counts.sum())
        return bool(wanted and (self.truth * self.counts).sum() > READABLE * wanted)


def main() -> int:
    logging.disable(logging.CRITICAL)
    data = Path(sys.argv[1])
    data = data / "labelled" if (data / "labelled").is_dir() else data
    samples = read(data / "wcxb-dev")
    print(json.dumps(cross_validated(samples)), flush=True)
    if "--write" in sys.argv[2:]:
        target = Path(block_model.__file__).with_name(block_model.DATA)
        model = trained([sample for sample in samples if sample.readable])
        target.write_text(exported(model, samples[0].names), "utf-8")
    return 0


def read(folder: Path) -> list[Sample]:
    samples = []
    for name, label in sorted(wcxb_labels(folder).items()):
        url = label["url"] or "https://www.example.org/"
        source = Page(page(folder, name), url)
        blocks = Blocks(source, MAX_BLOCKS)
        features = Features(source, blocks)
        texts = [block.text for block in blocks]
        samples.append(
            Sample(
                site_of(urlsplit(label["url"] or name).hostname or name),
                type_of(label),
                features.names,
                np.array([row + features.of_page for row in features.rows], dtype=np.float64).reshape(
                    len(blocks), len(features.names)
                ),
                np.array(truths(texts, label["main_content"])),
                [words(text) for text in texts],
                Counter(words(label["main_content"])),
            )
        )
    return samples


def site_of(host: str) -> str:
    parts = host.split(".")
    return ".".join(parts[-3:] if len(parts) > 2 and len(parts[-2]) <= 3 else parts[-2:])


def fold_of(sample: Sample) -> int:
    return int(hashlib.sha256(sample.site.encode()).hexdigest(), 16) % FOLDS


def trained(samples: list[Sample]) -> lightgbm.Booster:
    random = np.random.RandomState(0)
    rows, truth, weights = [], [], []
    for sample in samples:
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
    return lightgbm.train(PARAMETERS, known, TREES)


def cross_validated(samples: list[Sample]) -> dict[str, Any]:
    scores: dict[str, list[float]] = defaultdict(list)
    highest: list[float] = []
    for fold in range(FOLDS):
        model = trained([sample for sample in samples if fold_of(sample) != fold and sample.readable])
        for sample in samples:
            if fold_of(sample) == fold:
                chances = np.asarray(model.predict(sample.rows)) if sample.blocks else np.zeros(0)
                taken = most_likely(chances.tolist(), [len(block) for block in sample.blocks])
                scores[sample.kind].append(f1_of(taken, sample.blocks, sample.label))
                highest.append(f1_of((sample.truth >= 0.4).tolist(), sample.blocks, sample.label))
    return {
        "kind": "pageContent, cross-validated",
        "pages": len(samples),
        "word_f1": mean([score for found in scores.values() for score in found]),
        "word_f1_by_type": {kind: mean(found) for kind, found in sorted(scores.items())},
        "of_right_blocks": mean(highest),
    }


def exported(model: lightgbm.Booster, names: tuple[str, ...]) -> str:
    trees = [_tree(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]]
    lines = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    return f'{{"features": {json.dumps(list(names))},\n"trees": [\n{lines}\n]}}\n'


def _tree(node: dict[str, Any]) -> Any:
    if "leaf_value" in node:
        return round(node["leaf_value"], 4)
    threshold = float(f"{node['threshold']:.6g}")
    return [node["split_feature"], threshold, _tree(node["left_child"]), _tree(node["right_child"])]


if __name__ == "__main__":
    sys.exit(main())
