"""Hints for names that were mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# More names than this do not help anybody.
MOST = 50


def nearest(name: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names that look most like this one, the best first."""
    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str:
    """Return `did you mean "…"?`, or what is known (or `otherwise`) if nothing is similar."""
    names = list(known)
    if near := nearest(name, names, cutoff=0.5):
        return f'did you mean "{near[0]}"?'
    if otherwise is not None:
        return otherwise
    return f"known: {', '.join(sorted(names)[:MOST])}" if names else "there are none"


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence that a name is not known, with the nearest that is."""
    return f'unknown {kind} "{name}"; {did_you_mean(name, known)}'


def similar_or_first(name: str, known: Iterable[str], *, first: int = 10) -> str:
    """Return the three most similar names, quoted; the first ones if none is similar."""
    names = list(known)
    shown = nearest(name, names, count=3) or sorted(names)[:first]
    return ", ".join(f'"{each}"' for each in shown) or "none"
