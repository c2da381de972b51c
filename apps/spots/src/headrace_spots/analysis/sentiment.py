"""Whether a text praises or blames: by the stars beside it, or by a model learnt from reviews."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headrace_spots.analysis.language import ENGLISH, KOREAN, language_of
from headrace_spots.analysis.model.features import features
from headrace_spots.analysis.model.logistic import Sparse, softmax
from headrace_spots.analysis.model.ngrams import Floats
from headrace_spots.analysis.model.weights import DamagedWeights, read
from headrace_spots.analysis.opinion import LABELS, NEGATIVE, NEUTRAL, POSITIVE, Opinion

WEIGHTS = Path(__file__).with_name("sentiment.weights")
MOST_STARS = 5
# Memory stays bounded however many texts there are.
BATCH = 500


class Sentiment:
    """The learnt model. Safe to use from several threads."""

    def __init__(self, arrays: Mapping[str, Floats]) -> None:
        self._weights: dict[str, dict[str, Floats]] = {KOREAN: {}, ENGLISH: {}}
        for name, array in arrays.items():
            language, _, part = name.partition(".")
            # The column of "neutral" is not stored: only differences count.
            full = np.zeros((len(array), len(LABELS)), np.float32)
            full[:, [0, 2]] = array
            self._weights.setdefault(language, {})[part] = full

    @classmethod
    def load(cls) -> Sentiment:
        """Return the model of this package. It is read once in a process."""
        return _of_this_package()

    @classmethod
    def read(cls, path: Path) -> Sentiment:
        """Return the model in a file that `python -m headrace_spots.analysis.learn` has written."""
        return cls(read(path).arrays)

    def of(
        self, texts: Sequence[str], *, stars: Sequence[float | None] | None = None
    ) -> list[Opinion]:
        """Return the opinion of each text, in order.

        Where stars (0 to 5) are given they decide, and the text is not read: 3.5 and more are
        positive, below 2.5 is negative. A text without a word or a mark is neutral.
        """
        if stars is not None and len(stars) != len(texts):
            raise ValueError(
                f"there are {len(texts)} texts and {len(stars)} stars; give one for each"
            )
        found: list[Opinion | None] = [None] * len(texts)
        unread = []
        for place, text in enumerate(texts):
            given = None if stars is None else stars[place]
            if given is not None:
                found[place] = by_stars(given)
            elif not text.strip():
                found[place] = Opinion(NEUTRAL, 1.0)
            else:
                unread.append(place)
        shares = self.shares([texts[place] for place in unread])
        for place, row in zip(unread, shares, strict=True):
            best = int(np.argmax(row))
            found[place] = Opinion(LABELS[best], round(float(row[best]), 4))
        return [opinion for opinion in found if opinion is not None]

    def shares(self, texts: Sequence[str]) -> Floats:
        """Return how likely each text is negative, neutral and positive: rows that add up to 1."""
        result = np.zeros((len(texts), len(LABELS)), np.float32)
        languages = np.array([language_of(text) for text in texts])
        for language in (KOREAN, ENGLISH):
            places = np.flatnonzero(languages == language)
            for begin in range(0, len(places), BATCH):
                some = places[begin : begin + BATCH]
                result[some] = self._shares(language, [texts[place] for place in some])
        return result

    def _shares(self, language: str, texts: Sequence[str]) -> Floats:
        weights = self._weights[language]
        found = features(language, texts)
        try:
            scores = np.repeat(weights["bias"], len(texts), axis=0)
            for name, (block, bits) in found.sparse.items():
                scores += Sparse(block, 1 << bits).times(weights[name])
            for name, matrix in found.dense.items():
                scores += matrix @ weights[name]
        except (KeyError, IndexError, ValueError) as error:
            raise DamagedWeights(
                f'The weights do not fit this version for "{language}" ({error}). '
                "Install headrace-spots again."
            ) from error
        return softmax(scores)


def by_stars(stars: float) -> Opinion:
    """Return the opinion that stars (0 to 5) are."""
    if not 0 <= stars <= MOST_STARS:
        raise ValueError(f"stars must be between 0 and {MOST_STARS}, got {stars}")
    if stars >= 3.5:
        return Opinion(POSITIVE, round(min(1.0, 0.5 + (stars - 3) / 4), 4))
    if stars < 2.5:
        return Opinion(NEGATIVE, round(min(1.0, 0.5 + (3 - stars) / 4), 4))
    return Opinion(NEUTRAL, 1.0)


@functools.cache
def _of_this_package() -> Sentiment:
    return Sentiment.read(WEIGHTS)
