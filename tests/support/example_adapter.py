"""The adapter for messages in a folder that the documentation shows."""

from __future__ import annotations

import importlib.util
from typing import Any

from tests.support.processes import ROOT

FILE = ROOT / "examples" / "folder_adapter.py"


def load() -> Any:
    """Return the class as it stands in the examples."""
    spec = importlib.util.spec_from_file_location("folder_adapter", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FolderAdapter
