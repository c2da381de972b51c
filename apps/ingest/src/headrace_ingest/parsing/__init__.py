"""Read documents: which format, how much is allowed, and their text."""

from headrace_ingest.parsing.detect import detect_format
from headrace_ingest.parsing.parse import DEFAULT_LIMITS, MEMORY_LIMIT, NEVER_RETRY, parse_file
from headrace_ingest.parsing.parsed import Format, Limits, Parsed
from headrace_ingest.parsing.parsers import ParserFactory

__all__ = [
    "DEFAULT_LIMITS",
    "MEMORY_LIMIT",
    "NEVER_RETRY",
    "Format",
    "Limits",
    "Parsed",
    "ParserFactory",
    "detect_format",
    "parse_file",
]
