"""Measure which aspects are found in sentences that somebody else has labelled.

A sentence's aspects are a set; a noun of its own counts as `other`. Found is right where the
sentence has that aspect; with its opinion, where the label is the same too.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple, TextIO

from headrace_spots.analysis import Sentiment
from headrace_spots.analysis.aspects import mentions
from headrace_spots.analysis.opinion import NEGATIVE, NEUTRAL, POSITIVE, Opinion

SET = Path(__file__).parents[3] / "tests" / "data" / "aspects_labelled.jsonl"
OTHER = "other"


class LabelledSentence(NamedTuple):
    """A sentence, its language, and the labels of what it speaks of."""

    text: str
    language: str
    aspects: dict[str, str]


class AspectTally(NamedTuple):
    """How many aspects were labelled and found, and how many of those rightly."""

    labelled: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        """Return the share of found ones that are right."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Return the share of labelled ones that were found."""
        return self.right / self.labelled if self.labelled else 0.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        total = self.labelled + self.found
        return 2 * self.right / total if total else 0.0


def read_sentences(path: Path) -> list[LabelledSentence]:
    """Return the labelled sentences."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [
        LabelledSentence(
            row["text"],
            row["language"],
            {each["name"]: each["label"] for each in row["aspects"]},
        )
        for row in rows
    ]


def found_in(text: str, opinion: Opinion) -> dict[str, str]:
    """Return what is found in a sentence, the opinion of each by all its clauses."""
    totals: Counter[str] = Counter()
    for mention in mentions(text, opinion):
        name = mention.name if mention.known else OTHER
        totals[name] += {POSITIVE: 1, NEGATIVE: -1, NEUTRAL: 0}[mention.label]
    return {
        name: POSITIVE if total > 0 else NEGATIVE if total < 0 else NEUTRAL
        for name, total in totals.items()
    }


def measure(path: Path, out: TextIO) -> None:
    """Write precision, recall and F1 of both languages, and of each aspect."""
    sentences = read_sentences(path)
    opinions = Sentiment.load().of([sentence.text for sentence in sentences])
    pairs = [
        (sentence, found_in(sentence.text, opinion))
        for sentence, opinion in zip(sentences, opinions, strict=True)
    ]
    print("| sentences | aspects | precision | recall | F1 | F1 with the opinion |", file=out)
    print("|---|---|---|---|---|---|", file=out)
    for language, title in (("ko", "Korean"), ("en", "English"), ("", "both")):
        some = [pair for pair in pairs if language in ("", pair[0].language)]
        _row(f"{len(some)} {title}", some, None, out)
    for name in sorted({name for sentence in sentences for name in sentence.aspects}):
        _row(name, pairs, name, out)


def _row(
    title: str, pairs: list[tuple[LabelledSentence, dict[str, str]]], name: str | None, out: TextIO
) -> None:
    alone = tally(pairs, name, with_opinion=False)
    both = tally(pairs, name, with_opinion=True)
    figures = f"{alone.precision:.3f} | {alone.recall:.3f} | {alone.f1:.3f} | {both.f1:.3f}"
    print(f"| {title} | {alone.labelled} | {figures} |", file=out)


def tally(
    pairs: list[tuple[LabelledSentence, dict[str, str]]], name: str | None, *, with_opinion: bool
) -> AspectTally:
    """Return the counts over sentences, of one aspect or of all."""
    labelled = found = right = 0
    for sentence, said in pairs:
        there = {each for each in sentence.aspects.items() if name in (None, each[0])}
        here = {each for each in said.items() if name in (None, each[0])}
        labelled += len(there)
        found += len(here)
        both = there & here if with_opinion else dict(there).keys() & dict(here).keys()
        right += len(both)
    return AspectTally(labelled, found, right)
