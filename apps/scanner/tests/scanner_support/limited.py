"""The bundle with a lower limit for the memory of browsers, and one attempt for each scan."""

from __future__ import annotations

import os

import msgspec

import headrace
from scanner_support.trees import LIMIT

app = headrace.App(bundles=["scanner"])
_task = app.tasks["scanner.scan_browser"]
_task.policy = msgspec.structs.replace(
    _task.policy,
    retry=headrace.RetryPolicy(retries=0),
    tree_memory_limit=int(os.environ[LIMIT]),
)
_task.max_attempts = 1
