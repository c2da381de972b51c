"""Run a measurement: `python -m headrace_ingest.bench search`, `documents` or `memory`."""

from __future__ import annotations

import sys

from headrace_ingest.bench import documents, search

if __name__ == "__main__":
    chosen = search if sys.argv[1:2] == ["search"] else documents
    raise SystemExit(chosen.main(sys.argv[1:]))
