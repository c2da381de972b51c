"""Reads YAML 1.2 and JSON files, so that errors can name the line.

All YAML files of Headrace are read here: workflows, schedules, brokers. ruamel.yaml is in the
extras that have such files; the importer says which.
"""

from headrace.config_files.document import (
    LARGEST_FILE,
    BadDocument,
    Document,
    NoDocument,
    Place,
    dotted,
    hint,
)
from headrace.config_files.read import read_document

__all__ = [
    "LARGEST_FILE",
    "BadDocument",
    "Document",
    "NoDocument",
    "Place",
    "dotted",
    "hint",
    "read_document",
]
