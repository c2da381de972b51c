"""How much a scan may take. No I/O."""

from __future__ import annotations

import sys

BROWSER_MEMORY = 4 * 1024**3
"""Bytes for the handler, its driver and all processes of its browser together."""
TREE_LIMIT = BROWSER_MEMORY if sys.platform == "linux" else None
"""Elsewhere the core cannot find the processes of a tree, and refuses to run the task."""
SCAN_SECONDS = 1800.0
STEP_SECONDS = 600.0
