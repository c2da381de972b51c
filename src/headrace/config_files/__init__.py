"""Reading YAML and JSON files, so that everything in them can be told with its line.

All files of Headrace that are YAML are read here: workflows, schedules, brokers. PyYAML is in the
extras that have such files; whoever imports this tells which.
"""

from headrace.config_files.document import (
    LARGEST_FILE,
    BadDocument,
    Document,
    NoDocument,
    Place,
    dotted,
)
from headrace.config_files.read import read_document

__all__ = [
    "LARGEST_FILE",
    "BadDocument",
    "Document",
    "NoDocument",
    "Place",
    "dotted",
    "read_document",
]
