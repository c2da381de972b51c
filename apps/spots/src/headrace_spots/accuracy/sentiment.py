"""Measure whether praise and blame are told apart, on reviews.jsonl.

Nothing was learnt from these reviews, and nothing chosen by them. Beside the model stand the most
frequent label, always, and VADER where `vaderSentiment` is installed (it is for English only).
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TextIO

import numpy as np

from headrace_spots.analysis import Sentiment
from headrace_spots.analysis.learn import Labels, read_reviews
from headrace_spots.analysis.model.ngrams import Floats
from headrace_spots.analysis.opinion import LABELS

NEUTRAL, POSITIVE = 1, 2
LANGUAGES = {"ko": "Korean", "en": "English"}
# VADER's own borders.
VADER_BORDER = 0.05


class Judged(NamedTuple):
    """What a method says: a label for each text, and which side where there are only two."""

    labels: Labels
    positive: np.ndarray[tuple[int], np.dtype[np.bool_]]


def accuracy(judged: Judged, labels: Labels) -> float:
    """Return the share of texts whose label is right."""
    return float((judged.labels == labels).mean())


def accuracy_of_two(judged: Judged, labels: Labels) -> float:
    """Return the share of positive and negative texts that are put on the right side."""
    two = labels != NEUTRAL
    return float((judged.positive[two] == (labels[two] == POSITIVE)).mean())


def f1(judged: Judged, labels: Labels, label: int) -> float:
    """Return the harmonic mean of precision and recall of one label."""
    right = int(((judged.labels == label) & (labels == label)).sum())
    said, there = int((judged.labels == label).sum()), int((labels == label).sum())
    return 2 * right / (said + there) if said + there else 0.0


def by_shares(shares: Floats) -> Judged:
    """Return what the model says."""
    return Judged(shares.argmax(axis=1), shares[:, POSITIVE] > shares[:, 0])


def by_majority(labels: Labels) -> Judged:
    """Return the most frequent label for each text."""
    counts = Counter(labels.tolist())
    most = counts.most_common(1)[0][0]
    positive = counts[POSITIVE] >= counts[0]
    return Judged(np.full(len(labels), most), np.full(len(labels), positive))


def by_vader(texts: Sequence[str]) -> Judged | None:
    """Return what VADER says, if it is there."""
    try:
        module = importlib.import_module("vaderSentiment.vaderSentiment")
    except ModuleNotFoundError:
        return None
    analyzer = module.SentimentIntensityAnalyzer()
    scores = np.array([analyzer.polarity_scores(text)["compound"] for text in texts])
    labels = np.where(scores >= VADER_BORDER, 2, np.where(scores <= -VADER_BORDER, 0, 1))
    return Judged(labels, scores >= 0)


def measure(folder: Path, out: TextIO) -> None:
    """Write the table of both languages."""
    model = Sentiment.load()
    # What is loaded once is no part of the speed.
    model.of(["좋아요", "good"])
    heads = ["reviews", "method", "three classes", "positive against negative"]
    heads += [f"F1 {label}" for label in LABELS]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", file=out)
    speeds = []
    for language, title in LANGUAGES.items():
        texts, labels = read_reviews(folder / "reviews.jsonl", language)
        begun = perf_counter()
        shares = model.shares(texts)
        speeds.append(f"{title} {len(texts) / (perf_counter() - begun):,.0f}")
        methods = {"this model": by_shares(shares), "most frequent label": by_majority(labels)}
        vader = by_vader(texts) if language == "en" else None
        if vader:
            methods["VADER"] = vader
        elif language == "en":
            print("VADER is not measured: install vaderSentiment", file=sys.stderr)
        for name, judged in methods.items():
            cells = [accuracy(judged, labels), accuracy_of_two(judged, labels)]
            cells += [f1(judged, labels, label) for label in range(len(LABELS))]
            figures = " | ".join(f"{cell:.3f}" for cell in cells)
            print(f"| {len(texts)} {title} | {name} | {figures} |", file=out)
    print(f"\nTexts in a second, one thread: {'; '.join(speeds)}", file=out)
