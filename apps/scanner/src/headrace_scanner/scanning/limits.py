"""How much a scan may take. No I/O."""

from __future__ import annotations

from typing import Any

BROWSER_MEMORY = "4GB"
"""For the handler, its driver and all processes of its browser together."""
SCAN_SECONDS = 1800.0
STEP_SECONDS = 600.0


def tree_limit(memory: str) -> dict[str, Any]:
    """Return the options of a task whose whole process tree is limited in memory.

    The one place that says so: with `memory_tree` in the core it is `{"memory_tree": memory}`.
    """
    del memory
    return {}
