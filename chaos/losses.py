"""Losses that the documentation allows: told by what happened, and no violations."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from chaos.judge import Judgement, Violation

# What follows when a store comes back in an earlier state than it has acknowledged.
FOLLOWS = frozenset(
    {
        "lost",
        "token run twice",
        "stale outcome",
        "recorded twice",
        "stage run again",
        "lane overlap",
        "lane order",
    }
)


def set_apart(
    judgement: Judgement,
    acknowledged_at: dict[str, float],
    faults: Sequence[tuple[float, str]],
) -> dict[str, dict[str, Any]]:
    """Take what may be lost out of the violations, and tell it by the fault that came next.

    `faults` are when each began, and its name.
    """
    gone = [each.job for each in judgement.violations if each.rule == "lost"]
    undone = Counter(each.rule for each in judgement.violations if each.rule in FOLLOWS)
    judgement.violations = [each for each in judgement.violations if each.rule not in FOLLOWS]
    ordered = sorted(faults)
    moments = [at for at, _ in ordered]
    lost_at: Counter[int] = Counter()
    for job in gone:
        place = min(bisect.bisect_left(moments, acknowledged_at[job]), len(ordered) - 1)
        if place < 0:
            judgement.violations.append(Violation("lost", job, "lost, and nothing had happened"))
        else:
            lost_at[place] += 1
    found: dict[str, dict[str, Any]] = {}
    for name in sorted({name for _, name in ordered}):
        places = [place for place, (_, kind) in enumerate(ordered) if kind == name]
        found[name] = {
            "times": len(places),
            "lost": sum(lost_at[place] for place in places),
            "most": max(lost_at[place] for place in places),
        }
    if found:
        found["all"] = {
            "times": len(ordered),
            "lost": len(gone),
            "most": max(lost_at.values(), default=0),
            "undone": undone["token run twice"],
        }
    return found
