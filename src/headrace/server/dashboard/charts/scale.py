"""Round numbers for the ticks of an axis."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880, 10_080, 43_200)
)


def ticks(most: float, about: int = 4) -> list[float]:
    """Return round numbers from 0 to at least `most`; whole ones if that is whole."""
    if most <= 0 or not math.isfinite(most):
        return [0.0, 1.0]
    step = most / about
    unit = 10.0 ** math.floor(math.log10(step))
    step = next(unit * each for each in (1, 2, 2.5, 5, 10) if unit * each >= step * 0.999)
    if float(most).is_integer():
        step = max(1.0, math.ceil(step))
    return [number * step for number in range(math.ceil(most / step - 1e-9) + 1)]


def time_ticks(start: datetime, end: datetime, most: int = 7) -> list[datetime]:
    """Return round times within a window, in the zone of `start`."""
    length = end - start
    step = next((each for each in STEPS if length / each <= most), length / most)
    day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    first = math.ceil((start - day) / step)
    found: list[datetime] = []
    while (moment := day + first * step) <= end and len(found) <= most:
        found.append(moment)
        first += 1
    return found


def short(number: float) -> str:
    """Return a number as it stands on an axis: 1.5k, 20M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
