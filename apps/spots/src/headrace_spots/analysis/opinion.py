"""What a text says: its label, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

NEGATIVE = "negative"
NEUTRAL = "neutral"
POSITIVE = "positive"
LABELS = (NEGATIVE, NEUTRAL, POSITIVE)


@dataclass(frozen=True, slots=True)
class Opinion:
    """A label (`positive`, `negative`, `neutral`), and how sure it is, from 0 to 1."""

    label: str
    score: float
