"""Tasks that parse in a process of their own, for test_isolation.py."""

from __future__ import annotations

import os

from headrace import App
from headrace_ingest.parsing import NEVER_RETRY, parse_file

app = App(os.environ.get("INGEST_TEST_URL", "sqlite:///unused.db"))


@app.task("parse.limited", isolate="process", timeout=3, retries=0)
def parse_limited(path: str, name: str) -> str:
    """Return the text, within three seconds."""
    return parse_file(path, name).text


@app.task(
    "parse.small",
    isolate="process",
    timeout=60,
    retries=2,
    memory_limit=300 * 1024 * 1024,
    never_retry=NEVER_RETRY,
)
def parse_small(path: str, name: str) -> str:
    """Return the text, within 300 MiB."""
    return parse_file(path, name).text
