"""Lists of words that rules for names need, one file for each."""

from __future__ import annotations

from importlib import resources


def words(name: str) -> frozenset[str]:
    """Return the words of a list, such as `korean_titles`."""
    file = resources.files(__name__) / f"{name}.txt"
    return frozenset(file.read_text(encoding="utf-8").split())
