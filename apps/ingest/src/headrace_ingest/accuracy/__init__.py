"""How well data is masked and documents are found: `python -m headrace_ingest.accuracy`."""
