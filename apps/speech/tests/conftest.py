"""Fixtures for the tests of `speech`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
# The bundle need not be installed to be tested.
for folder in (HERE, HERE.parent / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
