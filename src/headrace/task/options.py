"""Checks of the options that people write by name."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import InvalidSetting
from headrace.suggest import unknown


def check_options(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `InvalidSetting` for the first option that is not known, with the nearest that is."""
    names = list(known)
    for name in given:
        if name not in names:
            raise InvalidSetting(unknown(f"{kind} option", name, names))
