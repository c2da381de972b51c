"""Learn what features are worth, from reviews_train.jsonl.

    python -m headrace_spots.analysis.learn FOLDER [--check] [--out FILE]

Without `--check` the weights are written to the package. With it four fifths are learnt from and
the rest is judged, five times, and nothing is written: all that could be chosen (features,
penalties, recipes) was chosen by these figures. Reviews: NSMC (CC0) and amazonReviewSnippets of the
VADER paper (MIT); only numbers are kept.

Several regressions are learnt for a language and their weights averaged, which is the geometric
mean of what they say. Positive and negative are then made equally likely: nobody knows beforehand
whether a shop is a good one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace_spots.analysis.language import ENGLISH, KOREAN
from headrace_spots.analysis.model.features import Features, features
from headrace_spots.analysis.model.logistic import Dense, Sparse, document_counts, learn, softmax
from headrace_spots.analysis.model.ngrams import Block, Floats
from headrace_spots.analysis.model.weights import write
from headrace_spots.analysis.opinion import LABELS
from headrace_spots.analysis.sentiment import WEIGHTS

SEED = 17
FOLDS = 5
ABOUT = {
    "made_by": "python -m headrace_spots.analysis.learn",
    "learnt_from": "NSMC (CC0); amazonReviewSnippets of the VADER paper (MIT)",
    "labels": [label for label in LABELS if label != "neutral"],
}
Labels = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Recipe(NamedTuple):
    """One regression: the features it sees, each with its penalty, and which n-grams it heeds most:
    `rare` ones, `telling` ones (much more frequent with one label than with another), or `all`.
    """

    penalties: dict[str, float]
    heeds: str


RECIPES = {
    KOREAN: (
        Recipe({"words": 0.5}, "rare"),
        Recipe({"jamo": 0.7}, "rare"),
        Recipe({"jamo": 1.0}, "telling"),
        Recipe({"characters": 1.0, "words": 1.0}, "telling"),
    ),
    ENGLISH: (Recipe({"encoder": 0.5, "told": 1.0, "words": 1.0, "characters": 1.0}, "all"),),
}
ROUNDS = 40


def read_reviews(path: Path, language: str) -> tuple[list[str], Labels]:
    """Return the texts of one language, and the numbers of their labels."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    chosen = [row for row in rows if row["language"] == language]
    labels = np.array([LABELS.index(row["label"]) for row in chosen], dtype=np.int64)
    return [row["text"] for row in chosen], labels


def fit(
    recipes: Sequence[Recipe], found: Features, labels: Labels, rows: Mask
) -> dict[str, Floats]:
    """Return the weights of each feature and the bias, learnt from the chosen rows."""
    targets = np.eye(len(LABELS), dtype=np.float32)[labels[rows]]
    totals: dict[str, Floats] = {"bias": np.zeros((1, len(LABELS)), np.float32)}
    for recipe in recipes:
        parts: list[Sparse | Dense] = []
        scales: list[Floats | None] = []
        for name in recipe.penalties:
            if name in found.dense:
                scales.append(None)
                parts.append(Dense(found.dense[name][rows]))
                continue
            block, bits = found.sparse[name]
            block = chosen_rows(block, rows)
            scale = _scale(recipe.heeds, block, 1 << bits, labels[rows])
            scales.append(scale)
            parts.append(Sparse(block, 1 << bits, scale))
        matrices, bias = learn(
            parts, targets, penalties=list(recipe.penalties.values()), rounds=ROUNDS
        )
        totals["bias"] = np.asarray(totals["bias"] + bias / len(recipes), np.float32)
        for name, matrix, by in zip(recipe.penalties, matrices, scales, strict=True):
            weights = matrix if by is None else matrix * by[:, None]
            totals[name] = totals.get(name, np.float32(0)) + weights / np.float32(len(recipes))
    counts = np.bincount(labels[rows], minlength=len(LABELS)) / rows.sum()
    either = (counts[0] + counts[2]) / 2
    wanted = np.array([either, counts[1], either])
    totals["bias"] = (totals["bias"] + np.log(wanted / counts)).astype(np.float32)
    return totals


def _scale(heeds: str, block: Block, buckets: int, labels: Labels) -> Floats:
    """Return how much a bucket counts: nothing where only one text has it."""
    counts = document_counts(block, buckets)
    scale = np.ones(buckets)
    if heeds == "rare":
        scale = np.log((len(labels) + 1) / (counts + 1)) / 4
    elif heeds == "telling":
        by_label = np.stack(
            [
                np.bincount(block.buckets, labels[block.rows] == label, minlength=buckets) + 1.0
                for label in range(len(LABELS))
            ]
        )
        shares = np.log(by_label / by_label.sum(axis=1, keepdims=True))
        scale = shares.max(axis=0) - shares.min(axis=0)
    return np.where(counts > 1, scale, 0).astype(np.float32)


def chosen_rows(block: Block, rows: Mask) -> Block:
    """Return the part of a block that belongs to the chosen texts."""
    counts = np.diff(block.starts)
    starts = np.concatenate([[0], np.cumsum(counts[rows])])
    return Block(starts, block.buckets[np.repeat(rows, counts)])


def shares(weights: dict[str, Floats], found: Features, rows: Mask) -> Floats:
    """Return what weights say of the chosen rows."""
    scores = np.repeat(weights["bias"], int(rows.sum()), axis=0)
    for name, (block, bits) in found.sparse.items():
        if name in weights:
            scores += Sparse(chosen_rows(block, rows), 1 << bits).times(weights[name])
    for name, matrix in found.dense.items():
        if name in weights:
            scores += matrix[rows] @ weights[name]
    return softmax(scores)


def check(language: str, found: Features, labels: Labels) -> None:
    """Print accuracy on fifths that were not learnt from."""
    folds = np.random.default_rng(SEED).permutation(len(labels)) % FOLDS
    said = np.zeros((len(labels), len(LABELS)), np.float32)
    for fold in range(FOLDS):
        weights = fit(RECIPES[language], found, labels, folds != fold)
        said[folds == fold] = shares(weights, found, folds == fold)
    right = said.argmax(axis=1) == labels
    two = labels != 1
    sides = (said[:, 2] > said[:, 0]) == (labels == 2)
    # The mean over classes too: the classes of these reviews are not equally many.
    recalls = [float(right[labels == each].mean()) for each in range(len(LABELS))]
    print(
        f"{language}: three classes {right.mean():.3f}, positive against negative "
        f"{sides[two].mean():.3f}; recall of {', '.join(LABELS)}: "
        f"{', '.join(f'{recall:.3f}' for recall in recalls)}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, and write or check the weights; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_spots.analysis.learn")
    parser.add_argument("folder", type=Path, help="folder with reviews_train.jsonl")
    parser.add_argument("--check", action="store_true", help="judge by fifths, write nothing")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="file for the weights")
    chosen = parser.parse_args(arguments)
    path = chosen.folder / "reviews_train.jsonl"
    if not path.is_file():
        parser.error(f"{path} is not there; give the folder that has it")
    arrays: dict[str, Floats] = {}
    for language, recipes in RECIPES.items():
        texts, labels = read_reviews(path, language)
        found = features(language, texts)
        if chosen.check:
            check(language, found, labels)
            continue
        weights = fit(recipes, found, labels, np.ones(len(labels), np.bool_))
        for name, matrix in weights.items():
            arrays[f"{language}.{name}"] = matrix[:, [0, 2]] - matrix[:, [1]]
    if not chosen.check:
        write(chosen.out, ABOUT, arrays)
        print(f"{chosen.out.name}: {chosen.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
