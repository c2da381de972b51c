"""The features of each language: which blocks are made of its texts, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace_spots.analysis.encoder import encode
from headrace_spots.analysis.language import KOREAN, normalised
from headrace_spots.analysis.model.ngrams import Block, Floats, character_ngrams, word_ngrams
from headrace_spots.analysis.words.english import marked, told, words
from headrace_spots.analysis.words.korean import jamo, morphemes

KOREAN_BITS = 18
JAMO_BITS = 19
ENGLISH_BITS = 16


class Features(NamedTuple):
    """Blocks of hashed n-grams, with the number of their buckets as bits, and plain numbers."""

    sparse: dict[str, tuple[Block, int]]
    dense: dict[str, Floats]


def features(language: str, texts: Sequence[str]) -> Features:
    """Return what is known of texts of one language."""
    cleaned = [normalised(text) for text in texts]
    return _korean(cleaned) if language == KOREAN else _english(cleaned)


def _korean(texts: Sequence[str]) -> Features:
    tagged = [[f"{each.form}/{each.tag}" for each in morphemes(text)] for text in texts]
    apart = [jamo(text) for text in texts]
    bits = KOREAN_BITS
    return Features(
        {
            "characters": (character_ngrams(texts, 1, 4, bits), bits),
            "jamo": (character_ngrams(apart, 3, 6, JAMO_BITS), JAMO_BITS),
            "words": (word_ngrams(tagged, 2, bits), bits),
        },
        {},
    )


def _english(texts: Sequence[str]) -> Features:
    found = [words(text) for text in texts]
    bits = ENGLISH_BITS
    return Features(
        {
            "characters": (character_ngrams(texts, 2, 5, bits), bits),
            "words": (word_ngrams([marked(each) for each in found], 2, bits), bits),
        },
        {"encoder": encode(texts), "told": told(found)},
    )
