"""Reviews that stand for the others: chosen among them, never generated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SHORTEST = 8
LONGEST = 300
# How much a second review must differ from the first: 0 would choose near copies.
VARIETY = 0.5


def representative(
    texts: Sequence[str], vectors: npt.NDArray[np.floating], count: int = 3
) -> list[int]:
    """Return the indexes of at most `count` texts that say most of what all say, best first.

    Each is near to many others and unlike those chosen before it (maximal marginal relevance).
    Empty texts and copies are never chosen; very short and very long ones only where there is
    nothing else. The same texts and vectors give the same answer.
    """
    if len(texts) != len(vectors):
        raise ValueError(
            f"there are {len(texts)} texts and {len(vectors)} vectors; give one for each"
        )
    firsts: dict[str, int] = {}
    for index, text in enumerate(texts):
        if text.strip():
            firsts.setdefault(" ".join(text.split()).casefold(), index)
    candidates = list(firsts.values())
    if not candidates or count <= 0:
        return []
    rows = np.nan_to_num(np.asarray(vectors, np.float32))
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    # The mean over all texts, copies too: what ten people say weighs ten times.
    nearness = rows[candidates] @ rows.mean(axis=0)
    lengths = np.array([len(texts[index].strip()) for index in candidates])
    nearness = nearness - 10.0 * ((lengths < SHORTEST) | (lengths > LONGEST))
    chosen: list[int] = []
    likeness = np.zeros(len(candidates), np.float32)
    for _ in range(min(count, len(candidates))):
        best = int(np.argmax(nearness - VARIETY * likeness))
        chosen.append(candidates[best])
        likeness = np.maximum(likeness, rows[candidates] @ rows[candidates[best]])
        nearness[best] = -np.inf
    return chosen
