"""Learn what each sign of a name is worth, from the half of names_ko.jsonl that is for tuning.

    python -m headrace_ingest.learn_names --data FOLDER [--check]

Logistic regression with a penalty on large weights. `--check` learns from four fifths of the half
and tells the figures on the rest, five times; without it the weights are written to the package.
Sentences: KLUE-NER (dev), CC BY-SA 4.0. Only the weights are kept.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headrace_ingest.accuracy.masking import Sentence, read_names
from headrace_ingest.masking.korean_stems import features, stems_of, tokens_of

WEIGHTS = Path(__file__).parent / "masking" / "korean_name_weights.json"
PENALTY = 0.6
ROUNDS = 400
Example = tuple[list[str], bool, int]


def examples(sentences: Sequence[Sentence]) -> list[Example]:
    """Return the features of every stem, whether it is a name, and the number of its sentence."""
    found: list[Example] = []
    for number, sentence in enumerate(sentences):
        tokens = tokens_of(sentence.text)
        for stem in stems_of(tokens):
            shared = max(
                (min(stem.end, span.end) - max(stem.begin, span.begin) for span in sentence.spans),
                default=0,
            )
            is_name = shared * 2 > stem.end - stem.begin
            found.append((features(sentence.text, tokens, stem), is_name, number))
    return found


def learn(known: Sequence[Example]) -> dict[str, float]:
    """Return a weight for each feature that was seen twice."""
    counts = Counter(feature for row, _, _ in known for feature in set(row))
    index = {feature: place for place, (feature, n) in enumerate(sorted(counts.items())) if n > 1}
    index = {feature: place for place, feature in enumerate(sorted(index))}
    matrix = np.zeros((len(known), len(index)), dtype=np.float32)
    for row, (row_features, _, _) in enumerate(known):
        for feature in row_features:
            if feature in index:
                matrix[row, index[feature]] = 1
    labels = np.array([is_name for _, is_name, _ in known], dtype=np.float32)
    weights = np.zeros(len(index), dtype=np.float32)
    # Adam, on all examples at once: small enough, and the same every time.
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, ROUNDS + 1):
        guess = 1 / (1 + np.exp(-(matrix @ weights)))
        slope = matrix.T @ (guess - labels) + PENALTY * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        pace = 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        weights -= pace
    return {
        feature: round(float(weights[place]), 3)
        for feature, place in index.items()
        if abs(weights[place]) >= 0.01
    }


def check(known: Sequence[Example]) -> None:
    """Print precision and recall of stems at several thresholds, on sentences not learnt from."""
    scores: list[tuple[float, bool]] = []
    for fold in range(5):
        weights = learn([row for row in known if row[2] % 5 != fold])
        for row, is_name, number in known:
            if number % 5 == fold:
                scores.append((sum(weights.get(feature, 0.0) for feature in row), is_name))
    names = sum(is_name for _, is_name in scores)
    for threshold in (0.2, 0.3, 0.35, 0.4, 0.5, 0.6):
        chosen = [is_name for score, is_name in scores if 1 / (1 + np.exp(-score)) >= threshold]
        right = sum(chosen)
        print(f"{threshold:.2f} precision {right / len(chosen):.3f} recall {right / names:.3f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, and write or check the weights."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.learn_names")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    known = examples(read_names(chosen.data, "tune"))
    if chosen.check:
        check(known)
        return
    body = {
        "source": "learnt by headrace_ingest.learn_names from KLUE-NER (dev), CC BY-SA 4.0",
        "weights": learn(known),
    }
    text = json.dumps(body, ensure_ascii=False, indent=0, sort_keys=True)
    WEIGHTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
