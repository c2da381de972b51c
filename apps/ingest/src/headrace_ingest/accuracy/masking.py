"""Measure how well personal data is found.

    python -m headrace_ingest.accuracy masking [--set FILE]    precision and recall of each kind
    python -m headrace_ingest.accuracy names --data FOLDER     names of persons in names_ko.jsonl

`search` and `similar` measure how well documents are found: see `search`.

Names: rules were written with one half of the sentences in sight (`--half tune`); figures are
published on the other one, which is the default. Each half has every second quarter of the file,
because its first half are the sentences with names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from headrace_ingest.masking import Kind, Span, find

MEASUREMENTS = ("masking", "names")
SET = Path(__file__).parents[3] / "tests" / "data" / "personal_data.jsonl"


class Sentence(NamedTuple):
    """A sentence, and the personal data that people have marked in it."""

    text: str
    spans: list[Span]


class Tally:
    """What was found of one kind. `exact`: the same borders; `covered`: no character is left.

    `missed` and `invented` are for those who write rules.
    """

    def __init__(self) -> None:
        self.labelled = self.found = self.exact = self.covered = self.right = 0
        self.missed: list[str] = []
        self.invented: list[str] = []

    def add(self, text: str, labelled: Sequence[Span], found: Sequence[Span]) -> None:
        """Count one sentence."""
        self.labelled += len(labelled)
        self.found += len(found)
        borders = {span[:2] for span in found}
        for span in labelled:
            hidden = {place for other in found for place in range(other.begin, other.end)}
            whole = hidden.issuperset(range(span.begin, span.end))
            self.exact += span[:2] in borders
            self.covered += whole
            if not whole:
                self.missed.append(f"{text[span.begin : span.end]!r} in {text!r}")
        for span in found:
            touches = any(span.begin < other.end and other.begin < span.end for other in labelled)
            self.right += touches
            if not touches:
                self.invented.append(f"{text[span.begin : span.end]!r} in {text!r}")

    def row(self, kind: str) -> str:
        """Return a line of a Markdown table."""
        return (
            f"| {kind} | {self.labelled} | {self.found} | {_share(self.right, self.found)} "
            f"| {_share(self.covered, self.labelled)} | {_share(self.exact, self.found)} "
            f"| {_share(self.exact, self.labelled)} |"
        )


def measure(sentences: Iterable[Sentence], kinds: Iterable[Kind]) -> dict[Kind, Tally]:
    """Return what is found of each kind in the sentences."""
    tallies: dict[Kind, Tally] = defaultdict(Tally)
    for sentence in sentences:
        found = find(sentence.text)
        for kind in kinds:
            tallies[kind].add(
                sentence.text,
                [span for span in sentence.spans if span.kind == kind],
                [span for span in found if span.kind == kind],
            )
    return dict(tallies)


def read_names(folder: Path, half: str) -> list[Sentence]:
    """Return one half of the sentences of `names_ko.jsonl`: its quarters 1 and 3, or 2 and 4."""
    lines = (folder / "names_ko.jsonl").read_text(encoding="utf-8").splitlines()
    quarter = len(lines) // 4
    first = 0 if half == "tune" else quarter
    chosen = lines[first : first + quarter] + lines[first + 2 * quarter : first + 3 * quarter]
    sentences = []
    for row in map(json.loads, chosen):
        spans = [Span(begin, end, Kind.PERSON) for begin, end, _ in row["persons"]]
        sentences.append(Sentence(row["text"], spans))
    return sentences


def read_set(path: Path) -> list[Sentence]:
    """Return the labelled sentences of a file with one JSON object on each line."""
    sentences = []
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        spans = [Span(span["start"], span["end"], Kind(span["kind"])) for span in row["spans"]]
        sentences.append(Sentence(row["text"], spans))
    return sentences


def show(tallies: dict[Kind, Tally], out: TextIO, *, errors: bool) -> None:
    """Write the figures as a Markdown table."""
    print(
        "| kind | labelled | found | precision | recall | exact precision | exact recall |",
        file=out,
    )
    print("|---|---|---|---|---|---|---|", file=out)
    for kind, tally in tallies.items():
        print(tally.row(kind.value), file=out)
    for kind, tally in tallies.items() if errors else ():
        for name, examples in (("missed", tally.missed), ("invented", tally.invented)):
            for example in examples:
                print(f"{kind.value} {name}: {example}", file=out)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "none"


def main(arguments: Sequence[str]) -> int:
    """Run a measurement; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.accuracy")
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--set", type=Path, default=SET, help="labelled sentences (masking)")
    parser.add_argument("--data", type=Path, help="folder with names_ko.jsonl (names)")
    parser.add_argument("--half", choices=["tune", "publish"], default="publish")
    parser.add_argument("--errors", action="store_true", help="list what was missed and invented")
    chosen = parser.parse_args(arguments)
    if chosen.what == "names":
        if chosen.data is None:
            parser.error("names needs --data")
        tallies = measure(read_names(chosen.data, chosen.half), [Kind.PERSON])
    else:
        tallies = measure(read_set(chosen.set), [kind for kind in Kind if kind != Kind.IP_ADDRESS])
    show(tallies, sys.stdout, errors=chosen.errors)
    return 0
