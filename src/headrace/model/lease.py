"""The timing of leases: how soon a job is taken over after its worker died, and what that costs.

All follows from the setting `lease_seconds`: how often a worker renews, how long a renewal is
valid, and how often the others look for renewals that have lapsed.
"""

from __future__ import annotations

# A renewal is one statement, but every worker makes it.
LONGEST_RENEWAL_PAUSE = 5.0
# A look at lapsed leases costs little, but every worker looks.
LONGEST_SWEEP_PAUSE = 5.0
# Pauses vary by a fifth, so that not all workers look at once (`loops.loop.around`).
LONGEST_VARIATION = 1.2


def renewal_pause(renewal_seconds: float) -> float:
    """Return how long a worker waits between two renewals that are valid for so long."""
    return min(renewal_seconds / 5, LONGEST_RENEWAL_PAUSE)


def sweep_pause(lease_seconds: float) -> float:
    """Return about how long a worker waits between two looks for lapsed leases."""
    return min(lease_seconds / 4, LONGEST_SWEEP_PAUSE)


def renewal_seconds(lease_seconds: float) -> float:
    """Return how long a renewal is valid: so that `lease_seconds` after the last one a sweep has
    seen that it has lapsed.
    """
    return lease_seconds - LONGEST_VARIATION * sweep_pause(lease_seconds)
